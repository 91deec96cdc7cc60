use super::Origin;

const DISK: Origin<'_> = Origin {
    machine: "0123456789abcdef0123456789abcdef",
    target: "iqn.2026-11.org.lunar:host",
    lun: 0,
    volume: "file:/srv/disk",
    random: None,
    serial: None,
};

#[test]
fn a_file_is_the_same_after_a_restart() {
    assert_eq!(DISK.designation(), DISK.designation());
}

#[test]
fn every_part_of_the_origin_counts() {
    let others = [
        Origin {
            machine: "another",
            ..DISK
        },
        Origin {
            target: "iqn.2026-11.org.lunar:other",
            ..DISK
        },
        Origin { lun: 1, ..DISK },
        Origin {
            volume: "file:/srv/disk2",
            ..DISK
        },
        Origin {
            random: Some([7; 16]),
            ..DISK
        },
        Origin {
            serial: Some("S1"),
            ..DISK
        },
    ];
    for other in others {
        assert_ne!(DISK.designation().naa, other.designation().naa, "{other:?}");
    }
}

#[test]
fn a_serial_decides_alone() {
    let moved = Origin {
        lun: 3,
        serial: Some("S1"),
        ..DISK
    };
    let here = Origin {
        serial: Some("S1"),
        ..DISK
    };
    assert_eq!(moved.designation(), here.designation());
    assert_eq!(here.designation().serial, "S1");
}

#[test]
fn the_designator_is_locally_assigned() {
    assert_eq!(DISK.designation().naa[0] >> 4, 3);
}

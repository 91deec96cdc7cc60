//! A port that measures, at one end of a cable.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use fc::path_probe::PathVerdict;
use io::ether::{EtherOptions, EtherPort, Place};

use super::{HopPlace, hop};
use crate::diagnosis::probe::measure;

fn cable() -> (tempfile::TempDir, Place) {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Cable(folder.path().join("cable"));
    (folder, place)
}

#[test]
fn two_ports_measure_the_way_to_each_other() {
    let (_folder, place) = cable();
    let stop = &AtomicBool::new(false);
    let paths = thread::scope(|scope| {
        let ends = [(); 2].map(|()| {
            let place = &place;
            scope.spawn(move || measure(place, &[], Duration::from_secs(4), stop).unwrap())
        });
        ends.map(|end| end.join().unwrap())
    });
    for path in paths {
        assert_eq!(path.ports.len(), 1, "{path:?}");
        assert_eq!(
            path.ports[0].verdict(path.mtu),
            PathVerdict::Full,
            "{path:?}"
        );
    }
}

/// The FLOGI of Linux that has heard no FIP, but for its parameters, which are zeros.
fn flogi() -> Vec<u8> {
    let mut frame = vec![0; 14 + 14];
    frame[..6].copy_from_slice(&[0x0e, 0xfc, 0x00, 0xff, 0xff, 0xfe]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 7]);
    frame[12..14].copy_from_slice(&[0x89, 0x06]);
    // SOFi3.
    frame[27] = 0x2e;
    let mut content = vec![0; 24 + 116];
    content[..12].copy_from_slice(&[0x22, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0x01, 0x29, 0, 0]);
    content[24] = 0x04;
    content[24 + 20..24 + 28].copy_from_slice(&[0x20, 0, 2, 0, 0, 0, 0, 7]);
    let sum = crc(&content);
    frame.extend(content);
    frame.extend(sum.to_le_bytes());
    // EOFt.
    frame.extend([0x42, 0, 0, 0]);
    frame
}

/// The CRC of FC-FS-3, bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}

#[test]
fn a_port_outside_of_fip_is_heard() {
    let (_folder, place) = cable();
    let stop = &AtomicBool::new(false);
    let path = thread::scope(|scope| {
        let measured = scope.spawn(|| measure(&place, &[], Duration::from_secs(2), stop).unwrap());
        let mut other = EtherPort::open(&place, &EtherOptions::default()).unwrap();
        while !measured.is_finished() {
            let frame = flogi();
            if let Some(slot) = other.slot(frame.len()) {
                slot.copy_from_slice(&frame);
                other.commit(frame.len());
            }
            other.flush().unwrap();
            thread::sleep(Duration::from_millis(50));
        }
        measured.join().unwrap()
    });
    let [(mac, wwpn)] = path.outside_fip[..] else {
        panic!("{path:?}")
    };
    assert_eq!(mac.to_string(), "02:00:00:00:00:07");
    assert_eq!(wwpn.to_string(), "20:00:02:00:00:00:00:07");
}

#[test]
fn measuring_ends_when_it_is_told_to() {
    let (_folder, place) = cable();
    let stop = AtomicBool::new(false);
    stop.store(true, Relaxed);
    let path = measure(&place, &[], Duration::from_secs(3600), &stop).unwrap();
    assert_eq!(path.ports, []);
}

#[test]
fn neighbours_that_cannot_be_heard_do_not_end_it() {
    let (_folder, place) = cable();
    let stop = AtomicBool::new(true);
    let hops = [hop("no-such-one", 2500, HopPlace::Own)];
    let path = measure(&place, &hops, Duration::from_secs(3600), &stop).unwrap();
    let why = path.unheard.unwrap();
    assert!(why.contains("no-such-one"), "{why}");
}

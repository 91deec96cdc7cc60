//! A port in a fabric and one at a cable, in the views of the kernel's instances.

use fcoe_utils::fc_names::FcId;
use fcoe_utils::instance::Instance;
use fcoe_utils::ping::EchoSizes;
use fcoe_utils::view::adapter::adapters;
use fcoe_utils::view::fcf::fcfs;
use fcoe_utils::view::statistics::RowTable;
use fcoe_utils::view::target::{UnitStyle, targets};
use fcoe_utils::{link_errors, local_port};
use runtime::n_port::PortCounts;

use super::*;

fn port(place: &str, pid: u32) -> PortStatus {
    PortStatus {
        pid,
        program: "lunar bench".to_owned(),
        role: "FCP Initiator".to_owned(),
        place: place.to_owned(),
        interface: Some(place.to_owned()).filter(|place| !place.starts_with("cable:")),
        mode: "fabric".to_owned(),
        port_name: "20:01:52:54:00:12:34:56".to_owned(),
        node_name: "10:00:52:54:00:12:34:56".to_owned(),
        fc_id: Some("0x0101AA".to_owned()),
        state: "Online".to_owned(),
        fabric_name: Some("20:98:00:0d:ec:6d:8f:01".to_owned()),
        vlan: Some(152),
        max_frame: 2112,
        statistics: PortCounts {
            seconds: 100,
            tx_frames: 7,
            tx_bytes: 4000,
            ..PortCounts::default()
        },
        fcfs: vec![FcfStatus {
            mac: "00:0d:ec:6d:8f:00".to_owned(),
            switch_name: "20:00:00:0d:ec:6d:8f:00".to_owned(),
            fabric_name: "20:98:00:0d:ec:6d:8f:01".to_owned(),
            priority: 128,
            fka_ms: 8000,
            selected: true,
        }],
        remotes: vec![RemoteStatus {
            port_name: "50:06:01:62:3b:20:22:80".to_owned(),
            node_name: "50:06:01:60:bb:20:22:80".to_owned(),
            fc_id: "0x0101EF".to_owned(),
            max_frame: 2048,
            role: "FCP Target".to_owned(),
            online: true,
            units: vec![UnitStatus {
                lun: 5,
                vendor: "LUNAR".to_owned(),
                product: "VOLUME".to_owned(),
                revision: "0.1".to_owned(),
                bytes: 3 << 30,
                block_size: 4096,
            }],
        }],
        ..PortStatus::default()
    }
}

/// A sysfs without anything of the kernel's.
fn sysfs(ports: &[PortStatus]) -> SysfsDir {
    let none = SysfsDir::root("/no-such-root");
    none.with(attributes(ports, |_| CardFacts {
        speed: Some(speed(10_000)),
        fcs_errors: Some("3".to_owned()),
    }))
}

#[test]
fn a_port_in_a_fabric_has_the_labels_of_the_kernels() {
    let sysfs = sysfs(&[port("eth0", 4711)]);
    let instances = Instance::all(&sysfs);
    let expected = "        \
        Symbolic Name:     lunar bench (PID 4711), FCP Initiator over eth0
        OS Device Name:    lunar-4711-0
        Node Name:         0x1000525400123456
        Port Name:         0x2001525400123456
        Fabric Name:       0x2098000dec6d8f01
        Speed:             10 Gbit
        Supported Speed:   Unknown
        MaxFrameSize:      2112 bytes
        FC-ID (Port ID):   0x0101aa
        State:             Online
";
    let told = adapters(&sysfs, &instances, "");
    assert!(told.ends_with(expected), "{told}");
    let told = fcfs(&instances);
    for line in [
        "        Connection Mode:  Connected\n",
        "        MAC Address:      00:0D:EC:6D:8F:00\n",
        "        FKA Period:       8 seconds\n",
        "        Selected:         Yes\n",
        "        VLAN ID:          152\n",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    let told = targets(&instances, UnitStyle::Table);
    assert!(told.contains("    FC-ID (Port ID):  0x0101ef\n"), "{told}");
    let unit = "         5  -              3.00 GiB     4096     LUNAR VOLUME (rev 0.1)\n";
    assert!(told.contains(unit), "{told}");
    let told = targets(&instances, UnitStyle::Full);
    let id = "        Ethernet Port FCID: 0x0101aa\n        Target FCID:        0x0101ef\n";
    let size = "        Capacity:           3.00 GiB\n        Capacity in Blocks: 786432\n";
    assert!(told.contains(id) && told.contains(size), "{told}");
    let row = RowTable::Port.row(&instances, &mut Some(40));
    assert!(row.starts_with("60      7         4000"), "{row}");
    let row = RowTable::LinkErrors.row(&instances, &mut None);
    assert_eq!(row.split_whitespace().next_back(), Some("3"), "{row}");
}

#[test]
fn several_at_one_interface_and_those_of_cables_are_shown() {
    let sysfs = sysfs(&[
        port("eth0", 1),
        port("eth0", 2),
        port("cable:/run/x.sock", 3),
    ]);
    let places = |interface| {
        let chosen = Instance::chosen(&sysfs, interface).unwrap();
        let places = chosen.into_iter().map(|one| one.interface);
        places.collect::<Vec<_>>()
    };
    assert_eq!(places(None), ["cable:/run/x.sock", "eth0", "eth0"]);
    assert_eq!(places(Some("eth0")), ["eth0", "eth0"]);
    assert_eq!(places(Some("cable:/run/x.sock")), ["cable:/run/x.sock"]);
    assert_eq!(
        targets(&Instance::all(&sysfs), UnitStyle::Full)
            .matches("Roles:")
            .count(),
        3
    );
    let both = Instance::chosen(&sysfs, Some("eth0")).unwrap();
    let row = RowTable::Port.row(&both, &mut Some(40));
    assert!(row.starts_with("60      14        8000"), "{row}");
    // The card has counted for both.
    let row = RowTable::LinkErrors.row(&both, &mut None);
    assert_eq!(row.split_whitespace().next_back(), Some("3"), "{row}");
}

/// A daemon serves all else at the same time.
#[test]
fn a_port_of_a_daemon_is_not_ended_with_the_daemon() {
    let port = PortStatus {
        program: "lunar daemon".to_owned(),
        ..port("eth0", 4711)
    };
    let told = how_it_ends("eth0", &port);
    assert!(
        told.contains("target.\"20:01:52:54:00:12:34:56\""),
        "{told}"
    );
    assert!(!told.contains("kill"), "{told}");
    let other = PortStatus {
        program: "lunar serve".to_owned(),
        ..port
    };
    assert!(how_it_ends("eth0", &other).ends_with("kill 4711 ends it"));
}

/// As the programs that send requests look for it.
#[test]
fn a_port_is_found_by_any_of_its_names_and_so_are_those_that_it_knows() {
    let ports = OwnPorts(vec![
        port("eth1", 7),
        PortStatus {
            port_name: "20:02:52:54:00:12:34:56".to_owned(),
            fc_id: Some("0x0101AB".to_owned()),
            ..port("cable:/run/x.sock", 4711)
        },
        port("eth0", 4711),
    ]);
    let sysfs = sysfs(&ports.0);
    for meant in [
        "lunar-4711-0",
        "cable:/run/x.sock",
        "20:02:52:54:00:12:34:56",
        "0x0101ab",
    ] {
        let found = local_port::find(&sysfs, meant).unwrap();
        assert_eq!(found.host, "lunar-4711-0", "{meant}");
        assert_eq!(found.fc_id, FcId(0x01_01ab));
        let sizes = EchoSizes::new(&sysfs, &found, FcId(0x01_01ef), 2108);
        assert_eq!((sizes.source, sizes.target), (2108, 2044));
    }
    let name = ports.named("lunar-4711-1").map(|port| &*port.place);
    assert_eq!(name, Some("eth0"));
    assert!(ports.named("lunar-4711-2").is_none());
    let rport = "rport-lunar-4711-1-0";
    let known = link_errors::find(&sysfs, rport, |name, _| name == rport).unwrap();
    assert_eq!(
        (&*known.host, known.fc_id),
        ("lunar-4711-1", FcId(0x01_01ef))
    );
}

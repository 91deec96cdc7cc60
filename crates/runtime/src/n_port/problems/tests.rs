//! What is in the way of frames, in a sysfs made of files too, and frames that were lost.

use std::env;
use std::os::unix::fs::symlink;

use super::*;

/// A sysfs with these interfaces, each with what its uevent says and a lower one, and FCoE
/// ports of the kernel at some of them.
fn sysfs(name: &str, ports: &[&str]) -> PathBuf {
    let root = env::temp_dir().join(format!("lunar-sysfs-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    for folder in ["bus/fcoe/devices", "class/net"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (interface, kind, lower) in [
        ("eth0", "INTERFACE=eth0", None),
        ("eth1", "INTERFACE=eth1", None),
        ("eth0.100", "DEVTYPE=vlan", Some("eth0")),
        ("br0", "DEVTYPE=bridge", Some("eth1")),
    ] {
        let device = root.join("devices/net").join(interface);
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("uevent"), kind).unwrap();
        if let Some(lower) = lower {
            symlink("..", device.join(format!("lower_{lower}"))).unwrap();
        }
        symlink(&device, root.join("class/net").join(interface)).unwrap();
        if ports.contains(&interface) {
            let controller = device.join(format!("ctlr_{interface}"));
            fs::create_dir(&controller).unwrap();
            let link = root
                .join("bus/fcoe/devices")
                .join(format!("ctlr_{interface}"));
            symlink(&controller, link).unwrap();
        }
    }
    root
}

#[test]
fn a_port_of_the_kernel_is_seen_where_it_is_in_the_way() {
    let found = |ports: &[&str], interface| {
        let root = sysfs(&format!("{}-{interface}", ports.join("+")), ports);
        let found = kernel_port(&root, interface);
        fs::remove_dir_all(&root).unwrap();
        found
    };
    assert_eq!(found(&["eth0"], "eth0").as_deref(), Some("eth0"));
    assert_eq!(found(&["eth0"], "eth1"), None);
    assert_eq!(found(&["eth0.100"], "eth0").as_deref(), Some("eth0.100"));
    assert_eq!(found(&["eth0"], "eth0.100"), None);
    assert_eq!(found(&["br0"], "eth1"), None);
    assert_eq!(found(&[], "eth0"), None);
    assert_eq!(kernel_port(Path::new("/nowhere"), "eth0"), None);
}

#[test]
fn a_port_of_another_network_namespace_is_left_alone() {
    let root = sysfs("namespace", &[]);
    let link = root.join("bus/fcoe/devices/ctlr_9");
    symlink(root.join("devices/net/hidden/ctlr_9"), link).unwrap();
    assert_eq!(kernel_port(&root, "eth0"), None);
    fs::remove_dir_all(&root).unwrap();
}

#[test]
fn only_what_has_grown_is_told() {
    let before = FrameLosses(Drops {
        ring_full: 3,
        unsent: 2,
        received: 7,
        ..Drops::default()
    });
    let now = FrameLosses(Drops {
        ring_full: 5,
        missed: 1,
        received: 9,
        ..before.0
    });
    let told = "2 (receive ring full), 1 (no memory in the interface)";
    assert_eq!(now.told_since(&before).as_deref(), Some(told));
    assert_eq!(now.told_since(&now), None);
}

#[test]
fn the_worst_obstacle_is_named_with_what_mends_it() {
    let eth0 = Place::Interface("eth0".to_owned());
    let link = |up, mtu| LinkStatus {
        up,
        mtu,
        ..LinkStatus::default()
    };
    let at = |up, mtu| LinkProblem::at(&eth0, link(up, mtu));
    for (obstacle, is_barrier, ways) in [
        (at(true, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 301), true, ["301", "ip link set eth0 mtu"]),
        (at(false, 302), true, ["down", "ip link set eth0 up"]),
        (
            at(true, 302),
            false,
            ["256 of 2112", "ip link set eth0 mtu"],
        ),
        (at(true, 2157), false, ["2108 of", "ip link set eth0 mtu"]),
    ] {
        let obstacle = obstacle.expect("an obstacle");
        let line = obstacle.to_string();
        assert_eq!(obstacle.is_barrier(), is_barrier, "{line}");
        assert!(ways.iter().all(|way| line.contains(way)), "{line}");
        assert!(line.starts_with("eth0: "), "{line}");
    }
    assert_eq!(at(true, 2158), None);
    let gone = LinkStatus {
        is_gone: true,
        ..link(false, 301)
    };
    let gone = LinkProblem::at(&eth0, gone).unwrap();
    assert!(gone.is_barrier());
    assert!(gone.to_string().starts_with("eth0: this interface is gone"));
}

#[test]
fn an_interface_that_the_kernel_has_for_a_vlan_is_found() {
    let list = env::temp_dir().join(format!("lunar-vlans-{}", std::process::id()));
    let lines = "VLAN Dev name    | VLAN ID\n\
                 Name-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n\
                 eth0.152-fcoe  | 152  | eth0\n\
                 eth1.153       | 153  | eth1\n";
    fs::write(&list, lines).unwrap();
    let found = |interface, vid| vlan_interface(&list, interface, vid);
    assert_eq!(found("eth0", 152).as_deref(), Some("eth0.152-fcoe"));
    assert_eq!(found("eth0", 153), None);
    assert_eq!(found("eth1", 152), None);
    fs::remove_file(&list).unwrap();
    assert_eq!(found("eth0", 152), None);
}

#[test]
fn losses_are_told_once_a_minute_and_no_frame_twice() {
    let mut told = LoggedLosses::default();
    let mut news = |seconds, ring_full, dropped| {
        let drops = Drops {
            ring_full,
            ..Drops::default()
        };
        let lost = FrameLosses(drops).and_dropped(dropped);
        told.news(Now::from_secs(seconds), || Some(lost))
    };
    assert_eq!(news(60, 0, 0), None);
    assert_eq!(news(90, 5, 2), None, "it was looked at half a minute ago");
    assert_eq!(news(120, 5, 2).as_deref(), Some("7 (receive ring full)"));
    assert_eq!(news(180, 5, 2), None);
    assert_eq!(news(240, 5, 3).as_deref(), Some("1 (receive ring full)"));
    assert_eq!(told.next_look(), Now::from_secs(300));
}

/// A card that filters VLANs passes the tags of one that has an interface.
#[test]
fn a_vlan_without_an_interface_does_not_pass_a_card_that_filters() {
    let list = env::temp_dir().join(format!("lunar-vlans-{}", std::process::id()));
    let titles = "VLAN Dev name    | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n";
    fs::write(&list, format!("{titles}eth1.152-fcoe  | 152  | eth1\n")).unwrap();
    let drops = |interface, vid, filters| drops_vlan(&list, interface, vid, |_| filters);
    assert!(drops("eth1", 153, true));
    assert!(!drops("eth1", 153, false));
    assert!(!drops("eth1", 152, true));
    assert!(drops("eth2", 152, true));
    assert!(!drops("eth1.152-fcoe", 152, true));
    fs::remove_file(&list).unwrap();
}

#[test]
fn the_interface_of_a_vlan_has_a_name_that_the_kernel_takes() {
    let told = |place: &str| NoPort::VlanFilter(place.parse().unwrap(), 152).to_string();
    let expected = "link eth2 name eth2.152-fcoe type vlan id 152 egress-qos-map 3:3, ip link set \
                    eth2.152-fcoe up";
    assert!(told("eth2").ends_with(expected), "{}", told("eth2"));
    assert!(told("xdp:eth2").ends_with(expected), "{}", told("xdp:eth2"));
    let long = told("enp129s0f0np0");
    assert!(
        long.contains("link enp129s0f0np0 name fcoe.152 type"),
        "{long}"
    );
}

#[test]
fn the_verb_that_needs_a_privilege_is_named() {
    let open = EtherOpenError::Forbidden("eth0".to_owned()).to_string();
    for word in ["eth0", "switch", "doctor", "CAP_NET_RAW", "xdp:", "setcap"] {
        assert!(open.contains(word), "{open}");
    }
    let apply = DcbError::Forbidden("eth0".to_owned()).to_string();
    for word in ["eth0", "dcb=apply of lunar serve", "CAP_NET_ADMIN"] {
        assert!(apply.contains(word), "{apply}");
    }
}

//! Frames that are too long for the interface, for what is in between, or for the other end.

use fc::path_probe::{EchoResult, FcfPath, PortPath};
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;

use super::{hop, nothing, only, sound, told};
use crate::diagnosis::readings::{HopPlace, PathReadings, Readings};

/// A way to one port that full frames pass.
fn full() -> PortPath {
    PortPath {
        enode: Mac([2, 0, 0, 0, 0, 9]),
        wwpn: Some(Wwn(0x2000_0200_0000_0009)),
        max_fcoe: Some(2158),
        answer: Some(2158),
        echo: EchoResult::Passed {
            longest: 2112,
            full: 2112,
        },
    }
}

fn with(ports: Vec<PortPath>) -> Readings {
    Readings {
        path: Some(PathReadings {
            mtu: 2500,
            ports,
            ..PathReadings::default()
        }),
        ..sound()
    }
}

/// Not even the answer to our claim comes.
fn narrow_in() -> PortPath {
    PortPath {
        answer: None,
        max_fcoe: None,
        echo: EchoResult::Untried,
        ..full()
    }
}

fn narrow_out() -> PortPath {
    PortPath {
        echo: EchoResult::Passed {
            longest: 1452,
            full: 2112,
        },
        ..full()
    }
}

const PEER: &str = "20:00:02:00:00:00:00:09";

#[test]
fn an_interface_too_narrow_for_full_frames_is_told() {
    for (mtu, said) in [(1500, "1452 of 2112"), (300, "256 bytes of payload")] {
        let mut readings = sound();
        readings.hops[0].link.mtu = mtu;
        assert_eq!(only(&readings), "mtu eth0: ip link set eth0 mtu 2500");
        let what = &super::judge(&readings)[0].what;
        assert!(what.contains(said), "{what}");
    }
    let mut readings = sound();
    readings.hops[0].link.mtu = 2158;
    nothing(&readings);
}

/// An interface cannot be wider than the one below it.
#[test]
fn what_is_below_is_widened_first() {
    let mut readings = sound();
    readings.hops[0] = hop("eth0.5", 1500, HopPlace::Own);
    readings.hops.push(hop("eth0", 1500, HopPlace::Below));
    let both = [
        "mtu eth0: ip link set eth0 mtu 2500",
        "mtu eth0.5: ip link set eth0.5 mtu 2500",
    ];
    assert_eq!(told(&readings), both);
    readings.hops[0].link.mtu = 2500;
    assert_eq!(told(&readings), both[..1]);
    // Other stations are behind it, perhaps.
    readings.hops[1].place = HopPlace::Bridged;
    nothing(&readings);
}

#[test]
fn a_narrow_way_in_is_mended_in_between() {
    let readings = with(vec![narrow_in()]);
    let there = format!("each bridge, switch and host between eth0 and {PEER}");
    let found = format!("path-mtu eth0: ip link set PORT mtu 2500 @ {there}");
    assert_eq!(only(&readings), found);
}

#[test]
fn a_narrow_way_out_is_told_with_its_mtu() {
    let readings = with(vec![narrow_out()]);
    assert!(only(&readings).starts_with("path-mtu eth0: ip link set PORT mtu 2500 @ "));
    let what = &super::judge(&readings)[0].what;
    assert!(
        what.contains("MTU of 1498") && what.contains(PEER),
        "{what}"
    );
}

/// With the bridge on this machine the command names its port.
#[test]
fn a_narrow_interface_of_this_machine_is_named() {
    let mut readings = with(vec![narrow_out(), narrow_in()]);
    readings.hops.push(hop("tap1", 1500, HopPlace::Bridged));
    readings.hops.push(hop("tap2", 2500, HopPlace::Bridged));
    assert_eq!(only(&readings), "path-mtu tap1: ip link set tap1 mtu 2500");
}

/// What is lost behind the other end of a pair is lost by it.
#[test]
fn a_narrow_interface_that_all_frames_pass_is_the_one_finding() {
    let mut readings = with(vec![narrow_in()]);
    readings.hops.push(hop("veth1", 1500, HopPlace::Below));
    assert_eq!(only(&readings), "mtu veth1: ip link set veth1 mtu 2500");
}

#[test]
fn a_port_that_takes_no_full_frames_is_told() {
    let small = PortPath {
        max_fcoe: Some(1498),
        answer: Some(1498),
        echo: EchoResult::Passed {
            longest: 1452,
            full: 1452,
        },
        ..full()
    };
    let mut readings = with(vec![full(), small]);
    assert_eq!(
        only(&readings),
        format!("peer-mtu {PEER}: ip link set IFACE mtu 2500 @ its machine")
    );
    // One thing after the other.
    readings.hops[0].link.mtu = 1500;
    assert_eq!(only(&readings), "mtu eth0: ip link set eth0 mtu 2500");
}

#[test]
fn nothing_is_said_of_what_is_not_known() {
    for echo in [
        EchoResult::Silent,
        EchoResult::Refused,
        EchoResult::Searching,
    ] {
        nothing(&with(vec![PortPath { echo, ..full() }]));
    }
    nothing(&with(Vec::new()));
}

#[test]
fn an_fcf_whose_full_advertisement_does_not_come_is_told() {
    let fcf = |answer| {
        let mut readings = with(Vec::new());
        readings.path.as_mut().unwrap().fcfs.push(FcfPath {
            mac: Mac([2, 0, 0, 0, 0xf, 0xcf]),
            name: None,
            answer,
        });
        readings
    };
    nothing(&fcf(Some(2158)));
    let found = only(&fcf(None));
    assert!(
        found.ends_with("between eth0 and the FCF 02:00:00:00:0f:cf"),
        "{found}"
    );
    // What comes, and is short, was sent like that, whatever is in between.
    let mut limited = fcf(Some(1498));
    let own = "peer-mtu the FCF 02:00:00:00:0f:cf: ip link set PORT mtu 2500 @ its switch";
    assert_eq!(only(&limited), own);
    limited.hops.push(hop("tap1", 1500, HopPlace::Bridged));
    assert_eq!(only(&limited), own);
}

//! The kernel's FCoE, here and elsewhere, and neighbours on the link.

use fc::path_probe::FcfPath;
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;

use io::ether::survey::PauseReading;

use super::{nothing, only, sound};
use crate::diagnosis::readings::{KernelPort, NeighbourReading, PathReadings};

#[test]
fn the_kernels_port_on_the_interface_is_told_with_how_to_remove_it() {
    let mut readings = sound();
    readings.kernel_port = Some(KernelPort {
        interface: "eth0.5".to_owned(),
        is_point_to_point: true,
    });
    assert_eq!(
        only(&readings),
        "kernel-port eth0: echo eth0.5 > /sys/module/libfcoe/parameters/destroy"
    );
    let what = &super::judge(&readings)[0].what;
    assert!(what.contains("point-to-point"), "{what}");
}

#[test]
fn kernels_that_left_fip_are_told_to_begin_anew() {
    let mut readings = sound();
    let mut path = PathReadings {
        mtu: 2500,
        outside_fip: vec![(Mac([2, 0, 0, 0, 0, 7]), Wwn(0x2000_0200_0000_0007))],
        ..PathReadings::default()
    };
    readings.path = Some(path.clone());
    assert_eq!(
        only(&readings),
        "point-to-point 02:00:00:00:00:07: echo IFACE > /sys/module/libfcoe/parameters/destroy && \
         echo IFACE > /sys/module/libfcoe/parameters/create_vn2vn @ its machine"
    );
    let what = super::judge(&readings).remove(0).what;
    assert!(what.contains("start it first (lunar switch)"), "{what}");
    path.fcfs.push(FcfPath {
        mac: Mac([2, 0, 0, 0, 0xf, 0xcf]),
        name: None,
        answer: Some(2158),
    });
    readings.path = Some(path);
    let what = super::judge(&readings).remove(0).what;
    assert!(what.ends_with("ignores every FCF"), "{what}");
    assert_eq!(
        only(&readings),
        "point-to-point 02:00:00:00:00:07: ip link set IFACE down && ip link set IFACE up @ its \
         machine"
    );
}

/// Only priority 3 counts; who says nothing of DCBX is not among the neighbours.
#[test]
fn a_neighbour_without_pfc_is_told_unless_the_link_is_paused() {
    let mut readings = sound();
    let neighbour = |pfc| {
        let name = "leaf1 Ethernet1/5 (00:0d:ec:6d:8f:00)".to_owned();
        Some(PathReadings {
            neighbours: vec![NeighbourReading { name, pfc }],
            ..PathReadings::default()
        })
    };
    readings.path = neighbour(0b1000);
    nothing(&readings);
    readings.path = neighbour(0b1_0111);
    assert_eq!(
        only(&readings),
        "neighbor-pfc leaf1 Ethernet1/5 (00:0d:ec:6d:8f:00): dcb pfc set dev PORT prio-pfc 3:on \
         @ leaf1 Ethernet1/5 (00:0d:ec:6d:8f:00)"
    );
    readings.hops[0].pause = Some(PauseReading {
        rx: true,
        tx: true,
        ..PauseReading::default()
    });
    nothing(&readings);
}

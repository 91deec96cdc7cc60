//! Frames that are not for the port, or not from whom they say.

use super::rig::{Rig, config, ms};
use super::services::{answers, frame, up};
use crate::port::config::PortConfig;
use crate::wire::els::Els;
use crate::wire::ethernet::VlanTag;
use crate::wire::frame::{FrameType, RCtl};

#[test]
fn nothing_is_answered_that_is_for_another_or_from_a_stranger() {
    let mut rig = up();
    let good = frame(&rig, RCtl::ELS_REQUEST, FrameType::ELS, &Els::Rtv.encode());
    assert_eq!(answers(&mut rig, &good).len(), 1);
    let mut other_mac = good.clone();
    other_mac[5] ^= 1;
    let mut other_sender = good.clone();
    other_sender[11] ^= 1;
    for frame in [&other_mac, &other_sender] {
        assert!(answers(&mut rig, frame).is_empty());
    }
    assert_eq!(rig.target.port.statistics().strangers, 2);
    for len in 0..good.len() {
        assert!(answers(&mut rig, &good[..len]).is_empty(), "{len} bytes");
    }
}

#[test]
fn each_vlan_is_a_network_of_its_own() {
    let tag = VlanTag {
        priority: 3,
        dei: false,
        vid: 100,
    };
    let tagged = PortConfig {
        tag: Some(tag),
        ..config(2)
    };
    let mut rig = Rig::new(
        &tagged,
        &PortConfig {
            tag: Some(tag),
            ..config(1)
        },
    );
    rig.run(ms(3000));
    assert_eq!(rig.target.told, ["online 000002", "up 0"]);

    let mut rig = Rig::new(&tagged, &config(1));
    rig.run(ms(3000));
    assert_eq!(rig.target.told, ["online 000002"]);
    assert!(rig.target.port.statistics().strangers > 0);
}

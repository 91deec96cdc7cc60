//! Link services that an initiator may ask of a target port, written as a peer would, and frames
//! that are not for the port, or not from whom they say.

use super::rig::{Rig, config, ms};
use super::trace;
use crate::port::config::PortConfig;
use crate::wire::els::{Adisc, Code, Els, ExchangeName, LinkErrors, Logo, Reply};
use crate::wire::ethernet::VlanTag;
use crate::wire::frame::{FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

/// What the target answers to a frame, in words.
fn lines(rig: &mut Rig, frame: &[u8]) -> Vec<String> {
    let answers = rig.answers(frame);
    answers.iter().map(|frame| trace::line(frame)).collect()
}

fn ask(rig: &mut Rig, els: &Els) -> Vec<String> {
    let frame = rig.els(els);
    lines(rig, &frame)
}

#[test]
fn what_is_known_is_answered_and_all_else_refused() {
    let mut rig = Rig::up();
    let exchange = ExchangeName {
        originator: FcId(1),
        ox_id: OxId(7),
        rx_id: RxId::UNASSIGNED,
    };
    let echo = vec![1; 8];
    assert_eq!(rig.reply(&Els::Echo(echo.clone())), Reply::Echo(echo));
    let Reply::Rtv(times) = rig.reply(&Els::Rtv) else {
        panic!("no time-outs")
    };
    assert_eq!((times.r_a_tov_ms, times.e_d_tov_ms()), (4000, 2000));
    let Reply::Rnid(node) = rig.reply(&Els::Rnid(0)) else {
        panic!("no names")
    };
    let port = &rig.target.port;
    assert_eq!(node.names, Some((port.wwpn(), port.wwnn())));
    assert_eq!(ask(&mut rig, &Els::Rec(exchange)), ["LS_RJT 03 17"]);
    assert_eq!(ask(&mut rig, &Els::Rrq(exchange)), ["LS_ACC"]);
    assert_eq!(ask(&mut rig, &Els::Scr(3)), ["LS_RJT 0b 00"]);
    assert_eq!(ask(&mut rig, &Els::Other(Code(0x7f))), ["LS_RJT 0b 00"]);
    assert_eq!(rig.target.told, ["online 000002", "up 0"]);
}

#[test]
fn services_in_another_name_are_refused() {
    let mut rig = Rig::up();
    let (fc_id, wwnn) = (rig.initiator.port.address().unwrap().fc_id, Wwn(1));
    let (own, other) = (rig.initiator.port.wwpn(), Wwn(2));
    let adisc = |wwpn| {
        Els::Adisc(Adisc {
            hard_address: FcId::UNIDENTIFIED,
            wwpn,
            wwnn,
            fc_id,
        })
    };
    assert_eq!(ask(&mut rig, &adisc(own)), ["LS_ACC"]);
    assert_eq!(ask(&mut rig, &adisc(other)), ["LS_RJT 03 0d"]);
    let logo = |wwpn| Els::Logo(Logo { fc_id, wwpn });
    assert_eq!(ask(&mut rig, &logo(other)), ["LS_RJT 03 0d"]);
    let remark = "a LOGO for another port (FC-LS-2)";
    rig.run(ms(1901));
    assert_eq!(rig.target.told, ["online 000002", "up 0", remark]);
    assert_eq!(ask(&mut rig, &logo(own)), ["LS_ACC"]);
}

#[test]
fn wrong_checksums_are_counted() {
    let mut rig = Rig::up();
    let mut damaged = rig.els(&Els::Rtv);
    damaged[40] ^= 1;
    assert!(rig.answers(&damaged).is_empty());
    assert_eq!(rig.target.port.statistics().bad_crc, 1);
}

#[test]
fn rls_tells_failures_of_links_and_of_virtual_links_apart() {
    let mut rig = Rig::up();
    let now = rig.now;
    rig.target.port.link(now, false);
    rig.target.port.link(now, true);
    rig.run(now + ms(3000));
    // The initiator is not heard for so long that its virtual link fails.
    let now = rig.now + ms(30_000);
    rig.target.port.expire(now);
    rig.run(now + ms(10_000));
    let Reply::Rls(errors) = rig.reply(&Els::Rls(FcId(2))) else {
        panic!("no link errors")
    };
    let expected = LinkErrors {
        link_failures: 1,
        sync_losses: 1,
        ..LinkErrors::default()
    };
    assert_eq!(errors, expected);
}

#[test]
fn an_abort_of_what_was_answered_is_answered_too() {
    let mut rig = Rig::up();
    let abts = rig.frame(RCtl::ABTS, FrameType::BLS, &[]);
    assert_eq!(lines(&mut rig, &abts), ["BA_ACC"]);
}

#[test]
fn lengths_that_do_not_agree_are_refused_with_a_remark() {
    let mut rig = Rig::up();
    let payload = [0x20, 0x10, 0, 0x24, 0, 0, 0, 0];
    let prli = rig.frame(RCtl::ELS_REQUEST, FrameType::ELS, &payload);
    assert_eq!(lines(&mut rig, &prli), ["LS_RJT 07 2d"]);
    rig.run(ms(1901));
    let told = rig.target.told.last().unwrap();
    assert_eq!(
        told,
        "an extended link service with inconsistent lengths (FC-LS-2)"
    );
}

#[test]
fn nothing_is_answered_that_is_for_another_or_from_a_stranger() {
    let mut rig = Rig::up();
    let good = rig.els(&Els::Rtv);
    assert_eq!(rig.answers(&good).len(), 1);
    let mut other_mac = good.clone();
    other_mac[5] ^= 1;
    let mut other_sender = good.clone();
    other_sender[11] ^= 1;
    for frame in [&other_mac, &other_sender] {
        assert!(rig.answers(frame).is_empty());
    }
    assert_eq!(rig.target.port.statistics().unknown, 2);
    for len in 0..good.len() {
        assert!(rig.answers(&good[..len]).is_empty(), "{len} bytes");
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
    let other = PortConfig {
        tag: Some(tag),
        ..config(1)
    };
    let mut rig = Rig::new(&tagged, &other);
    rig.run(ms(3000));
    assert_eq!(rig.target.told, ["online 000002", "up 0"]);

    let mut rig = Rig::new(&tagged, &config(1));
    rig.run(ms(3000));
    assert_eq!(rig.target.told, ["online 000002"]);
    assert!(rig.target.port.statistics().unknown > 0);
}

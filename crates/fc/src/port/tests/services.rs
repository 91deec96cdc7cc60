//! Link services that an initiator may ask of a target port, written as a peer would.

use super::rig::{Rig, config, ms};
use super::trace;
use crate::tests::HeapFrames;
use crate::wire::els::{Adisc, Code, Els, ExchangeName, LinkErrors, Logo, Reply};
use crate::wire::ethernet;
use crate::wire::fcoe::{self, Eof, Sof};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};
use crate::wire::names::{FcId, Wwn};

pub(super) fn up() -> Rig {
    let mut rig = Rig::new(&config(2), &config(1));
    rig.run(ms(1900));
    rig.traced();
    rig
}

/// A frame of the initiator's to the target.
pub(super) fn frame(rig: &Rig, r_ctl: RCtl, kind: FrameType, payload: &[u8]) -> Vec<u8> {
    let (from, to) = (rig.initiator.port.address(), rig.target.port.address());
    let (from, to) = (from.unwrap(), to.unwrap());
    let ethernet = ethernet::EthernetHeader {
        dst: to.mac,
        src: from.mac,
        vlan: None,
        ethertype: ethernet::FCOE,
    };
    let header = FrameHeader {
        r_ctl,
        d_id: to.fc_id,
        cs_ctl: 0,
        s_id: from.fc_id,
        kind,
        f_ctl: FCtl::REQUEST,
        seq_id: 0,
        df_ctl: 0,
        seq_cnt: 0,
        ox_id: OxId(0x1234),
        rx_id: RxId::UNASSIGNED,
        parameter: 0,
    };
    let mut slot = vec![0; 3000];
    let copy = |bytes: &mut [u8]| bytes.copy_from_slice(payload);
    let delimiters = (Sof::I3, Eof::T);
    let len = fcoe::encode(
        &mut slot,
        &ethernet,
        delimiters,
        &header,
        payload.len(),
        copy,
    );
    slot.truncate(len);
    slot
}

/// What the target answers to a frame.
pub(super) fn answers(rig: &mut Rig, frame: &[u8]) -> Vec<Vec<u8>> {
    rig.target.port.receive(rig.now, frame, None);
    let mut out = HeapFrames::default();
    rig.target.port.transmit(&mut out);
    out.frames
}

fn ask(rig: &mut Rig, els: &Els) -> Vec<String> {
    let frame = frame(rig, RCtl::ELS_REQUEST, FrameType::ELS, &els.encode());
    let answers = answers(rig, &frame);
    answers.iter().map(|frame| trace::line(frame)).collect()
}

pub(super) fn reply(rig: &mut Rig, els: &Els) -> Reply {
    let frame = frame(rig, RCtl::ELS_REQUEST, FrameType::ELS, &els.encode());
    let answers = answers(rig, &frame);
    let (_, payload) = ethernet::EthernetHeader::parse(&answers[0]).unwrap();
    Reply::parse(els.code(), fcoe::decode(payload).unwrap().payload).unwrap()
}

#[test]
fn what_is_known_is_answered_and_all_else_refused() {
    let mut rig = up();
    let exchange = ExchangeName {
        originator: FcId(1),
        ox_id: OxId(7),
        rx_id: RxId::UNASSIGNED,
    };
    assert_eq!(
        reply(&mut rig, &Els::Echo(vec![1; 8])),
        Reply::Echo(vec![1; 8])
    );
    let Reply::Rtv(times) = reply(&mut rig, &Els::Rtv) else {
        panic!("no time-outs")
    };
    assert_eq!((times.r_a_tov_ms, times.e_d_tov_ms()), (4000, 2000));
    let Reply::Rnid(node) = reply(&mut rig, &Els::Rnid(0)) else {
        panic!("no names")
    };
    let port = &rig.target.port;
    assert_eq!(node.names, Some((port.wwpn(), port.wwnn())));
    assert_eq!(ask(&mut rig, &Els::Rec(exchange)), ["LS_RJT 03/17"]);
    assert_eq!(ask(&mut rig, &Els::Rrq(exchange)), ["LS_ACC"]);
    assert_eq!(ask(&mut rig, &Els::Scr(3)), ["LS_RJT 0b/00"]);
    assert_eq!(ask(&mut rig, &Els::Other(Code(0x7f))), ["LS_RJT 0b/00"]);
    assert_eq!(rig.target.told, ["online 000002", "up 0"]);
}

#[test]
fn services_in_another_name_are_refused() {
    let mut rig = up();
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
    assert_eq!(ask(&mut rig, &adisc(other)), ["LS_RJT 03/0d"]);
    let logo = |wwpn| Els::Logo(Logo { fc_id, wwpn });
    assert_eq!(ask(&mut rig, &logo(other)), ["LS_RJT 03/0d"]);
    let remark = "a LOGO for another port (FC-LS-2)";
    rig.run(ms(1901));
    assert_eq!(rig.target.told, ["online 000002", "up 0", remark]);
    assert_eq!(ask(&mut rig, &logo(own)), ["LS_ACC"]);
}

#[test]
fn wrong_checksums_are_counted() {
    let mut rig = up();
    let mut damaged = frame(&rig, RCtl::ELS_REQUEST, FrameType::ELS, &Els::Rtv.encode());
    damaged[40] ^= 1;
    assert!(answers(&mut rig, &damaged).is_empty());
    assert_eq!(rig.target.port.statistics().bad_crc, 1);
}

#[test]
fn rls_tells_failures_of_links_and_of_virtual_links_apart() {
    let mut rig = up();
    let now = rig.now;
    rig.target.port.link(now, false);
    rig.target.port.link(now, true);
    rig.run(now + ms(3000));
    // The initiator is not heard for so long that its virtual link fails.
    let now = rig.now + ms(30_000);
    rig.target.port.expire(now);
    rig.run(now + ms(10_000));
    let Reply::Rls(errors) = reply(&mut rig, &Els::Rls(FcId(2))) else {
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
    let mut rig = up();
    let abts = frame(&rig, RCtl::ABTS, FrameType::BLS, &[]);
    let lines: Vec<_> = answers(&mut rig, &abts)
        .iter()
        .map(|frame| trace::line(frame))
        .collect();
    assert_eq!(lines, ["BA_ACC"]);
}

#[test]
fn lengths_that_do_not_agree_are_refused_with_a_remark() {
    let mut rig = up();
    let prli = frame(
        &rig,
        RCtl::ELS_REQUEST,
        FrameType::ELS,
        &[0x20, 0x10, 0, 0x24, 0, 0, 0, 0],
    );
    let lines: Vec<_> = answers(&mut rig, &prli)
        .iter()
        .map(|frame| trace::line(frame))
        .collect();
    assert_eq!(lines, ["LS_RJT 07/2d"]);
    rig.run(ms(1901));
    let told = rig.target.told.last().unwrap();
    assert_eq!(
        told,
        "an extended link service with inconsistent lengths (FC-LS-2)"
    );
}

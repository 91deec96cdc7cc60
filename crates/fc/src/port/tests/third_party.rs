//! TPRLO: one port ends what others have with the target.

use super::rig::Rig;
use crate::wire::els::{Els, Logo, LsRejectReason, Reply, ServicePage, explanation, reason};
use crate::wire::frame::FrameType;
use crate::wire::names::FcId;

/// A page that is about a port.
const fn page(kind: FrameType, flags: u8, fc_id: u32) -> ServicePage {
    ServicePage {
        kind,
        extension: 0,
        flags,
        originator: 0,
        responder: 0,
        parameters: fc_id,
    }
}

/// The response code, and how often the nexus of the initiator (000001) has ended.
fn asked(rig: &mut Rig, page: ServicePage) -> (u8, usize) {
    let Reply::Process(pages) = rig.reply(&Els::Tprlo(vec![page])) else {
        panic!("no LS_ACC")
    };
    rig.pass(0);
    let ended = rig
        .target
        .told
        .iter()
        .filter(|told| *told == "down 0: LoggedOut");
    (pages[0].response(), ended.count())
}

#[test]
fn the_image_pairs_that_are_meant_end() {
    let (third, global) = (ServicePage::THIRD_PARTY, ServicePage::GLOBAL);
    let (executed, invalid) = (ServicePage::EXECUTED, ServicePage::INVALID);
    for (kind, flags, fc_id, answer) in [
        (FrameType::FCP, third, 1, (executed, 1)),
        (FrameType(0), third, 1, (executed, 1)),
        (FrameType::FCP, global, 0, (executed, 1)),
        (FrameType::FCP, 0, 0, (executed, 1)),
        (FrameType::FCP, third, 9, (executed, 0)),
        (FrameType::CT, global, 0, (invalid, 0)),
    ] {
        let mut rig = Rig::up();
        let answered = asked(&mut rig, page(kind, flags, fc_id));
        assert_eq!(answered, answer, "{kind:?} {flags:x}");
    }
}

#[test]
fn who_was_logged_out_by_another_learns_it_by_its_next_command() {
    let mut rig = Rig::up();
    asked(&mut rig, page(FrameType::FCP, ServicePage::GLOBAL, 0));
    rig.inquire();
    rig.pass(3000);
    let told = ["online 000002", "up 0", "down 0: LoggedOut", "up 0"];
    assert_eq!(rig.target.told, told);
    assert_eq!(rig.initiator.told.last().unwrap(), "up 0");
}

#[test]
fn who_has_not_logged_in_ends_nothing() {
    let mut rig = Rig::up();
    let (fc_id, wwpn) = (FcId(1), rig.initiator.port.wwpn());
    let out = rig.reply(&Els::Logo(Logo { fc_id, wwpn }));
    assert_eq!(out, Reply::Accept);
    let all = page(FrameType::FCP, ServicePage::GLOBAL, 0);
    let refused = LsRejectReason::new(reason::UNABLE, explanation::LOGIN_REQUIRED);
    let asked = rig.reply(&Els::Tprlo(vec![all]));
    assert_eq!(asked, Reply::Reject(refused));
}

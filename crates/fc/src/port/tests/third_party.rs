//! TPRLO: one port ends what others have with the target.

use super::rig::{Rig, ms};
use super::services::{reply, up};
use crate::initiator::Data;
use crate::wire::els::{Els, Logo, Reply, ServicePage, explanation, reason};
use crate::wire::frame::FrameType;
use crate::wire::names::FcId;
use scsi::medium::{HeapLease, Lease};

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
    let Reply::Process(pages) = reply(rig, &Els::Tprlo(vec![page])) else {
        panic!("no LS_ACC")
    };
    let now = rig.now;
    rig.run(now);
    let ended = rig
        .target
        .told
        .iter()
        .filter(|told| *told == "down 0: LoggedOut");
    (pages[0].response(), ended.count())
}

#[test]
fn the_image_pairs_that_are_meant_end() {
    for (kind, flags, fc_id, answer) in [
        (
            FrameType::FCP,
            ServicePage::THIRD_PARTY,
            1,
            (ServicePage::EXECUTED, 1),
        ),
        (
            FrameType(0),
            ServicePage::THIRD_PARTY,
            1,
            (ServicePage::EXECUTED, 1),
        ),
        (
            FrameType::FCP,
            ServicePage::GLOBAL,
            0,
            (ServicePage::EXECUTED, 1),
        ),
        (FrameType::FCP, 0, 0, (ServicePage::EXECUTED, 1)),
        (
            FrameType::FCP,
            ServicePage::THIRD_PARTY,
            9,
            (ServicePage::EXECUTED, 0),
        ),
        (
            FrameType::CT,
            ServicePage::GLOBAL,
            0,
            (ServicePage::INVALID, 0),
        ),
    ] {
        let mut rig = up();
        assert_eq!(
            asked(&mut rig, page(kind, flags, fc_id)),
            answer,
            "{kind:?} {flags:x}"
        );
    }
}

#[test]
fn who_was_logged_out_by_another_learns_it_by_its_next_command() {
    let mut rig = up();
    asked(&mut rig, page(FrameType::FCP, ServicePage::GLOBAL, 0));
    let into = HeapLease::from_bytes(vec![0; 36]);
    rig.execute(&[0x12, 0, 0, 0, 36, 0], Data::In(into));
    let later = rig.now + ms(3000);
    rig.run(later);
    let told = ["online 000002", "up 0", "down 0: LoggedOut", "up 0"];
    assert_eq!(rig.target.told, told);
    assert_eq!(rig.initiator.told.last().unwrap(), "up 0");
}

#[test]
fn who_has_not_logged_in_ends_nothing() {
    let mut rig = up();
    let (fc_id, wwpn) = (FcId(1), rig.initiator.port.wwpn());
    assert_eq!(
        reply(&mut rig, &Els::Logo(Logo { fc_id, wwpn })),
        Reply::Accept
    );
    let asked = reply(
        &mut rig,
        &Els::Tprlo(vec![page(FrameType::FCP, ServicePage::GLOBAL, 0)]),
    );
    let Reply::Reject(why) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(
        (why.reason, why.explanation),
        (reason::UNABLE, explanation::LOGIN_REQUIRED)
    );
}

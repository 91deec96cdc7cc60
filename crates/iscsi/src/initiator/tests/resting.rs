//! A session that is laid down by one holder and taken up by another.

use std::time::Duration;

use super::rig::{AGREED, Rig, config, pattern};
use crate::initiator::config::Digest;
use crate::initiator::error::SessionEnd;
use crate::initiator::{Initiator, InitiatorEvent};
use crate::wire::bhs::Itt;
use scsi::residual::Residual;

impl Rig {
    /// Goes on to another holder, whose time begins at zero.
    #[track_caller]
    fn handed_over(self) -> Self {
        let Ok(resting) = self.initiator.rest() else {
            panic!("something is in flight");
        };
        let mut rig = Self {
            initiator: Initiator::resume(resting, Duration::ZERO),
            now: Duration::ZERO,
            ..self
        };
        assert!(matches!(rig.event(), Some(InitiatorEvent::LoggedIn)));
        rig.quiet();
        rig
    }

    /// It does not rest now.
    #[track_caller]
    fn held(self) -> Self {
        match self.initiator.rest() {
            Ok(_) => panic!("it rests"),
            Err(initiator) => Self {
                initiator: *initiator,
                ..self
            },
        }
    }

    /// Reads, by the tag that follows.
    fn reads(&mut self, itt: u32) {
        self.read(7, 512);
        assert_eq!(self.sent().len(), 1);
        self.give_last(itt, 0, 0, 512, Residual::Exact);
        assert_eq!(self.done().id, 7);
    }
}

#[test]
fn numbers_and_tags_go_on() {
    let mut rig = Rig::open();
    rig.reads(0x10000);
    let keys = rig.keys();
    let mut rig = rig.handed_over();
    assert_eq!(rig.keys(), keys);
    rig.write(1, 512);
    // The rig holds CmdSN and ExpStatSN against those of before.
    assert_eq!(rig.sent(), ["Command #20000 F W 2a 512 [0+512]"]);
    rig.respond(0x20000, 0);
    rig.done();
}

#[test]
fn digests_go_on() {
    let mut config = config();
    config.offer.header_digest = Digest::Require;
    config.offer.data_digest = Digest::Require;
    let digests = AGREED.replace("Digest=None", "Digest=CRC32C");
    let mut rig = Rig::logged_in(config, &digests);
    rig.reads(0x10000);
    let mut rig = rig.handed_over();
    rig.reads(0x20000);
    rig.write(1, 512);
    let (_, data) = rig.pdus().remove(0);
    assert_eq!(data, pattern(512));
}

#[test]
fn an_unused_session_rests_and_logs_out_for_its_last_holder() {
    let mut rig = Rig::open().handed_over();
    rig.initiator.logout(rig.now).unwrap();
    assert_eq!(rig.sent(), ["Logout #1fff3 0"]);
}

#[test]
fn a_ping_that_came_meanwhile_is_answered() {
    let mut rig = Rig::open().handed_over();
    rig.ping(Itt::NONE, 5);
    assert_eq!(rig.sent(), ["NOP-Out - ttt=5"]);
    // The answer has left, so that the session may rest again.
    rig.handed_over();
}

#[test]
fn nothing_rests_that_has_something_in_flight() {
    let mut login = Rig::new(config()).held();
    assert!(!login.sent().is_empty());

    let mut rig = Rig::open();
    rig.read(1, 512);
    let mut rig = rig.held();
    rig.sent();
    let mut rig = rig.held();
    rig.give_last(0x10000, 0, 0, 512, Residual::Exact);
    rig.done();

    rig.ping(Itt::NONE, 5);
    let mut rig = rig.held();
    assert_eq!(rig.sent(), ["NOP-Out - ttt=5"]);

    let header = rig.data_in(0x20000, 0, 0, true).encode();
    let bytes = rig.bytes(header, &[]);
    rig.give(&bytes[..20]);
    rig.held();
}

#[test]
fn nothing_rests_while_the_target_owes_an_answer_to_a_ping() {
    let mut rig = Rig::open();
    rig.wait(5);
    let mut rig = rig.held();
    let pinged = rig.sent();
    assert_eq!(pinged.len(), 1);
    assert!(pinged[0].starts_with("NOP-Out #1"), "{pinged:?}");
    rig.held();
}

#[test]
fn nothing_rests_while_a_command_is_not_counted() {
    let mut rig = Rig::open();
    rig.uncounted = 1;
    rig.reads(0x10000);
    rig.held();
}

#[test]
fn a_target_that_left_meanwhile_is_missed_at_once() {
    let mut rig = Rig::open().handed_over();
    rig.initiator.lost();
    assert_eq!(rig.end(), SessionEnd::Lost);
}

//! Task management that is asked for, and what is done about commands that are late.

use super::rig::stories::over_both_transports;
use super::rig::{Carrier, InitiatorRig, LUN, Rig, config};
use crate::initiator::error::SessionEnd;
use crate::initiator::{Fate, InitiatorEvent, IscsiCause, IscsiRefusal, IscsiWhy, Tmf};
use crate::wire::bhs::{Itt, Stamps};
use crate::wire::serial::CmdSn;
use crate::wire::task_management::TaskResponse;
use scsi::wire::lun::Lun;
use std::time::Duration;

impl<C: Carrier> InitiatorRig<C> {
    pub(super) fn answer(&mut self, itt: u32, response: u8) {
        let stamps = self.next_stamps();
        self.answer_with(itt, response, stamps);
    }

    fn answer_with(&mut self, itt: u32, response: u8, stamps: Stamps) {
        let pdu = TaskResponse {
            response,
            information: [1, 2, 3],
            itt: Itt(itt),
            stamps,
        };
        self.send(pdu.encode(), &[]);
    }

    fn manage(&mut self, id: u64, function: Tmf) -> Result<(), IscsiRefusal> {
        self.initiator.manage(self.now, id, LUN, function)
    }

    #[track_caller]
    fn managed(&mut self, expected: u64, answer: Option<u8>) {
        match self.event() {
            Some(InitiatorEvent::Managed { id, response, .. }) => {
                assert_eq!((id, response), (expected, answer));
            }
            other => panic!("{other:?} where task management was expected"),
        }
    }
}

over_both_transports! {
    #[test]
    fn every_function() {
        let stories = [
            (Tmf::AbortTaskSet, "Task #2fff4 2 lun=Some(1) of - 0"),
            (Tmf::ClearAca, "Task #2fff4 3 lun=Some(1) of - 0"),
            (Tmf::ClearTaskSet, "Task #2fff4 4 lun=Some(1) of - 0"),
            (Tmf::LogicalUnitReset, "Task #2fff4 5 lun=Some(1) of - 0"),
            (Tmf::TargetWarmReset, "Task #2fff4 6 lun=Some(0) of - 0"),
            (Tmf::TargetColdReset, "Task #2fff4 7 lun=Some(0) of - 0"),
            (Tmf::AbortTask(1), "Task #2fff4 1 lun=Some(1) of #10000 100"),
            (Tmf::QueryTask(1), "Task #2fff4 9 lun=Some(1) of #10000 100"),
            (Tmf::QueryTaskSet, "Task #2fff4 10 lun=Some(1) of - 0"),
            (Tmf::NexusReset, "Task #2fff4 11 lun=Some(0) of - 0"),
            (
                Tmf::QueryAsynchronousEvent,
                "Task #2fff4 12 lun=Some(1) of - 0",
            ),
        ];
        for (function, expected) in stories {
            let ends = !matches!(
                function,
                Tmf::ClearAca | Tmf::QueryTask(_) | Tmf::QueryTaskSet | Tmf::QueryAsynchronousEvent
            );
            for response in [0, 5, 7, 255] {
                let mut rig = Rig::reading(1, 512);
                rig.manage(9, function).unwrap();
                rig.sends([expected]);
                // A command after it is not covered.
                rig.read(2, 512);
                rig.sent();
                rig.answer(0x2fff4, response);
                if ends && response == 0 {
                    let failed = rig.failed();
                    assert_eq!((failed.id, failed.fate), (1, Fate::Aborted));
                    assert!(matches!(failed.why, IscsiWhy::Own(IscsiCause::Function(_))));
                }
                rig.managed(9, Some(response));
                rig.quiet();
            }
        }
    }

    #[test]
    fn functions_end_commands_of_their_unit_only() {
        let mut rig = Rig::open();
        rig.read(1, 512);
        let mut other = rig.command(2, crate::initiator::Data::None);
        other.lun = Lun::from_index(2);
        rig.initiator.execute(rig.now, other).unwrap();
        rig.sent();
        rig.manage(9, Tmf::LogicalUnitReset).unwrap();
        rig.sent();
        rig.answer(0x3fff4, 0);
        assert_eq!(rig.failed().id, 1);
        rig.managed(9, Some(0));
        rig.respond(0x20001, 0);
        assert_eq!(rig.done().id, 2);
    }

    #[test]
    fn a_command_that_was_not_sent_is_taken_back() {
        let mut rig = Rig::open();
        rig.read(1, 512);
        rig.manage(8, Tmf::QueryTask(1)).unwrap();
        rig.managed(8, Some(0));
        rig.manage(9, Tmf::AbortTask(1)).unwrap();
        assert_eq!(rig.failed().fate, Fate::NeverSent);
        rig.managed(9, Some(0));
        rig.sends_nothing();
        assert_eq!(
            rig.manage(9, Tmf::AbortTask(1)),
            Err(IscsiRefusal::NoCommand)
        );
    }

    #[test]
    fn a_status_that_overtakes_its_abort() {
        let mut rig = Rig::testing(1);
        rig.manage(9, Tmf::AbortTask(1)).unwrap();
        rig.sent();
        rig.respond(0x10000, 0);
        assert_eq!(rig.done().id, 1);
        rig.answer(0x2fff4, 1);
        rig.managed(9, Some(1));
        rig.quiet();
    }

    #[test]
    fn functions_that_the_target_does_not_know() {
        let answer = Rig::AGREED.replace("iSCSIProtocolLevel=2", "iSCSIProtocolLevel=1");
        let mut rig = Rig::logged_in(config(), &answer);
        assert_eq!(rig.manage(1, Tmf::QueryTaskSet), Err(IscsiRefusal::Level));
        assert_eq!(rig.manage(1, Tmf::AbortTaskSet), Ok(()));
    }

    #[test]
    fn a_late_command_is_aborted() {
        let mut rig = Rig::reading(1, 512);
        pass(&mut rig, 29);
        rig.sends_nothing();
        pass(&mut rig, 1);
        rig.sends(["Task #2fff4 1 lun=Some(1) of #10000 100"]);
        rig.answer(0x2fff4, 0);
        let failed = rig.failed();
        assert_eq!((failed.fate, failed.why), (Fate::Aborted, IscsiWhy::Late));
        assert!(rig.initiator.is_idle());
    }

    #[test]
    fn a_late_command_whose_abort_fails_costs_a_reset() {
        for answer in [Some(5), None] {
            let mut rig = Rig::open();
            rig.read(1, 512);
            pass(&mut rig, 20);
            rig.read(2, 512);
            rig.sent();
            pass(&mut rig, 10);
            rig.sends(["Task #3fff4 1 lun=Some(1) of #10000 100"]);
            match answer {
                Some(answer) => rig.answer(0x3fff4, answer),
                None => pass(&mut rig, 10),
            }
            rig.sends(["Task #4fff4 5 lun=Some(1) of - 0"]);
            rig.answer(0x4fff4, 0);
            assert_eq!(rig.failed().why, IscsiWhy::Late);
            let failed = rig.failed();
            assert_eq!(
                (failed.fate, failed.why),
                (Fate::Aborted, IscsiWhy::Own(IscsiCause::Function(5)))
            );
            if answer.is_none() {
                rig.answer(0x3fff4, 1);
            }
            rig.quiet();
            rig.read(3, 512);
            assert_eq!(rig.sent().len(), 1);
        }
    }

    /// A target that stands still would do the reset, of all who use the unit, once it goes on.
    #[test]
    fn a_target_that_is_silent_is_asked_for_life_before_a_reset() {
        for lives in [false, true] {
            let mut config = config();
            config.times.command = Duration::from_secs(2);
            config.times.abort = Duration::from_secs(2);
            let mut rig = Rig::logged_in(config, Rig::AGREED);
            rig.read(1, 512);
            rig.sent();
            rig.wait(2);
            rig.sends(["Task #2fff4 1 lun=Some(1) of #10000 100"]);
            rig.wait(2);
            rig.sends(["NOP-Out #3fff1"]);
            if lives {
                rig.ping(Itt(0x3fff1), u32::MAX);
            }
            rig.wait(5);
            if lives {
                assert!(
                    rig.sent()
                        .iter()
                        .any(|sent| sent.ends_with("5 lun=Some(1) of - 0"))
                );
            } else {
                assert_eq!(rig.failed().fate, Fate::Unknown);
                assert_eq!(rig.end(), SessionEnd::Silent);
            }
        }
    }

    /// That would cost the second command, and every other of its unit, a reset.
    #[test]
    fn an_answer_that_was_waited_for_in_vain_is_none_to_a_later_abort() {
        let mut rig = Rig::reading(1, 512);
        pass(&mut rig, 40);
        assert_eq!(rig.sent().len(), 2, "the abort and the reset");
        rig.answer(0x3fff4, 0);
        assert_eq!(rig.failed().why, IscsiWhy::Late);
        rig.read(2, 512);
        rig.sent();
        pass(&mut rig, 30);
        rig.sends(["Task #5fff4 1 lun=Some(1) of #40000 101"]);
        rig.answer(0x2fff4, 5);
        assert!(rig.sent().is_empty(), "a reset");
        rig.answer(0x5fff4, 0);
        assert_eq!(rig.failed().fate, Fate::Aborted);
    }

    #[test]
    fn an_abort_that_is_never_answered_holds_up_no_logout() {
        let mut rig = Rig::reading(1, 512);
        pass(&mut rig, 40);
        assert_eq!(rig.sent().len(), 2, "an abort and a reset");
        rig.answer(0x3fff4, 0);
        assert_eq!(rig.failed().fate, Fate::Aborted);
        assert!(rig.initiator.is_idle());
        rig.initiator.logout(rig.now).unwrap();
        rig.sends(["Logout #4fff3 0"]);
    }

    #[test]
    fn a_reset_that_fails_costs_the_connection() {
        for answer in [Some(5), None] {
            let mut rig = Rig::reading(1, 512);
            pass(&mut rig, 30);
            rig.sent();
            rig.answer(0x2fff4, 255);
            rig.sent();
            match answer {
                Some(answer) => rig.answer(0x3fff4, answer),
                None => pass(&mut rig, 15),
            }
            assert_eq!(rig.failed().fate, Fate::Unknown);
            assert_eq!(rig.end(), SessionEnd::Stuck);
        }
    }

    #[test]
    fn a_command_that_ends_while_it_is_aborted_costs_no_reset() {
        let mut rig = Rig::testing(1);
        pass(&mut rig, 30);
        rig.sent();
        rig.respond(0x10000, 0);
        assert_eq!(rig.done().id, 1);
        pass(&mut rig, 10);
        rig.sends_nothing();
        rig.answer(0x2fff4, 1);
        rig.quiet();
        pass(&mut rig, 60);
        rig.quiet();
    }

    #[test]
    fn late_commands_are_dealt_with_one_after_the_other() {
        let mut rig = Rig::open();
        for id in 0..6 {
            rig.test_unit(id);
        }
        rig.sent();
        pass(&mut rig, 30);
        for id in [4, 5] {
            let failed = rig.failed();
            assert_eq!((failed.id, failed.fate), (id, Fate::NeverSent));
            assert_eq!(failed.why, IscsiWhy::Late);
        }
        for id in 0..4 {
            let sent = rig.sent();
            assert_eq!(sent.len(), 1, "{sent:?}");
            let itt = 0x7fff4 + 0x10000 * id as u32;
            rig.answer(itt, 0);
            assert_eq!(rig.failed().id, id);
            rig.wait(0);
        }
        rig.sends_nothing();
        assert!(rig.initiator.is_idle());
    }

    #[test]
    fn a_deadline_of_its_own() {
        let mut rig = Rig::open();
        let mut command = rig.command(1, crate::initiator::Data::None);
        command.deadline = Some(Duration::from_secs(3));
        rig.initiator.execute(rig.now, command).unwrap();
        rig.sent();
        pass(&mut rig, 3);
        rig.sends(["Task #2fff4 1 lun=Some(1) of #10000 100"]);
    }

    #[test]
    fn a_rejected_function() {
        let mut rig = Rig::open();
        rig.manage(9, Tmf::ClearTaskSet).unwrap();
        rig.reject_sent(6);
        rig.managed(9, Some(255));
        let mut stamps = rig.next_stamps();
        stamps.exp_cmd_sn = CmdSn(100);
        rig.answer_with(0x1fff4, 0, stamps);
        assert_eq!(
            rig.rule(),
            "an unexpected Task Management Function Response"
        );
    }

    #[test]
    fn no_command_is_sent_while_a_reset_is_under_way() {
        let mut rig = Rig::open();
        rig.test_unit(1);
        assert_eq!(rig.sent().len(), 1);
        rig.manage(7, Tmf::LogicalUnitReset).unwrap();
        rig.test_unit(2);
        rig.sends(["Task #2fff4 5 lun=Some(1) of - 0"]);
        rig.answer(0x0002_fff4, 0);
        assert_eq!(rig.failed().id, 1);
        rig.managed(7, Some(0));
        assert_eq!(rig.sent().len(), 1, "now it leaves");
        rig.quiet();
    }
}

#[test]
fn functions_are_few_and_have_a_time() {
    let mut rig = Rig::open();
    for id in 0..4 {
        rig.manage(id, Tmf::QueryTaskSet).unwrap();
    }
    assert_eq!(rig.manage(4, Tmf::QueryTaskSet), Err(IscsiRefusal::Full));
    rig.sent();
    rig.answer(0x1fff4, 0);
    rig.managed(0, Some(0));
    rig.manage(4, Tmf::QueryTaskSet).unwrap();
    for _ in 0..3 {
        rig.now += Duration::from_secs(4);
        rig.give(&[]);
        rig.initiator.receive(rig.now, &[0]);
    }
    rig.wait(4);
    for _ in 0..4 {
        assert!(matches!(
            rig.event(),
            Some(InitiatorEvent::Managed { response: None, .. })
        ));
    }
    assert_eq!(rig.end(), SessionEnd::Stuck);
}

#[test]
fn a_deadline_that_passed_is_no_deadline_any_more() {
    let mut rig = Rig::open();
    for id in 0..4 {
        rig.test_unit(id);
    }
    rig.sent();
    let mut turns = 0;
    while let Some(deadline) = rig.initiator.next_deadline() {
        assert!(turns < 20, "it wants to be called at {deadline:?} again");
        turns += 1;
        rig.now = rig.now.max(deadline);
        rig.initiator.receive(rig.now, &[0; 1]);
        rig.wait(0);
        rig.sent();
    }
}

/// Time goes by, and the target is alive.
fn pass<C: Carrier>(rig: &mut InitiatorRig<C>, seconds: u64) {
    for _ in 0..seconds {
        rig.now += Duration::from_secs(1);
        rig.ping(Itt::NONE, u32::MAX);
        rig.initiator.expire(rig.now);
    }
}

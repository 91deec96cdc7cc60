//! Pings, Asynchronous Messages and Rejects.

use super::rig::stories::over_both_transports;
use super::rig::{Carrier, InitiatorRig, LUN, Rig};
use crate::initiator::error::SessionEnd;
use crate::initiator::{Fate, InitiatorEvent, IscsiCause, IscsiWhy, TargetNotice};
use crate::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use crate::wire::control::{AsyncMessage, NopIn, Reject};
use scsi::wire::lun::Lun;

impl<C: Carrier> InitiatorRig<C> {
    pub(super) fn ping(&mut self, itt: Itt, ttt: u32) {
        let stamps = match itt {
            Itt::NONE => self.stamps(),
            _ => self.next_stamps(),
        };
        let pdu = NopIn {
            lun: LUN,
            itt,
            ttt: Ttt(ttt),
            stamps,
        };
        self.send(pdu.encode(), &[]);
    }

    fn tell(&mut self, event: u8, parameters: [u16; 3], data: &[u8]) {
        let pdu = AsyncMessage {
            lun: LUN,
            stamps: self.next_stamps(),
            event,
            vendor_code: 77,
            parameters,
        };
        self.send(pdu.encode(), data);
    }

    pub(super) fn reject(&mut self, reason: u8, header: &Bhs) {
        let pdu = Reject {
            reason,
            stamps: self.next_stamps(),
            data_sn: crate::wire::serial::DataSn(0),
        };
        self.send(pdu.encode(), &header.0);
    }

    /// Rejects the first PDU that is sent now.
    pub(super) fn reject_sent(&mut self, reason: u8) {
        let pdus = self.pdus();
        self.reject(reason, &pdus[0].0);
    }

    #[track_caller]
    fn notice(&mut self) -> TargetNotice {
        match self.event() {
            Some(InitiatorEvent::Notice(notice)) => notice,
            other => panic!("{other:?} where a notice was expected"),
        }
    }
}

over_both_transports! {
    #[test]
    fn a_ping_is_answered() {
        let mut rig = Rig::open();
        rig.ping(Itt::NONE, 5);
        rig.sends(["NOP-Out - ttt=5"]);
        rig.ping(Itt::NONE, u32::MAX);
        rig.sends_nothing();
    }

    #[test]
    fn silence_is_asked_after_and_ends_the_connection() {
        let mut rig = Rig::testing(1);
        rig.wait(4);
        rig.sends_nothing();
        rig.wait(1);
        rig.sends(["NOP-Out #2fff1"]);
        rig.wait(4);
        rig.quiet();
        rig.wait(1);
        assert_eq!(rig.failed().fate, Fate::Unknown);
        assert_eq!(rig.end(), SessionEnd::Silent);
    }

    #[test]
    fn an_answered_ping_begins_anew() {
        let mut rig = Rig::open();
        for turn in 1..5 {
            rig.wait(5);
            let itt = turn << 16 | 0xfff1;
            rig.sends([format!("NOP-Out #{itt:x}")]);
            rig.ping(Itt(itt), u32::MAX);
            rig.quiet();
        }
        assert!(rig.initiator.is_idle());
    }

    #[test]
    fn any_byte_is_a_sign_of_life() {
        let mut rig = Rig::open();
        rig.wait(5);
        rig.sent();
        rig.ping(Itt::NONE, 1);
        rig.wait(5);
        assert_eq!(rig.sent(), ["NOP-Out - ttt=1"], "one ping at a time");
        rig.wait(5);
        assert_eq!(rig.end(), SessionEnd::Silent);
    }

    #[test]
    fn asynchronous_messages() {
        let mut rig = Rig::open();
        let sense = [0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x2a, 9, 0, 0, 0, 0];
        let mut data = vec![0, 18];
        data.extend(sense);
        rig.tell(0, [0; 3], &data);
        match rig.notice() {
            TargetNotice::Scsi { lun, sense: told } => {
                assert_eq!((lun, told.as_slice()), (LUN, &sense[..]));
            }
            other => panic!("{other:?}"),
        }
        rig.tell(1, [0, 0, 30], &[]);
        assert_eq!(rig.notice(), TargetNotice::LogoutWanted(30));
        rig.tell(2, [7, 0, 0], &[]);
        assert_eq!(rig.notice(), TargetNotice::ConnectionDrop(7));
        rig.tell(4, [0, 0, 3], &[]);
        assert_eq!(rig.notice(), TargetNotice::Renegotiated);
        rig.sends(["Text #1fff2 F "]);
        rig.tell(255, [0; 3], &[]);
        assert_eq!(rig.notice(), TargetNotice::Other(255, 77));
        rig.tell(6, [0; 3], &[]);
        assert_eq!(rig.notice(), TargetNotice::Other(6, 77));
        rig.tell(0, [0; 3], &[0, 1]);
        assert_eq!(rig.rule(), "a SenseLength beyond the data segment");
    }

    #[test]
    fn a_target_that_drops_the_session() {
        for (event, first) in [(2, 0), (3, 0)] {
            let mut rig = Rig::open();
            rig.test_unit(1);
            rig.tell(event, [first, 4, 5], &[]);
            assert_eq!(rig.failed().fate, Fate::NeverSent);
            let end = SessionEnd::Dropped {
                time2wait: 4,
                time2retain: 5,
            };
            assert_eq!(rig.end(), end);
        }
    }

    #[test]
    fn a_target_that_ends_all_commands_of_a_unit() {
        let mut rig = Rig::open();
        rig.test_unit(1);
        let mut other = rig.command(2, crate::initiator::Data::None);
        other.lun = Lun::from_index(9);
        rig.initiator.execute(rig.now, other).unwrap();
        rig.sent();
        rig.tell(5, [0; 3], &[]);
        assert_eq!(rig.notice(), TargetNotice::Terminated(LUN));
        let failed = rig.failed();
        assert_eq!(
            (failed.id, failed.fate, failed.why),
            (1, Fate::Aborted, IscsiWhy::Own(IscsiCause::Terminated))
        );
        rig.quiet();
        rig.sends(["NOP-Out -"]);
    }

    #[test]
    fn a_command_that_was_rejected_and_not_counted_ends_the_session() {
        for (reason, fate) in [(2, Fate::NeverSent), (6, Fate::Aborted)] {
            let mut rig = Rig::open();
            rig.write(1, 512);
            let pdus = rig.pdus();
            rig.uncounted = 1;
            rig.reject(reason, &pdus[0].0);
            let failed = rig.failed();
            let why = IscsiWhy::Own(IscsiCause::Rejected(reason));
            assert_eq!((failed.fate, failed.why), (fate, why));
            assert_eq!(rig.end(), SessionEnd::CmdSnGap);
        }
    }

    /// It answers pings, which are immediate.
    #[test]
    fn a_target_that_does_not_count_a_command_is_left() {
        let mut rig = Rig::writing(1, 512);
        rig.uncounted = 1;
        rig.wait(5);
        rig.sends(["NOP-Out #2fff1"]);
        rig.quiet();
        rig.ping(Itt(0x2fff1), u32::MAX);
        rig.wait(0);
        assert_eq!(rig.failed().fate, Fate::Unknown);
        assert_eq!(rig.end(), SessionEnd::CmdSnGap);
    }

    #[test]
    fn a_target_that_counts_a_command_is_given_time_to_execute_it() {
        let mut rig = Rig::writing(1, 512);
        for turn in 2..6 {
            rig.wait(5);
            let itt = turn << 16 | 0xfff1;
            rig.sends([format!("NOP-Out #{itt:x}")]);
            rig.ping(Itt(itt), u32::MAX);
            rig.wait(0);
            rig.quiet();
        }
    }

    /// What was counted since is progress, as on a connection so slow that the next command is
    /// still in the middle of its data.
    #[test]
    fn a_target_that_counts_slowly_is_waited_for() {
        let mut rig = Rig::open();
        rig.write(1, 512);
        rig.write(2, 512);
        rig.sent();
        for left in [1, 0] {
            rig.uncounted = left;
            rig.ping(Itt::NONE, u32::MAX);
            rig.wait(5);
            rig.sent();
            rig.quiet();
        }
    }
}

#[test]
fn pings_without_end_are_not_hoarded() {
    let mut rig = Rig::open();
    let pdu = NopIn {
        lun: LUN,
        itt: Itt::NONE,
        ttt: Ttt(1),
        stamps: rig.stamps(),
    };
    let flood = rig.bytes(pdu.encode(), &[]).repeat(1000);
    let used = rig.initiator.receive(rig.now, &flood);
    assert_eq!(used, 64 * 48);
    assert!(rig.initiator.is_stalled());
    assert_eq!(rig.sent().len(), 64);
    assert!(!rig.initiator.is_stalled());
}

#[test]
fn rejects() {
    let mut rig = Rig::open();
    rig.write(1, 3000);
    let pdus = rig.pdus();
    rig.reject(2, &pdus[1].0);
    let opcode = Opcode::DataOut;
    assert_eq!(rig.notice(), TargetNotice::Rejected { reason: 2, opcode });
    rig.reject(9, &pdus[0].0);
    let failed = rig.failed();
    assert_eq!(
        (failed.fate, failed.why),
        (Fate::Aborted, IscsiWhy::Own(IscsiCause::Rejected(9)))
    );
    rig.reject(9, &pdus[0].0);
    let opcode = Opcode::ScsiCommand;
    assert_eq!(rig.notice(), TargetNotice::Rejected { reason: 9, opcode });
    rig.wait(5);
    rig.reject_sent(6);
    rig.quiet();
    rig.wait(5);
    assert_eq!(rig.sent(), ["NOP-Out #3fff1"], "a rejected ping is over");
}

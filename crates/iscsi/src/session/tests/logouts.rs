//! Logout, async messages, and what is known of unit attentions having come (RFC 7143 §4.2.2.2,
//! §11.9, §11.14, §11.15; UNH FFP 13.x).

use scsi::task::{Function, FunctionResult, Tag};
use scsi::wire::asc;
use scsi::wire::sense::Status;
use scsi::wire::sense::{Format, Sense};

use super::rig::{LUN, Rig, over_each_datamover, over_one_datamover, pattern};
use crate::session::SessionEvent;
use crate::wire::bhs::Ttt;

over_each_datamover! {
    #[test]
    fn closing_the_session_or_its_connection_ends_it() {
        for reason in [0, 1] {
            let mut rig = Rig::new();
            rig.send(rig.logout_pdu(1, reason).encode(), &[]);
            assert!(matches!(rig.event(), Some(SessionEvent::LoggedOut)));
            rig.sends(["Logout Response #1 0"]);
            rig.ping(2, b"too late");
            rig.sends_nothing();
        }
    }

    /// Found by fuzzing.
    #[test]
    fn commands_after_the_logout_that_came_before_it_are_not_carried_out() {
        let mut rig = Rig::new();
        let mut logout = rig.logout_pdu(1, 0);
        logout.immediate = false;
        rig.skip_cmd_sn();
        let early = rig.read_pdu(2, 512);
        rig.send(early.encode(), &[]);
        rig.send(logout.encode(), &[]);
        assert!(matches!(rig.event(), Some(SessionEvent::LoggedOut)));
        rig.quiet();
        rig.sends(["Logout Response #1 0"]);
    }

    #[test]
    fn another_connection_is_not_found() {
        let mut rig = Rig::new();
        let mut pdu = rig.logout_pdu(1, 1);
        pdu.cid = 8;
        rig.send(pdu.encode(), &[]);
        rig.sends(["Logout Response #1 1"]);
        rig.quiet();
    }

    #[test]
    fn recovery_is_not_supported() {
        let mut rig = Rig::new();
        rig.send(rig.logout_pdu(1, 2).encode(), &[]);
        rig.sends(["Logout Response #1 2"]);
        rig.ping(2, b"");
        rig.sends(["NOP-In #2 \"\""]);
    }

    #[test]
    fn a_reserved_reason_is_rejected() {
        let mut rig = Rig::new();
        rig.send(rig.logout_pdu(1, 3).encode(), &[]);
        rig.sends(["Reject 09 of LogoutRequest"]);
    }

    #[test]
    fn a_discovery_session_can_only_be_closed_whole() {
        let mut rig = Rig::discovery();
        let pdu = rig.logout_pdu(1, 1);
        rig.send(pdu.encode(), &[]);
        rig.sends(["Reject 04 of LogoutRequest"]);
        rig.send(rig.logout_pdu(2, 0).encode(), &[]);
        rig.sends(["Logout Response #2 0"]);
    }

    #[test]
    fn a_numbered_logout_waits_for_the_commands_before_it() {
        let mut rig = Rig::new();
        let first = rig.read_pdu(1, 0);
        let mut pdu = rig.logout_pdu(2, 0);
        pdu.immediate = false;
        pdu.cmd_sn = rig.next_cmd_sn();
        rig.send(pdu.encode(), &[]);
        rig.sends_nothing();
        rig.send(first.encode(), &[]);
        rig.executed();
        rig.obeys(&[]);
        rig.sends(["Logout Response #2 0"]);
    }

    #[test]
    fn a_target_that_goes_down_asks_for_logout_and_does_not_wait_for_ever() {
        let mut rig = Rig::new();
        rig.session.request_logout(rig.now, 5);
        rig.sends(["Async 1 [0, 0, 5] []"]);
        rig.wait(4);
        rig.quiet();
        rig.wait(1);
        assert_eq!(rig.rule(), "no logout after a logout request");
    }

    #[test]
    fn the_time_to_log_out_begins_when_it_is_asked_for() {
        let mut rig = Rig::new();
        rig.now += std::time::Duration::from_secs(20);
        rig.session.request_logout(rig.now, 5);
        rig.wait(4);
        rig.quiet();
        rig.wait(1);
        assert_eq!(rig.rule(), "no logout after a logout request");
    }
}

#[test]
fn commands_end_before_the_logout_is_answered() {
    let mut rig = Rig::new();
    let one = rig.read(1, 2048);
    let two = rig.granted(2, 4096, true, &[]);
    rig.data_in(one.tag, 0, &pattern(2048));
    rig.send(rig.logout_pdu(3, 0).encode(), &[]);
    let (id, function) = rig.managing();
    assert_eq!(function, Function::NexusReset);
    assert_eq!(
        rig.sent(),
        [""; 0],
        "data and R2Ts of ended commands are dropped"
    );
    rig.good(one.tag, 2048, 0);
    rig.aborted(two);
    rig.managed(id, FunctionResult::Complete);
    assert!(matches!(rig.event(), Some(SessionEvent::LoggedOut)));
    rig.sends(["Logout Response #3 0"]);
}

/// Seed 48 of the simulator's `cut connections`: its host had asked to abort the read.
#[test]
fn what_has_ended_is_answered_before_the_logout() {
    let mut rig = Rig::new();
    let one = rig.read(1, 2048);
    let two = rig.read(2, 512);
    rig.data_in(two.tag, 0, &pattern(512));
    rig.answer(one.tag, 2048);
    rig.send(rig.logout_pdu(3, 0).encode(), &[]);
    rig.obeys(&[two.tag]);
    assert!(matches!(rig.event(), Some(SessionEvent::LoggedOut)));
    rig.sends([
        "Data-In #1 sn=0 [0+1024]",
        "Data-In #1 sn=1 [1024+1024] F S 00",
        "Logout Response #3 0",
    ]);
}

#[test]
fn commands_still_end_while_a_logout_is_asked_for() {
    let mut rig = Rig::new();
    let tag = rig.granted(1, 1024, true, &[]);
    rig.session.request_logout(rig.now, 5);
    rig.sends(["R2T #1 ttt=0 sn=0 [0+1024]", "Async 1 [0, 0, 5] []"]);
    rig.data_out(1, Ttt(0), 0, 0, true, &pattern(1024));
    rig.got_data();
    rig.good(tag, 0, 1024);
    rig.sends(["Response #1 00"]);
}

#[test]
fn a_changed_capacity_is_told_to_those_who_speak_rfc_7144() {
    for (protocol_level, messages) in [(1, 0), (2, 1)] {
        let mut rig = Rig::agreed(|keys| keys.protocol_level = protocol_level);
        rig.session.attention(LUN, 0x2a09);
        rig.session.attention(LUN, 0x2900);
        let pdus = rig.pdus();
        assert_eq!(pdus.len(), messages);
        for (_, data) in pdus {
            assert_eq!(
                (&data[..2], data[4], &data[14..16]),
                (&[0, 18][..], 6, &[0x2a, 9][..])
            );
        }
    }
}

const FORMATS: [Format; 2] = [Format::Fixed, Format::Descriptor];

fn end_with(rig: &mut Rig, tag: Tag, code: u16, format: Format) {
    let sense = Sense::attention(code).encode(format);
    rig.complete(tag, Status::CheckCondition, sense.as_slice(), 0, 0);
}

#[test]
fn an_attention_has_come_when_its_response_is_acknowledged() {
    for format in FORMATS {
        let mut rig = Rig::new();
        let tag = rig.read(1, 8).tag;
        // Its ExpStatSN is from before the response.
        let late = rig.read_pdu(2, 8);
        end_with(&mut rig, tag, asc::POWER_ON_OR_RESET, format);
        assert!(!rig.session.has_told(), "it waits");
        rig.sent();
        assert!(!rig.session.has_told(), "it is on its way");
        rig.send(late.encode(), &[]);
        assert!(!rig.session.has_told(), "nobody has said that it came");
        rig.ping(3, &[]);
        assert!(rig.session.has_told());
    }
}

#[test]
fn an_attention_whose_command_failed_otherwise_has_not_come() {
    let mut rig = Rig::new();
    let tag = rig.write(1, 4096, true, &[]).tag;
    // More than was announced.
    rig.data_out(1, Ttt::NONE, 0, 0, true, &[1; 512]);
    end_with(&mut rig, tag, asc::POWER_ON_OR_RESET, Format::Fixed);
    rig.sent();
    rig.ping(2, &[]);
    assert!(!rig.session.has_told());
}

#[test]
fn other_answers_and_losses_need_not_come() {
    for format in FORMATS {
        let mut rig = Rig::new();
        let tag = rig.read(1, 8).tag;
        end_with(&mut rig, tag, asc::NEXUS_LOSS, format);
        let tag = rig.read(2, 8).tag;
        rig.good(tag, 8, 0);
        assert!(rig.session.has_told());
    }
}

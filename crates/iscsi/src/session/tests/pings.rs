//! NOP-Out and NOP-In (RFC 7143 §11.18, §11.19; UNH FFP 15.x).

use std::time::Duration;

use super::rig::{FIRST_CMD_SN, Rig, over_each_datamover, over_one_datamover, pattern};
use crate::wire::bhs::{Itt, Ttt};

over_each_datamover! {
    #[test]
    fn a_ping_is_echoed() {
        let mut rig = Rig::new();
        rig.ping(1, b"hello");
        rig.ping(2, b"");
        rig.sends(["NOP-In #1 \"hello\"", "NOP-In #2 \"\""]);
        assert_eq!(rig.exp_cmd_sn, FIRST_CMD_SN);
    }

    #[test]
    fn a_numbered_ping_is_acknowledged_by_exp_cmd_sn() {
        let mut rig = Rig::new();
        let mut ping = rig.nop_pdu(Itt(1));
        ping.immediate = false;
        ping.cmd_sn = rig.next_cmd_sn();
        rig.send(ping.encode(), &[]);
        rig.sends(["NOP-In #1 \"\""]);
        assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (101, 116));
    }

    #[test]
    fn a_nop_out_without_a_tag_is_not_answered() {
        let mut rig = Rig::new();
        rig.send(rig.nop_pdu(Itt::NONE).encode(), &[]);
        rig.quiet();
        rig.sends_nothing();
    }

    #[test]
    fn a_numbered_nop_out_without_a_tag_is_rejected() {
        let mut rig = Rig::new();
        let mut nop = rig.nop_pdu(Itt::NONE);
        nop.immediate = false;
        rig.send(nop.encode(), &[]);
        rig.sends(["Reject 04 of NopOut"]);
        assert_eq!(rig.exp_cmd_sn, FIRST_CMD_SN);
    }

    #[test]
    fn silence_is_answered_by_a_ping_and_then_by_the_end() {
        let mut rig = Rig::new();
        assert_eq!(rig.session.next_deadline(), Some(Duration::from_secs(30)));
        rig.wait(29);
        rig.sends_nothing();
        rig.wait(1);
        rig.sends(["NOP-In - ttt=1 \"\""]);
        assert_eq!(rig.session.next_deadline(), Some(Duration::from_secs(90)));
        rig.wait(60);
        assert_eq!(rig.rule(), "silence");
        assert_eq!(rig.session.next_deadline(), None);
    }

    #[test]
    fn a_discovery_session_is_not_pinged_but_ends_all_the_same() {
        let mut rig = Rig::discovery();
        rig.wait(30);
        rig.sends_nothing();
        rig.wait(60);
        assert_eq!(rig.rule(), "silence");
    }

    #[test]
    fn an_idle_session_gives_its_memory_back() {
        let mut rig = Rig::new();
        rig.ping(1, &pattern(4096));
        let command = rig.read(2, 8);
        rig.good(command.tag, 8, 0);
        rig.sent();
        rig.wait(30);
        assert_eq!(rig.session.collected.capacity(), 0);
        assert!(size_of_val(&rig.session) < 4096);
    }
}

#[test]
fn an_echo_is_no_longer_than_what_the_initiator_accepts() {
    let mut rig = Rig::new();
    rig.ping(1, &pattern(4096));
    assert_eq!(rig.pdus()[0].1, pattern(4096)[..1024]);
}

#[test]
fn any_byte_ends_the_silence() {
    let mut rig = Rig::new();
    rig.wait(30);
    pong(&mut rig, 1);
    rig.wait(59);
    rig.wait(0);
    rig.quiet();
}

fn pong(rig: &mut Rig, ttt: u32) {
    let mut pong = rig.nop_pdu(Itt::NONE);
    pong.ttt = Ttt(ttt);
    rig.send(pong.encode(), &[]);
}

#[test]
fn who_is_idle_is_asked_less_often_until_it_commands_again() {
    let mut rig = Rig::new();
    for (number, silence) in [(1, 30), (2, 60), (3, 120), (4, 120)] {
        rig.wait(silence - 1);
        rig.sends_nothing();
        rig.wait(1);
        rig.sends([format!("NOP-In - ttt={number} \"\"")]);
        pong(&mut rig, number);
    }
    let command = rig.read(1, 8);
    rig.good(command.tag, 8, 0);
    rig.sent();
    rig.wait(30);
    rig.sends(["NOP-In - ttt=5 \"\""]);
}

#[test]
fn a_peer_that_does_not_read_its_echoes_stops_its_own_commands() {
    let mut rig = Rig::new();
    let ping = rig.nop_pdu(Itt(1)).encode();
    let stream: Vec<u8> = (0..40).flat_map(|_| ping.0).collect();
    let used = rig.session.receive(rig.now, &stream);
    assert_eq!(used, 32 * 48);
    assert!(rig.session.is_stalled());
    assert_eq!(rig.session.receive(rig.now, &stream[used..]), 0);
    assert_eq!(rig.sent().len(), 32);
    assert_eq!(rig.session.receive(rig.now, &stream[used..]), 8 * 48);
}

/// What a session gives back when it is silent is not that of a command at the medium.
#[test]
fn a_command_that_lasts_longer_than_the_silence_is_answered() {
    let mut rig = Rig::new();
    let read = rig.read(1, 8);
    let write = rig.write(2, 2048, true, &[]);
    rig.wait(30);
    rig.sends(["NOP-In - ttt=1 \"\""]);
    rig.answer(read.tag, 8);
    rig.grant(write.tag, 0, 2048);
    rig.sends(["Data-In #1 sn=0 [0+8] F S 00", "R2T #2 ttt=1 sn=0 [0+2048]"]);
}

/// It sends an answer to no ping now and then, which asks for none.
fn give_sign_of_life(rig: &mut Rig) {
    rig.send(rig.nop_pdu(Itt::NONE).encode(), &[]);
}

#[test]
fn who_pings_but_takes_nothing_is_given_up() {
    let mut rig = Rig::new();
    rig.ping(1, b"hello");
    assert!(rig.put_out());
    for _ in 0..12 {
        rig.quiet();
        give_sign_of_life(&mut rig);
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "the peer does not read its data");
}

/// Each send takes it 50 s.
#[test]
fn who_takes_slowly_is_not() {
    let mut rig = Rig::new();
    for itt in 1..=10 {
        rig.ping(itt, b"hello");
        assert!(rig.put_out());
        rig.wait(25);
        give_sign_of_life(&mut rig);
        rig.wait(25);
    }
    assert!(!rig.put_out());
    // Nothing is in flight any more.
    for _ in 0..12 {
        give_sign_of_life(&mut rig);
        rig.wait(20);
    }
    rig.quiet();
}

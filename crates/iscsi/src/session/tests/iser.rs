//! What only iSER has: data that goes by RDMA Writes and Reads, STags, and headers of iSER (RFC
//! 7145 §7.3, §8, §9).
//!
//! The rig itself checks of each response that it invalidates an STag of its command, if the
//! command has one, and that no other message does.

use scsi::medium::{HeapLease, Lease as _};
use scsi::task::{Function, Tag};
use scsi::wire::asc;
use scsi::wire::sense::Status;

use super::rig::{IserRig as Rig, LUN, bytes_of, keys, pattern};
use crate::parameters::Operational;
use crate::wire::bhs::{Itt, Ttt};

mod draining;
mod headers;
mod pair;
mod stream;

/// What ib_iser agrees upon with us, but with short lengths.
fn solicited() -> Operational {
    Operational {
        initial_r2t: true,
        ..keys()
    }
}

/// Memory that is lent for a write.
fn lend(rig: &mut Rig, tag: Tag, offset: u32, len: usize) -> HeapLease {
    let lease = HeapLease::from_bytes(vec![0xee; len]);
    rig.session.receive_data_out(tag, offset, lease.clone());
    lease
}

#[test]
fn a_read_is_written_into_the_initiators_memory() {
    let mut rig = Rig::new();
    let command = rig.read(1, 4500);
    rig.data_in(command.tag, 0, &pattern(4500)[..3000]);
    rig.sends_nothing();
    assert_eq!(rig.peer.memory(1)[..3000], pattern(3000));
    rig.data_in(command.tag, 3000, &pattern(4500)[3000..]);
    rig.good(command.tag, 4500, 0);
    rig.sends(["Response #1 00"]);
    assert_eq!(rig.peer.memory(1), pattern(4500));
    assert_eq!((rig.exp_cmd_sn, rig.max_cmd_sn), (101, 116));
}

#[test]
fn what_a_read_does_not_expect_is_cut_off() {
    let mut rig = Rig::new();
    let command = rig.read(1, 600);
    rig.answer(command.tag, 1024);
    rig.sends(["Response #1 00 O=424"]);
    assert_eq!(rig.peer.memory(1), pattern(1024)[..600]);
}

#[test]
fn a_check_condition_invalidates_the_read_stag_too() {
    let mut rig = Rig::new();
    let command = rig.read(1, 512);
    let sense = [0x70, 0, 3, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
    rig.complete(command.tag, Status::CheckCondition, &sense, 0, 0);
    rig.sends(["Response #1 02 U=512 sense=3/1100"]);
}

/// The longest sense data goes with the longest header.
#[test]
fn sense_data_of_any_length_goes_along() {
    for len in [18, 71, 72] {
        let mut rig = Rig::new();
        let command = rig.read(1, 512);
        let mut sense = vec![0x70; len];
        sense[2] = 3;
        rig.complete(command.tag, Status::CheckCondition, &sense, 0, 0);
        rig.sends(["Response #1 02 U=512 sense=3/7070"]);
    }
}

#[test]
fn a_write_is_read_behind_its_immediate_data() {
    for manner in [None, Some(true), Some(false)] {
        let mut keys = solicited();
        keys.iser.solicited_only = manner;
        let mut rig = Rig::with(keys);
        let command = rig.write(1, 8192, true, &pattern(8192)[..1000]);
        let memory = lend(&mut rig, command.tag, 0, 5000);
        lend(&mut rig, command.tag, 5000, 3192);
        rig.sends_nothing();
        assert_eq!(rig.peer.requests, [2048, 1952, 2048, 1144], "{manner:?}");
        assert_eq!(bytes_of(&memory), pattern(5000));
        let first = (command.tag, 0, pattern(5000));
        assert_eq!(rig.got_data(), first);
        let second = (command.tag, 5000, pattern(8192)[5000..].to_vec());
        assert_eq!(rig.got_data(), second);
        rig.good(command.tag, 0, 8192);
        rig.sends(["Response #1 00"]);
    }
}

#[test]
fn a_write_that_is_all_immediate_reads_nothing() {
    let mut rig = Rig::with(solicited());
    let tag = rig.granted(1, 1000, true, &pattern(1000));
    assert_eq!(rig.got_data(), (tag, 0, pattern(1000)));
    rig.good(tag, 0, 1000);
    rig.sends(["Response #1 00"]);
    assert_eq!(rig.peer.requests, [0; 0]);
}

#[test]
fn reads_beyond_ord_wait_and_responses_pass_them() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let write = rig.granted(1, 12_288, true, &[]);
    let read = rig.read(2, 8);
    rig.answer(read.tag, 8);
    rig.sends(["Response #2 00"]);
    assert_eq!(rig.peer.requests, [2048; 4], "ORD is 4");
    rig.peer.is_silent = false;
    rig.sends_nothing();
    assert_eq!(rig.peer.requests, [2048; 6]);
    assert_eq!(rig.got_data(), (write, 0, pattern(12_288)));
}

#[test]
fn data_of_a_read_that_was_aborted_does_not_leave() {
    let mut rig = Rig::new();
    let command = rig.read(1, 512);
    rig.data_in(command.tag, 0, &pattern(512));
    assert_eq!(rig.session.data_in_queued(), 512);
    rig.aborted(command.tag);
    assert_eq!(rig.session.data_in_queued(), 0);
    rig.sends(["NOP-In - \"\""]);
    assert_eq!(rig.peer.memory(1), [0; 512]);
}

/// ib_iser and libiscsi have receives for 128 bytes of data.
#[test]
fn a_reject_is_no_longer_than_a_small_receive() {
    for (ahs, told) in [(80, 128), (84, 48)] {
        let mut rig = Rig::new();
        let mut bhs = rig.read_pdu(1, 8).encode();
        bhs.set_ahs_len(ahs);
        let segment = [&(ahs as u16 - 3).to_be_bytes()[..], &[0x3f; 128]].concat();
        rig.give_command(bhs, &segment[..ahs]);
        assert_eq!(rig.rule(), "an unassigned AHSType");
        assert_eq!(rig.message_lengths(), [28 + 48 + told]);
    }
}

#[test]
fn texts_and_echoes_are_as_long_as_was_agreed_upon() {
    let mut rig = Rig::new();
    rig.ping(1, &[b'x'; 2000]);
    assert_eq!(rig.message_lengths(), [28 + 48 + 1024]);
}

fn attention(rig: &mut Rig) {
    rig.session.attention(LUN, asc::CAPACITY_CHANGED);
}

const ATTENTION: &str = "Async 0";

#[track_caller]
fn sends_attentions(rig: &mut Rig, count: usize) {
    let sent = rig.sent();
    assert_eq!(sent.len(), count, "{sent:?}");
    assert!(sent.iter().all(|line| line.starts_with(ATTENTION)));
}

#[test]
fn one_unexpected_pdu_and_one_ping_go_unacknowledged() {
    let mut rig = Rig::new();
    for _ in 0..3 {
        attention(&mut rig);
    }
    sends_attentions(&mut rig, 1);
    rig.wait(30);
    rig.sends(["NOP-In - ttt=1 \"\""]);
    let read = rig.read(1, 0);
    rig.good(read.tag, 0, 0);
    // It acknowledges the first; the ping is not answered.
    let sent = rig.sent();
    assert!(sent[0].starts_with(ATTENTION), "{sent:?}");
    assert_eq!(sent[1..], ["Response #1 00"]);
    rig.ping(2, b"");
    let sent = rig.sent();
    assert!(sent[0].starts_with(ATTENTION), "{sent:?}");
    assert_eq!(sent[1..], ["NOP-In #2 \"\""]);
}

#[test]
fn a_ping_is_over_when_it_is_answered() {
    let mut rig = Rig::new();
    for expected in ["NOP-In - ttt=1 \"\"", "NOP-In - ttt=2 \"\""] {
        // Its StatSN is that of the next response, so it is never acknowledged.
        rig.wait(60);
        rig.sends([expected]);
        let mut pong = rig.nop_pdu(Itt::NONE);
        pong.ttt = Ttt(if expected.contains("=1") { 1 } else { 2 });
        rig.send(pong.encode(), &[]);
    }
    rig.quiet();
}

/// The initiator has a receive for the response that a Reject takes the place of.
#[test]
fn rejects_in_place_of_responses_are_expected() {
    let mut rig = Rig::new();
    for itt in 1..4 {
        rig.data_out(itt, Ttt(0), 0, 0, true, &[7; 16]);
        rig.send_read(itt, 8, |pdu| pdu.last = false);
    }
    rig.sends([
        "Reject 04 of DataOut",
        "Reject 09 of ScsiCommand",
        "Reject 09 of ScsiCommand",
        "Reject 09 of ScsiCommand",
    ]);
}

#[test]
fn an_initiator_may_declare_how_many_it_takes() {
    for (declared, leave) in [(2, 1), (4, 3), (u32::MAX, 8), (0, 8)] {
        let mut rig = Rig::agreed(|keys| keys.iser.unexpected_pdus = Some(declared));
        for _ in 0..8 {
            attention(&mut rig);
        }
        sends_attentions(&mut rig, leave);
    }
}

#[test]
fn what_waits_to_be_acknowledged_is_bounded() {
    let mut rig = Rig::new();
    for _ in 0..40 {
        attention(&mut rig);
        rig.sent();
    }
    assert_eq!(rig.session.queued(), 0, "nothing can leave");
    assert!(!rig.session.is_stalled());
    let mut left = 0;
    for itt in 1..=20 {
        rig.ping(itt, b"");
        let sent = rig.sent();
        left += sent
            .iter()
            .filter(|line| line.starts_with(ATTENTION))
            .count();
    }
    assert_eq!(left, 16);
}

#[test]
fn what_is_to_be_done_is_counted() {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let tag = rig.granted(1, 12_288, true, &[]);
    assert_eq!(
        rig.session.queued(),
        1,
        "a lease, however many reads it takes"
    );
    rig.post();
    assert_eq!(rig.session.queued(), 1, "reads that wait for ORD");
    rig.aborted(tag);
    assert_eq!(
        rig.session.queued(),
        4 + 1,
        "reads to be given up, a NOP-In"
    );
    rig.sends(["NOP-In - \"\""]);
    assert_eq!(rig.session.queued(), 0);
    rig.peer.is_silent = false;
    rig.sends_nothing();
}

/// An RDMA Write does not tell the initiator that the window has opened.
#[test]
fn an_abort_by_others_is_told_though_data_leaves() {
    let mut rig = Rig::new();
    let running = rig.read(1, 1024);
    let aborted = rig.read(2, 512);
    rig.data_in(running.tag, 0, &pattern(512));
    rig.aborted(aborted.tag);
    rig.sends(["NOP-In - \"\""]);
}

#[test]
fn bytes_that_wait_are_counted_until_they_have_left() {
    let mut rig = Rig::new();
    let command = rig.read(1, 4500);
    rig.data_in(command.tag, 0, &pattern(4500));
    assert_eq!(rig.session.data_in_queued(), 4500);
    rig.post();
    assert_eq!(rig.session.data_in_queued(), 4500);
    rig.sent();
    assert_eq!(rig.session.data_in_queued(), 0);
}

/// What has left the queue pair is complete, and may still be on its way.
#[test]
fn an_initiator_that_takes_nothing_of_what_was_put_out_is_given_up() {
    let mut rig = Rig::new();
    let command = rig.read(1, 512);
    rig.answer(command.tag, 512);
    assert_eq!(rig.message_lengths().len(), 1);
    rig.session.has_put_out(true);
    for itt in 2..=13 {
        rig.quiet();
        rig.ping(itt, b"");
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "the peer does not read its data");
}

#[test]
fn an_initiator_that_takes_nothing_is_given_up() {
    let mut rig = Rig::new();
    let command = rig.read(1, 512);
    rig.answer(command.tag, 512);
    rig.post();
    for itt in 2..=13 {
        rig.quiet();
        rig.ping(itt, b"");
        rig.wait(10);
    }
    assert_eq!(rig.rule(), "the peer does not read its data");
}

#[test]
fn a_logout_keeps_what_has_ended_and_drops_the_rest() {
    let mut rig = Rig::new();
    let ended = rig.read(1, 512);
    let running = rig.read(2, 512);
    rig.answer(ended.tag, 512);
    rig.data_in(running.tag, 0, &pattern(512));
    rig.send(rig.logout_pdu(3, 0).encode(), &[]);
    assert_eq!(rig.obeys(&[running.tag]), Function::NexusReset);
    rig.sends(["Response #1 00", "Logout Response #3 0"]);
}

#[test]
fn the_peer_may_end_the_stream() {
    let mut rig = Rig::new();
    rig.read(1, 512);
    rig.peer.theirs.end();
    rig.sends_nothing();
    assert_eq!(
        rig.rule(),
        "a Terminate of the peer (RDMAP, Local Catastrophic Error): a local catastrophic error"
    );
}

//! Initiators that do not take what they are sent.

use super::rig::{BLOCK, End, Rig, cdb10, cdb16, pattern, swap_cdb};
use crate::device::flow::{DATA_IN_LIMIT, DATA_OUT_LIMIT};
use crate::medium::{Lease as _, MediumError, MediumOp, SEGMENT_BYTES};
use crate::nexus::NexusId;
use crate::task::{Attribute, Function, FunctionResult, Tag};
use crate::wire::sense::Status;

const DEAF: NexusId = NexusId(0);
const OTHER: NexusId = NexusId(1);

/// Blocks in 1 MiB.
const MEBI: u32 = 2048;

/// What may be on its way to one nexus.
const MOST: usize = DATA_IN_LIMIT + SEGMENT_BYTES as usize;

/// Two nexuses, of which the first takes nothing.
fn rig() -> Rig {
    let mut rig = Rig::hosts(2);
    rig.deaf = Some(DEAF);
    rig
}

fn read(rig: &mut Rig, lba: u64, blocks: u32) -> Tag {
    let len = blocks as usize * BLOCK;
    rig.send(&cdb16(0x88, 0, lba, blocks), len)
}

fn take_everything(rig: &mut Rig) {
    while rig.untaken > 0 {
        assert!(rig.untaken < MOST, "{} wait", rig.untaken);
        rig.take(rig.untaken.min(300_000));
    }
}

#[test]
fn who_does_not_read_stops_his_own_reads() {
    let mut rig = rig();
    let data = pattern(MEBI as usize, 1);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    let reads: Vec<Tag> = (0..64).map(|_| read(&mut rig, 0, MEBI)).collect();
    assert!((DATA_IN_LIMIT..MOST).contains(&rig.untaken));
    let cdb = cdb16(0x88, 0, 0, MEBI);
    for _ in 0..8 {
        let len = data.len();
        rig.good_by(OTHER, &cdb, len);
    }
    take_everything(&mut rig);
    for tag in reads {
        assert_eq!(rig.status(tag), Status::Good);
        assert_eq!(rig.data(tag), data);
    }
}

#[test]
fn what_the_medium_was_asked_for_counts_too() {
    let mut rig = rig().holding();
    for _ in 0..64 {
        read(&mut rig, 0, MEBI);
    }
    assert_eq!(rig.held.len(), DATA_IN_LIMIT / SEGMENT_BYTES as usize);
    while !rig.held.is_empty() {
        rig.answer(0);
        let reading = rig.held.len() * SEGMENT_BYTES as usize;
        assert!(rig.untaken + reading < MOST);
    }
    rig.hold = false;
    take_everything(&mut rig);
    assert_eq!(rig.ended.values().filter(|end| is_good(end)).count(), 64);
}

fn is_good(end: &End) -> bool {
    matches!(end, End::Completed(completed) if completed.status == Status::Good)
}

#[test]
fn a_read_that_fails_makes_room() {
    let mut rig = rig().holding();
    for _ in 0..9 {
        read(&mut rig, 0, 512);
    }
    assert_eq!(rig.held.len(), 8);
    rig.fail = Some(MediumError::Read);
    rig.answer(0);
    assert_eq!(rig.held.len(), 8, "the ninth has begun");
}

#[test]
fn reads_of_one_segment_go_on_in_the_order_they_came() {
    let mut rig = rig();
    let tags: Vec<Tag> = (0..32).map(|_| read(&mut rig, 0, 256)).collect();
    rig.order.clear();
    take_everything(&mut rig);
    assert_eq!(rig.order, tags[16..]);
}

#[test]
fn a_short_read_does_not_wait_for_all_of_a_long_one() {
    let mut rig = rig();
    let long = read(&mut rig, 0, 4 * MEBI);
    let short = read(&mut rig, 0, 8);
    assert_eq!(rig.data_in.get(&(DEAF, short)), None);
    rig.take(2 * SEGMENT_BYTES as usize);
    assert_eq!(rig.status(short), Status::Good);
    assert!(!rig.ended.contains_key(&(DEAF, long)));
    take_everything(&mut rig);
    assert_eq!(rig.data(long).len(), 4 << 20);
}

#[test]
fn writes_and_queries_go_on() {
    let mut rig = rig();
    read(&mut rig, 0, 4 * MEBI);
    let data = pattern(MEBI as usize, 2);
    rig.good(&cdb16(0x8a, 0, 4096, MEBI), data.clone());
    assert_eq!(rig.disks[0][4096 * BLOCK..][..data.len()], data);
    rig.good(&[0x12, 0, 0, 0, 36, 0], 36);
}

#[test]
fn who_waits_is_aborted_at_once() {
    let mut rig = rig().holding();
    let reads: Vec<Tag> = (0..20).map(|_| read(&mut rig, 0, 512)).collect();
    let id = rig.manage(DEAF, Function::AbortTask(reads[19]));
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert_eq!(rig.ended[&(DEAF, reads[19])], End::Aborted);
    let id = rig.manage(DEAF, Function::AbortTaskSet);
    assert_eq!(
        rig.ended
            .values()
            .filter(|end| **end == End::Aborted)
            .count(),
        12
    );
    while !rig.held.is_empty() {
        assert_eq!(rig.answer_to(id), None);
        rig.answer(0);
    }
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    let late = read(&mut rig, 0, 8);
    rig.answer(0);
    assert_eq!(rig.status(late), Status::Good, "there is room again");
}

#[test]
fn a_long_read_that_waits_is_aborted_when_the_medium_is_done() {
    let mut rig = rig().holding();
    let long: Vec<Tag> = (0..4).map(|_| read(&mut rig, 0, 4 * MEBI)).collect();
    rig.manage(DEAF, Function::AbortTask(long[0]));
    assert_eq!(rig.ended.get(&(DEAF, long[0])), None);
    while !rig.ended.contains_key(&(DEAF, long[0])) {
        rig.answer(0);
    }
    assert_eq!(rig.ended[&(DEAF, long[0])], End::Aborted);
    rig.hold = false;
    rig.answer_all();
    take_everything(&mut rig);
    assert!(long[1..].iter().all(|tag| rig.data(*tag).len() == 4 << 20));
}

#[test]
fn a_nexus_is_lost_with_all_that_waits() {
    let mut rig = rig();
    let reads: Vec<Tag> = (0..20).map(|_| read(&mut rig, 0, MEBI)).collect();
    rig.lose(DEAF);
    assert_eq!(rig.gone, [DEAF]);
    assert_eq!(rig.ended[&(DEAF, reads[19])], End::Aborted);
    rig.untaken = 0;
    rig.log_in(DEAF, 1);
    let fresh = read(&mut rig, 0, 8);
    assert_eq!(rig.status(fresh), Status::Good);
}

/// COMPARE AND WRITE of zeros by sevens, of the other nexus.
fn swap(rig: &mut Rig, lba: u64, blocks: u8) -> Tag {
    let len = usize::from(blocks) * BLOCK;
    let data = [vec![0; len], vec![7; len]].concat();
    rig.send_by(OTHER, &swap_cdb(lba, blocks), data)
}

#[test]
fn nobodys_lock_waits_for_a_read_that_has_not_begun() {
    let mut rig = rig();
    read(&mut rig, 4096, 2 * MEBI);
    read(&mut rig, 4096, MEBI);
    let waiting = read(&mut rig, 0, 8);
    let other = swap(&mut rig, 0, 1);
    assert_eq!(rig.completed(OTHER, other).status, Status::Good);
    take_everything(&mut rig);
    assert_eq!(rig.data(waiting)[..BLOCK], [7; BLOCK]);
}

#[test]
fn a_lock_does_not_wait_for_a_long_read_at_rest() {
    let mut rig = rig();
    read(&mut rig, 0, 4 * MEBI);
    let next = (rig.untaken / BLOCK) as u64;
    for lba in [next - 8, next] {
        let other = swap(&mut rig, lba, 8);
        assert_eq!(rig.completed(OTHER, other).status, Status::Good);
    }
}

#[test]
fn a_lock_waits_for_a_long_read_that_has_read_half_of_it() {
    let mut rig = rig();
    let long = read(&mut rig, 0, 4 * MEBI);
    let next = (rig.untaken / BLOCK) as u64;
    let other = swap(&mut rig, next - 4, 8);
    assert!(!rig.ended.contains_key(&(OTHER, other)));
    rig.take(SEGMENT_BYTES as usize);
    assert_eq!(rig.completed(OTHER, other).status, Status::Good);
    take_everything(&mut rig);
    assert_eq!(rig.data(long), vec![0; 4 << 20], "all of it from before");
}

#[test]
fn a_long_read_at_rest_waits_for_a_lock_before_it() {
    let mut rig = rig();
    let long = read(&mut rig, 0, 4 * MEBI);
    rig.hold = true;
    let next = rig.untaken / BLOCK;
    let other = swap(&mut rig, next as u64, 8);
    while !matches!(rig.held[0].2, MediumOp::Write { .. }) {
        rig.answer(0);
    }
    rig.take(rig.untaken);
    assert_eq!(rig.held.len(), 1, "nothing is read beside the write");
    rig.hold = false;
    rig.answer(0);
    assert_eq!(rig.completed(OTHER, other).status, Status::Good);
    take_everything(&mut rig);
    assert_eq!(rig.status(long), Status::Good);
    assert_eq!(rig.data(long)[next * BLOCK..][..8 * BLOCK], [7; 8 * BLOCK]);
}

#[test]
fn what_was_reserved_meanwhile_counts() {
    let mut rig = rig();
    read(&mut rig, 0, 2 * MEBI);
    read(&mut rig, 0, MEBI);
    let waiting = rig.send(&cdb10(0x28, 0, 0, 8), 4096);
    let reserve = [0x16, 0, 0, 0, 0, 0];
    rig.good_by(OTHER, &reserve, ());
    take_everything(&mut rig);
    assert_eq!(rig.status(waiting), Status::ReservationConflict);
}

#[test]
fn an_ordered_read_waits_for_those_before_it_and_its_turn() {
    let mut rig = rig().holding();
    read(&mut rig, 0, 2 * MEBI);
    let cdb = cdb10(0x28, 0, 0, 8);
    let ordered = rig.send_to(DEAF, 0, &cdb, Attribute::Ordered, 4096);
    let after = rig.send(&cdb, 4096);
    rig.answer_all();
    assert!(!rig.ended.contains_key(&(DEAF, ordered)), "no room");
    rig.take(SEGMENT_BYTES as usize);
    assert!(matches!(rig.held[0].2, MediumOp::Read { extent, .. } if extent.blocks == 8));
    assert_eq!(rig.held.len(), 1, "the next one waits for the ordered one");
    rig.answer(0);
    rig.answer(0);
    assert_eq!(
        rig.order.iter().rev().take(2).rev().collect::<Vec<_>>(),
        [&ordered, &after]
    );
}

fn write(rig: &mut Rig, lba: u64, blocks: u32) -> Tag {
    let cdb = cdb16(0x8a, 0, lba, blocks);
    rig.send(&cdb, vec![1; blocks as usize * BLOCK])
}

/// What the transport has been given to receive into.
fn asked_for(rig: &Rig) -> usize {
    rig.asked_for.iter().map(|(.., into)| into.len()).sum()
}

#[test]
fn who_owes_data_stops_his_own_writes() {
    let mut rig = Rig::hosts(2);
    rig.hold_data = true;
    let writes: Vec<Tag> = (0..64).map(|_| write(&mut rig, 0, MEBI)).collect();
    assert_eq!(asked_for(&rig), DATA_OUT_LIMIT);
    let read = read(&mut rig, 0, 8);
    assert_eq!(rig.status(read), Status::Good, "he reads whatever he owes");
    rig.good(&[0x16, 0, 0, 0, 0, 0], ());
    rig.send(&[0x17, 0, 0, 0, 0, 0], ());
    // Another nexus has its own.
    let cdb = cdb16(0x8a, 0, 0, 8);
    rig.send_by(OTHER, &cdb, vec![1; 8 * BLOCK]);
    assert_eq!(asked_for(&rig), DATA_OUT_LIMIT + 8 * BLOCK);
    rig.hold_data = false;
    while !rig.asked_for.is_empty() {
        rig.send_data();
    }
    for tag in writes {
        assert_eq!(rig.status(tag), Status::Good);
    }
}

#[test]
fn a_write_that_waits_for_memory_can_be_aborted_and_makes_room_when_it_ends() {
    let mut rig = Rig::new();
    rig.hold_data = true;
    let writes: Vec<Tag> = (0..40).map(|_| write(&mut rig, 0, MEBI)).collect();
    for tag in [writes[35], writes[32], writes[0]] {
        rig.manages(DEAF, Function::AbortTask(tag));
    }
    // The room of the first is that of the oldest that waits.
    let (_, tag, ..) = rig.asked_for.back().expect("a write that goes on");
    assert_eq!(*tag, writes[33]);
    rig.manage(DEAF, Function::AbortTaskSet);
    rig.hold_data = false;
    let again = write(&mut rig, 0, MEBI);
    assert_eq!(rig.status(again), Status::Good);
}

//! VERIFY, WRITE AND VERIFY, ORWRITE, COMPARE AND WRITE, WRITE ATOMIC.

use super::rig::{BLOCK, Rig, cdb10, cdb16, pattern, swap_cdb, traits};
use crate::medium::{Atomic, MediumOp, ReadMemory};
use crate::nexus::NexusId;
use crate::task::{Function, Tag};
use crate::unit::UnitId;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);
const OTHER: NexusId = NexusId(1);

#[test]
fn verify_compares_only_when_told_to() {
    let mut rig = Rig::new();
    let data = pattern(4, 1);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    let mut wrong = data.clone();
    wrong[1000] ^= 1;
    rig.good(&cdb10(0x2f, 0x02, 0, 4), data);
    let differs = rig.refuses(&cdb10(0x2f, 0x02, 0, 4), wrong, (0xe, 0x1d00));
    assert_eq!(rig.information(differs), Some(1000));
    rig.good(&cdb10(0x2f, 0x00, 0, 4), ());
    rig.refuses(&cdb10(0x2f, 0x04, 0, 4), (), (0x5, 0x2400));
}

#[test]
fn verify_with_one_block_for_all() {
    let mut rig = Rig::new();
    rig.disks[0][..2048].fill(7);
    let tag = rig.good(&cdb10(0x2f, 0x06, 0, 4), vec![7; BLOCK]);
    assert_eq!(rig.completed(NEXUS, tag).length_out, BLOCK as u64);
    rig.refuses(&cdb10(0x2f, 0x06, 0, 5), vec![7; BLOCK], (0xe, 0x1d00));
}

#[test]
fn verify_of_many_segments_tells_where_it_differs() {
    let mut rig = Rig::new();
    let mut data = pattern(2048, 2);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    rig.good(&cdb16(0x8f, 0x02, 0, 2048), data.clone());
    data[900_000] ^= 1;
    let tag = rig.send(&cdb16(0x8f, 0x02, 0, 2048), data);
    assert_eq!(rig.information(tag), Some(900_000));
}

#[test]
fn write_and_verify_writes_through_and_reads_back() {
    for flags in [0x00, 0x02] {
        let mut rig = Rig::new();
        let data = pattern(8, 3);
        rig.hold = true;
        let tag = rig.send(&cdb10(0x2e, flags, 3, 8), data.clone());
        rig.answer(0);
        assert!(matches!(rig.held[0].2, MediumOp::Write { fua: true, .. }));
        rig.answer(0);
        assert!(matches!(rig.held[0].2, MediumOp::Read { .. }));
        rig.answer(0);
        assert_eq!(rig.status(tag), Status::Good);
        assert_eq!(rig.disks[0][3 * BLOCK..11 * BLOCK], data);
    }
}

#[test]
fn orwrite_sets_bits_and_clears_none() {
    let mut rig = Rig::new();
    for blocks in [8, 1024] {
        let bytes = blocks as usize * BLOCK;
        rig.disks[0][..bytes].fill(0x0f);
        rig.good(&cdb16(0x8b, 0, 0, blocks), vec![0xa0; bytes]);
        assert!(rig.disks[0][..bytes].iter().all(|byte| *byte == 0xaf));
    }
    assert!(rig.owners[0].state().locks.is_empty());
}

#[test]
fn compare_and_write_swaps_what_is_equal() {
    let mut rig = Rig::new();
    let (old, new) = (pattern(3, 4), pattern(3, 5));
    rig.disks[0][BLOCK..4 * BLOCK].copy_from_slice(&old);
    let both = [old.clone(), new.clone()].concat();
    let tag = rig.good(&swap_cdb(1, 3), both.clone());
    assert_eq!(rig.completed(NEXUS, tag).length_out, 6 * BLOCK as u64);
    assert_eq!(rig.disks[0][BLOCK..4 * BLOCK], new);
    let tag = rig.refuses(&swap_cdb(1, 3), both, (0xe, 0x1d00));
    let first = old.iter().zip(&new).position(|(a, b)| a != b);
    assert_eq!(rig.information(tag), first.map(|at| at as u32));
    assert_eq!(rig.disks[0][BLOCK..4 * BLOCK], new);
    assert!(rig.owners[0].state().locks.is_empty());
}

#[test]
fn compare_and_write_takes_two_blocks_for_each_and_no_other_number() {
    let mut rig = Rig::new();
    for (blocks, sent) in [(2, 3), (1, 0), (3, 4)] {
        let tag = rig.send(&swap_cdb(0, blocks), pattern(sent, 6));
        assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x0e03), "{blocks}, {sent}");
    }
    for (blocks, sent) in [(2, 5), (0, 512), (1, 4)] {
        let tag = rig.send(&swap_cdb(0, blocks), pattern(sent, 6));
        assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x2400), "{blocks}, {sent}");
    }
    assert_eq!(rig.disks[0], vec![0; rig.disks[0].len()]);
    rig.refuses(&swap_cdb(8191, 2), pattern(4, 6), (0x5, 0x2100));
    rig.good(&swap_cdb(0, 0), ());
}

#[test]
fn compare_and_write_has_its_blocks_alone() {
    let mut rig = Rig::hosts(2).holding();
    let write = cdb10(0x2a, 0, 0, 4);
    let older = rig.send_by(OTHER, &write, vec![1; 2048]);
    rig.answer(0);
    let swap = rig.send(&swap_cdb(2, 1), [vec![1; BLOCK], vec![2; BLOCK]].concat());
    rig.answer(1);
    assert_eq!(rig.held.len(), 1, "it waits for the older write");
    let newer = rig.send_by(OTHER, &write, vec![3; 2048]);
    let apart = cdb10(0x28, 0, 8, 1);
    let apart = rig.send_by(OTHER, &apart, 512);
    assert_eq!(
        rig.held.len(),
        2,
        "the newer write waits, blocks elsewhere do not"
    );
    rig.answer_all();
    assert_eq!(rig.status(swap), Status::Good);
    let order: Vec<Tag> = rig.order[2..].to_vec();
    assert_eq!(order, [older, apart, swap, newer]);
    assert_eq!(rig.disks[0][2 * BLOCK..3 * BLOCK], [3; BLOCK]);
}

#[test]
fn a_swap_waits_for_one_piece_of_a_verify() {
    let mut stable = traits();
    stable.write_cache = false;
    for flags in [0x00, 0x06] {
        let mut rig = Rig::with(2, 1, &stable).holding();
        let data = vec![0; if flags == 0 { 0 } else { BLOCK }];
        let verify = rig.send(&cdb16(0x8f, flags, 0, 8192), data);
        if flags != 0 {
            rig.answer(0);
        }
        assert!(matches!(rig.held[0].2, MediumOp::Read { extent, .. } if extent.lba == 0));
        let swap = |rig: &mut Rig, lba| {
            let cdb = swap_cdb(lba, 1);
            let tag = rig.send_by(OTHER, &cdb, vec![0; 2 * BLOCK]);
            rig.answer(rig.held.len() - 1);
            tag
        };
        let ahead = swap(&mut rig, 600);
        let here = swap(&mut rig, 100);
        assert_eq!(rig.held.len(), 2, "who swaps ahead does not wait");
        rig.answer(0);
        assert_eq!(rig.held.len(), 2, "a verify does not enter what is locked");
        rig.answer_all();
        for swap in [ahead, here] {
            assert_eq!(rig.completed(OTHER, swap).status, Status::Good);
        }
        assert_eq!(rig.status(verify), Status::Good);
        assert_eq!(rig.order.last(), Some(&verify), "it is not done earlier");
    }
}

#[test]
fn two_swaps_of_one_block_go_one_after_the_other() {
    let mut rig = Rig::hosts(2).holding();
    let swap = |to: u8| [vec![0; BLOCK], vec![to; BLOCK]].concat();
    let first = rig.send(&swap_cdb(0, 1), swap(1));
    let cdb = swap_cdb(0, 1);
    let second = rig.send_by(OTHER, &cdb, swap(2));
    while !rig.held.is_empty() {
        rig.answer(rig.held.len() - 1);
    }
    let won = [rig.completed(NEXUS, first), rig.completed(OTHER, second)];
    let won = won
        .iter()
        .filter(|completed| completed.status == Status::Good);
    assert_eq!(won.count(), 1, "exactly one finds zeros");
}

#[test]
fn a_swap_that_waits_for_its_lock_can_be_aborted() {
    let mut rig = Rig::hosts(2);
    rig.hold_data = true;
    let write = cdb10(0x2a, 0, 0, 1);
    rig.send_by(OTHER, &write, vec![1; BLOCK]);
    rig.hold_data = false;
    let swap = rig.send(&swap_cdb(0, 1), vec![0; 2 * BLOCK]);
    let blocked = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    rig.manages(NEXUS, Function::AbortTask(swap));
    assert_eq!(
        rig.status(blocked),
        Status::Good,
        "the lock is gone with it"
    );
    rig.send_data();
    assert!(rig.owners[0].state().locks.is_empty());
}

#[test]
fn write_atomic_is_written_at_once_and_within_limits() {
    let mut rig = Rig::able(|traits| {
        traits.atomic = Some(Atomic {
            max_blocks: 16,
            alignment: 4,
            granularity: 4,
        });
    });
    let atomic = |lba: u64, blocks: u8| {
        let mut cdb = cdb16(0x9c, 0, lba, 0);
        cdb[13] = blocks;
        cdb
    };
    let data = pattern(8, 7);
    rig.hold = true;
    let tag = rig.send(&atomic(4, 8), data.clone());
    rig.answer(0);
    assert!(matches!(
        rig.held[0].2,
        MediumOp::Write { atomic: true, .. }
    ));
    rig.answer(0);
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.disks[0][4 * BLOCK..12 * BLOCK], data);
    for (lba, blocks) in [(2, 8), (4, 6), (4, 20)] {
        let tag = rig.send(&atomic(lba, blocks), pattern(usize::from(blocks), 7));
        assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x2400), "{lba}+{blocks}");
    }
}

#[test]
fn write_atomic_is_unknown_where_the_volume_cannot() {
    let mut rig = Rig::new();
    rig.refuses(&cdb16(0x9c, 0, 0, 0), (), (0x5, 0x2000));
}

#[test]
fn what_was_lent_comes_back_before_blocks_are_swapped_for_the_first_time() {
    let mut rig = Rig::hosts(2);
    rig.hold_recalls = true;
    let swap = |rig: &mut Rig, lba: u64| rig.send(&swap_cdb(lba, 1), vec![0; 2 * BLOCK]);
    let first = swap(&mut rig, 0);
    // The second is of blocks that nobody was lent, but of which that is not known yet.
    let second = swap(&mut rig, 1);
    assert!(!rig.ended.contains_key(&(NEXUS, first)) && !rig.ended.contains_key(&(NEXUS, second)));
    assert_eq!(rig.recalls, [UnitId::first(0)]);
    rig.recalled();
    assert_eq!([rig.status(first), rig.status(second)], [Status::Good; 2]);
    let again = swap(&mut rig, 0);
    assert_eq!(rig.status(again), Status::Good, "nobody is lent them again");
    assert!(rig.recalls.is_empty());
}

#[test]
fn a_swap_that_is_aborted_does_not_let_the_next_pass_what_was_lent() {
    let mut rig = Rig::hosts(2);
    rig.hold_recalls = true;
    let cdb = swap_cdb(0, 1);
    let first = rig.send(&cdb, vec![0; 2 * BLOCK]);
    rig.manage(NEXUS, Function::AbortTask(first));
    let second = rig.send(&cdb, vec![0; 2 * BLOCK]);
    assert!(!rig.ended.contains_key(&(NEXUS, second)));
    rig.recalled();
    assert_eq!(rig.status(second), Status::Good);
}

#[test]
fn what_was_once_swapped_is_read_by_copying() {
    let mut rig = Rig::new();
    rig.good(&swap_cdb(5, 1), vec![0; 2 * BLOCK]);
    rig.hold = true;
    for (lba, blocks) in [(5, 1), (4, 600), (7000, 8)] {
        rig.send(&cdb16(0x88, 0, lba, blocks), blocks as usize * BLOCK);
    }
    let copied = rig.held.iter().map(|(_, _, op)| match op {
        MediumOp::Read { memory, .. } => *memory == ReadMemory::Private,
        other => panic!("{other:?}"),
    });
    // One, two of a long one, and one elsewhere.
    assert_eq!(copied.collect::<Vec<_>>(), [true, true, true, false]);
}

//! WRITE SAME, UNMAP, SYNCHRONIZE CACHE, PRE-FETCH, GET LBA STATUS.

use super::rig::{BLOCK, Rig, cdb10, cdb16, swap_cdb, traits};
use crate::medium::{Extent, MediumError, MediumOp};
use crate::nexus::NexusId;
use crate::task::Tag;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);

fn unmap_cdb(length: usize) -> [u8; 10] {
    cdb10(0x42, 0, 0, length as u16)
}

/// The parameter list of an UNMAP of these blocks.
fn unmap_list(extents: &[(u64, u32)]) -> Vec<u8> {
    let length = extents.len() as u16 * 16;
    let mut list = vec![0; 8];
    list[..2].copy_from_slice(&(length + 6).to_be_bytes());
    list[2..4].copy_from_slice(&length.to_be_bytes());
    for (lba, blocks) in extents {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    list
}

#[test]
fn write_same_repeats_one_block() {
    let mut rig = Rig::new();
    let tag = rig.good(&cdb10(0x41, 0, 2, 100), vec![9; BLOCK]);
    assert_eq!(rig.completed(NEXUS, tag).length_out, BLOCK as u64);
    assert!(
        rig.disks[0][2 * BLOCK..102 * BLOCK]
            .iter()
            .all(|byte| *byte == 9)
    );
    assert_eq!(rig.disks[0][102 * BLOCK], 0);
}

#[test]
fn write_same_without_data_writes_zeros() {
    let mut rig = Rig::new();
    rig.disks[0].fill(1);
    rig.good(&cdb16(0x93, 0x01, 0, 8192), ());
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
}

#[test]
fn write_same_unmaps_zeros_and_writes_the_rest() {
    let mut rig = Rig::new().holding();
    for (byte, anchor) in [(0, false), (0, true), (1, false)] {
        let flags = if anchor { 0x18 } else { 0x08 };
        rig.send(&cdb10(0x41, flags, 0, 8), vec![byte; BLOCK]);
        rig.answer(0);
        match rig.held[0].2 {
            MediumOp::Unmap { anchor: told, .. } => assert_eq!((byte, told), (0, anchor)),
            MediumOp::WriteSame { .. } => assert_eq!(byte, 1),
            ref other => panic!("{other:?}"),
        }
        rig.answer(0);
    }
}

#[test]
fn write_same_refuses_what_it_cannot_mean() {
    let mut rig = Rig::new();
    let none = rig.send(&cdb10(0x41, 0, 0, 0), vec![0; BLOCK]);
    assert_eq!(rig.sense(NEXUS, none), (0x5, 0x2400), "WSNZ");
    let anchor = rig.send(&cdb10(0x41, 0x10, 0, 1), vec![0; BLOCK]);
    assert_eq!(
        rig.sense(NEXUS, anchor),
        (0x5, 0x2400),
        "ANCHOR without UNMAP"
    );
    for sent in [100, 2 * BLOCK] {
        let tag = rig.send(&cdb10(0x41, 0, 0, 1), vec![0; sent]);
        assert_eq!(
            rig.sense(NEXUS, tag),
            (0x5, 0x0e03),
            "one block is to be sent"
        );
    }
    let mut rig = Rig::able(|traits| traits.unmap_granularity = None);
    rig.refuses(&cdb10(0x41, 0x08, 0, 1), vec![0; BLOCK], (0x5, 0x2400));
}

#[test]
fn write_same_of_no_blocks_goes_to_the_end_where_nothing_can_be_lost() {
    let mut careless = traits();
    careless.write_same_to_end = true;
    let mut rig = Rig::with(1, 1, &careless);
    for (cdb, lba) in [
        (cdb10(0x41, 0, 8191, 0).to_vec(), 8191),
        (cdb16(0x93, 0, 8000, 0).to_vec(), 8000),
        (cdb16(0x93, 0, 0, 0).to_vec(), 0),
    ] {
        rig.disks[0].fill(0);
        rig.good(&cdb, vec![1; BLOCK]);
        let written = rig.disks[0].iter().filter(|byte| **byte == 1).count();
        assert_eq!(written, (8192 - lba) * BLOCK);
    }
    for lba in [8192, 8193, u64::MAX] {
        rig.refuses(&cdb16(0x93, 0, lba, 0), vec![1; BLOCK], (0x5, 0x2100));
    }
    careless.blocks = (1 << 21) + 1;
    let mut rig = Rig::with(1, 1, &careless);
    let tag = rig.send(&cdb16(0x93, 0, 0, 0), vec![1; BLOCK]);
    assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x2400), "over 1 GiB");
}

#[test]
fn unmap_does_every_descriptor() {
    let mut rig = Rig::new();
    rig.disks[0].fill(1);
    let list = unmap_list(&[(0, 8), (100, 0), (8000, 192)]);
    rig.good(&unmap_cdb(list.len()), list);
    let zeros = rig.disks[0].iter().filter(|byte| **byte == 0).count();
    assert_eq!(zeros, 200 * BLOCK);
}

/// A device may tell by the first request only that it cannot discard.
#[test]
fn unmap_writes_zeros_in_pieces_where_the_medium_turns_out_not_to_deallocate() {
    let mut rig = Rig::able(|traits| traits.blocks = 100_000);
    rig.disks[0].fill(1);
    rig.hold = true;
    let list = unmap_list(&[(8, 80_000), (90_000, 8)]);
    let tag = rig.send(&unmap_cdb(list.len()), list);
    assert!(matches!(rig.held[0].2, MediumOp::Unmap { .. }));
    rig.fail = Some(MediumError::Unsupported);
    rig.answer(0);
    let mut pieces = Vec::new();
    while let Some((_, _, op)) = rig.held.front() {
        let MediumOp::WriteSame { extent, .. } = op else {
            panic!("{op:?}");
        };
        pieces.push((extent.lba, extent.blocks));
        rig.answer(0);
    }
    let chunk = 32_768;
    let rest = 80_000 - 2 * chunk;
    let expected = [
        (8, chunk),
        (8 + chunk, chunk),
        (8 + 2 * chunk, rest),
        (90_000, 8),
    ];
    assert_eq!(pieces, expected);
    assert_eq!(rig.status(tag), Status::Good);
    let zeros = rig.disks[0].iter().filter(|byte| **byte == 0).count();
    assert_eq!(zeros, 80_008 * BLOCK);
}

/// A swap of blocks of which the medium is to answer the read.
fn swap_under_way(rig: &mut Rig, lba: u64) -> Tag {
    rig.hold = true;
    let tag = rig.send_by(NexusId(1), &swap_cdb(lba, 1), vec![0; 2 * BLOCK]);
    rig.answer(rig.held.len() - 1);
    assert!(matches!(rig.held[0].2, MediumOp::Read { .. }));
    tag
}

#[test]
fn unmap_does_not_wait_for_a_swap_between_its_extents_nor_that_for_it() {
    let mut rig = Rig::hosts(2);
    let swap = swap_under_way(&mut rig, 4000);
    let list = unmap_list(&[(0, 8), (8000, 8)]);
    let tag = rig.send(&unmap_cdb(list.len()), list.clone());
    rig.answer(1);
    rig.answer(1);
    assert_eq!(rig.status(tag), Status::Good);
    let tag = rig.send(&unmap_cdb(list.len()), list);
    while rig.held.len() > 1 || matches!(rig.held[0].2, MediumOp::Write { .. }) {
        rig.answer(0);
    }
    assert_eq!(rig.completed(NexusId(1), swap).status, Status::Good);
    rig.answer(0);
    assert_eq!(rig.status(tag), Status::Good);
}

#[test]
fn write_same_goes_as_far_as_it_can_and_waits_for_the_rest() {
    let mut rig = Rig::hosts(2);
    let swap = swap_under_way(&mut rig, 4000);
    let tag = rig.send(&cdb16(0x93, 0x01, 3000, 2000), ());
    let extents = rig.held.iter().filter_map(|(_, _, op)| match op {
        MediumOp::WriteSame { extent, .. } => Some(*extent),
        _ => None,
    });
    assert_eq!(extents.collect::<Vec<_>>(), [Extent::new(3000, 1000)]);
    rig.answer(1);
    assert_eq!(rig.held.len(), 1, "the next block is locked");
    rig.answer_all();
    assert_eq!(rig.completed(NexusId(1), swap).status, Status::Good);
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.order.last(), Some(&tag));
}

#[test]
fn unmap_looks_at_the_whole_list_first() {
    let mut rig = Rig::new();
    rig.disks[0].fill(1);
    let list = unmap_list(&[(0, 8), (8191, 2)]);
    let tag = rig.refuses(&unmap_cdb(list.len()), list, (0x5, 0x2100));
    assert_eq!(rig.information(tag), Some(8192));
    assert!(rig.disks[0].iter().all(|byte| *byte == 1));
}

#[test]
fn unmap_lists_of_every_wrong_length() {
    let mut rig = Rig::new();
    let list = unmap_list(&[(0, 8)]);
    rig.good(&unmap_cdb(0), ());
    for length in [1, 7, 8, 23] {
        let tag = rig.send(&unmap_cdb(length), list[..length].to_vec());
        assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x1a00), "{length}");
    }
    let many = unmap_list(&[(0, 1); 257]);
    rig.refuses(&unmap_cdb(many.len()), many, (0x5, 0x2600));
}

#[test]
fn synchronize_cache_flushes_what_it_names() {
    let mut rig = Rig::new().holding();
    let cases = [
        (0, 0, Extent::new(0, 0)),
        (8, 0, Extent::new(8, 8184)),
        (8, 4, Extent::new(8, 4)),
    ];
    for (lba, blocks, flushed) in cases {
        let tag = rig.send(&cdb10(0x35, 0, lba, blocks), ());
        assert!(matches!(rig.held[0].2, MediumOp::Flush { extent } if extent == flushed));
        rig.answer(0);
        assert_eq!(rig.status(tag), Status::Good);
    }
    rig.refuses(&cdb10(0x35, 0, 8191, 2), (), (0x5, 0x2100));
}

#[test]
fn immediate_commands_are_answered_first_and_done_then() {
    let mut rig = Rig::new().holding();
    rig.good(&cdb16(0x91, 0x02, 0, 0), ());
    let fetch = rig.send(&cdb16(0x90, 0x02, 0, 8), ());
    assert_eq!(rig.status(fetch), Status::ConditionMet);
    assert_eq!(rig.held.len(), 2);
    rig.lose(NEXUS);
    assert_eq!(rig.gone, [NEXUS]);
    rig.answer(0);
    rig.answer(0);
}

#[test]
fn background_work_has_an_end() {
    let mut rig = Rig::new().holding();
    for _ in 0..64 {
        rig.good(&cdb16(0x91, 0x02, 0, 0), ());
    }
    let ended = rig.ended.len();
    rig.send(&cdb16(0x91, 0x02, 0, 0), ());
    assert_eq!(rig.ended.len(), ended, "it waits like one without IMMED");
}

#[test]
fn prefetch_tells_whether_all_of_it_fits() {
    let mut rig = Rig::able(|traits| traits.blocks = 1 << 20);
    let tag = rig.send(&cdb10(0x34, 0, 0, 8), ());
    assert_eq!(rig.status(tag), Status::ConditionMet);
    let tag = rig.send(&cdb10(0x34, 0, 0, 0), ());
    assert_eq!(
        rig.status(tag),
        Status::Good,
        "512 MiB are more than is promised"
    );
}

#[test]
fn lba_status_tells_extents_as_far_as_there_is_room() {
    let mut rig = Rig::new();
    let mut cdb = cdb16(0x9e, 0x12, 8000, 0);
    cdb[13] = 24;
    let tag = rig.send(&cdb, 24);
    let data = rig.data(tag);
    assert_eq!(data.len(), 24);
    assert_eq!(data[..4], 20_u32.to_be_bytes());
    assert_eq!(data[8..16], 8000_u64.to_be_bytes());
    assert_eq!(
        data[16..20],
        192_u32.to_be_bytes(),
        "equal neighbours are one extent"
    );
    rig.refuses(&cdb16(0x9e, 0x12, 8192, 24), 24, (0x5, 0x2100));
}

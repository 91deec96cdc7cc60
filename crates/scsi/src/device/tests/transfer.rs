//! READ and WRITE.

use super::rig::{BLOCK, Rig, cdb10, cdb16, pattern, swap_cdb, traits};
use crate::medium::{Extent, MediumError, MediumOp, ReadMemory};
use crate::nexus::NexusId;
use crate::task::Attribute;
use crate::wire::lun::WELL_KNOWN_REPORT_LUNS;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);

#[test]
fn write_then_read_of_one_segment() {
    let mut rig = Rig::new();
    let data = pattern(8, 1);
    let write = rig.good(&cdb10(0x2a, 0, 16, 8), data.clone());
    assert_eq!(rig.completed(NEXUS, write).length_out, 8 * BLOCK as u64);
    let read = rig.good(&cdb10(0x28, 0, 16, 8), data.len());
    assert_eq!(rig.data(read), data);
    assert_eq!(rig.completed(NEXUS, read).length_in, 8 * BLOCK as u64);
}

#[test]
fn six_byte_commands_take_zero_for_256_blocks() {
    let mut rig = Rig::new();
    let data = pattern(256, 2);
    rig.good(&[0x0a, 0, 1, 0, 0, 0], data.clone());
    assert_eq!(rig.disks[0][256 * BLOCK..512 * BLOCK], data);
    let read = rig.send(&[0x08, 0, 1, 0, 0, 0], data.len());
    assert_eq!(rig.data(read), data);
}

#[test]
fn many_segments_arrive_in_order_though_the_medium_answers_in_any() {
    let mut rig = Rig::new();
    let data = pattern(4096, 3);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    rig.hold = true;
    let read = rig.send(&cdb16(0x88, 0, 0, 4096), data.len());
    assert_eq!(rig.held.len(), 4, "a bounded number is under way");
    while !rig.held.is_empty() {
        assert!(rig.held.len() <= 4);
        rig.answer(rig.held.len() - 1);
    }
    assert_eq!(rig.status(read), Status::Good);
    assert_eq!(rig.data(read), data);
}

#[test]
fn a_long_write_asks_for_its_data_in_order() {
    let mut rig = Rig::new();
    let data = pattern(4096, 4);
    rig.hold = true;
    let write = rig.send(&cdb16(0x8a, 0, 0, 4096), data.clone());
    let mut turn = 0;
    while !rig.held.is_empty() {
        turn += 3;
        rig.answer(turn % rig.held.len());
    }
    assert_eq!(rig.status(write), Status::Good);
    assert_eq!(rig.disks[0][..data.len()], data);
}

#[test]
fn fua_reaches_the_medium() {
    let mut rig = Rig::new().holding();
    for (flags, expected) in [(0x08, true), (0x10, false)] {
        rig.send(&cdb10(0x2a, flags, 0, 1), pattern(1, 5));
        rig.answer(0);
        assert!(
            matches!(rig.held[0].2, MediumOp::Write { fua, .. } if fua == expected),
            "{:?}",
            rig.held[0]
        );
        rig.answer(0);
    }
}

#[test]
fn a_read_with_fua_and_a_verify_see_what_is_stable() {
    let read = |flags| cdb10(0x28, flags, 3, 2).to_vec();
    let verify = cdb10(0x2f, 0, 3, 2).to_vec();
    let mut stable = traits();
    stable.write_cache = false;
    for (traits, cdb, flushed) in [
        (traits(), read(0x08), true),
        (traits(), verify.clone(), true),
        (traits(), read(0), false),
        (stable.clone(), read(0x08), false),
        (stable, verify, false),
    ] {
        let mut rig = Rig::with(1, 1, &traits).holding();
        let tag = rig.send(&cdb, 2 * BLOCK);
        if flushed {
            let extent = Extent::new(3, 2);
            assert!(
                matches!(rig.held[0].2, MediumOp::Flush { extent: told } if told == extent),
                "{cdb:02x?}"
            );
            rig.answer(0);
        }
        assert!(matches!(rig.held[0].2, MediumOp::Read { .. }), "{cdb:02x?}");
        rig.answer(0);
        assert_eq!(rig.status(tag), Status::Good);
    }
}

/// COMPARE AND WRITE came in between, and what it wrote is in the cache only.
#[test]
fn a_read_with_fua_that_waited_for_a_lock_sees_what_is_stable() {
    let mut rig = Rig::hosts(2).holding();
    let read = rig.send(&cdb10(0x28, 0x08, 3, 2), 2 * BLOCK);
    assert!(matches!(rig.held[0].2, MediumOp::Flush { .. }));
    let data = [vec![0; BLOCK], vec![7; BLOCK]].concat();
    rig.send_by(NexusId(1), &swap_cdb(3, 1), data);
    // The lease for the data, the read of what is compared: the lock is held.
    rig.answer(1);
    assert!(matches!(rig.held[1].2, MediumOp::Read { .. }));
    rig.answer(0);
    assert_eq!(rig.held.len(), 1, "the read waits for the lock");
    rig.answer(0);
    assert!(matches!(rig.held[0].2, MediumOp::Write { fua: false, .. }));
    rig.answer(0);
    assert!(
        matches!(rig.held[0].2, MediumOp::Flush { .. }),
        "{:?}",
        rig.held[0]
    );
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.data(read)[..BLOCK], [7; BLOCK]);
}

#[test]
fn no_blocks_is_no_error() {
    let mut rig = Rig::new();
    rig.good(&cdb10(0x28, 0, 8192, 0), ());
    rig.refuses(&cdb10(0x28, 0, 8193, 0), (), (0x5, 0x2100));
}

#[test]
fn blocks_past_the_end_are_named() {
    let mut rig = Rig::new();
    for opcode in [0x28, 0x2a] {
        let tag = rig.refuses(&cdb10(opcode, 0, 8190, 3), (), (0x5, 0x2100));
        assert_eq!(rig.information(tag), Some(8192));
    }
    rig.refuses(&cdb16(0x88, 0, u64::MAX, 2), (), (0x5, 0x2100));
}

#[test]
fn more_than_the_maximum_transfer_length_is_an_invalid_field() {
    let mut rig = Rig::able(|traits| traits.blocks = 1 << 20);
    let tag = rig.refuses(&cdb16(0x88, 0, 0, 65537), 1 << 30, (0x5, 0x2400));
    let sense = &rig.completed(NEXUS, tag).sense;
    assert_eq!(
        sense.as_slice()[15..18],
        [0xc0, 0, 10],
        "points at TRANSFER LENGTH"
    );
}

#[test]
fn a_read_moves_no_more_than_is_expected() {
    let mut rig = Rig::new();
    let data = pattern(4, 6);
    rig.disks[0][..data.len()].copy_from_slice(&data);
    let tag = rig.good(&cdb10(0x28, 0, 0, 4), 700);
    assert_eq!(rig.data(tag), &data[..700]);
    assert_eq!(rig.completed(NEXUS, tag).length_in, 2048);
}

#[test]
fn a_write_moves_the_blocks_that_are_expected() {
    let mut rig = Rig::new();
    let tag = rig.good(&cdb10(0x2a, 0, 0, 2), vec![7; BLOCK]);
    assert_eq!(rig.completed(NEXUS, tag).length_out, 1024);
    assert_eq!(rig.disks[0][..512], [7; 512]);
    assert_eq!(
        rig.disks[0][512..1024],
        [0; 512],
        "the second block was not written"
    );
    let tag = rig.send(&cdb10(0x2a, 0, 0, 1), vec![9; 700]);
    assert_eq!(rig.status(tag), Status::Good, "more than the CDB asks for");
    assert_eq!(rig.disks[0][..512], [9; 512]);
}

/// FCP-4 leaves a choice for data that is cut short; what libiscsi's tests take for right.
#[test]
fn a_write_of_part_of_a_block_is_refused_and_moves_nothing() {
    let mut rig = Rig::new();
    let write6 = [0x0a, 0, 0, 0, 1, 0];
    let tens = [0x2a, 0x2e].map(|opcode| cdb10(opcode, 0, 0, 1).to_vec());
    let sixteens = [0x8a, 0x8e].map(|opcode| cdb16(opcode, 0, 0, 1).to_vec());
    let verify = cdb10(0x2f, 0x02, 0, 1).to_vec();
    rig.hold = true;
    for cdb in [&tens[..], &sixteens, &[write6.to_vec(), verify]].concat() {
        let tag = rig.send(&cdb, vec![7; 200]);
        assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x0e03), "{cdb:02x?}");
        assert_eq!(rig.completed(NEXUS, tag).length_out, 512);
    }
    rig.refuses(
        &cdb10(0x2a, 0, 0, 4096),
        vec![7; 2048 * BLOCK + 1],
        (0x5, 0x0e03),
    );
    assert!(rig.held.is_empty(), "the medium is not asked for anything");
}

#[test]
fn what_the_medium_says_is_told() {
    let cases = [
        (MediumError::Read, (0x3, 0x1100)),
        (MediumError::Write, (0x3, 0x0c00)),
        (MediumError::NoSpace, (0x7, 0x2707)),
        (MediumError::ReadOnly, (0x7, 0x2700)),
        (MediumError::Gone, (0x2, 0x0400)),
        (MediumError::Unknown, (0xb, 0x0800)),
        (MediumError::Unsupported, (0x4, 0x4400)),
    ];
    let mut rig = Rig::new();
    for (error, sense) in cases {
        rig.fail = Some(error);
        rig.refuses(&cdb10(0x28, 0, 0, 1), 512, sense);
    }
    rig.fail = Some(MediumError::Busy);
    let tag = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    assert_eq!(rig.status(tag), Status::TaskSetFull);
}

#[test]
fn an_error_in_the_middle_waits_for_the_rest() {
    let mut rig = Rig::new().holding();
    let tag = rig.send(&cdb16(0x88, 0, 0, 2048), 2048 * BLOCK);
    rig.fail = Some(MediumError::Read);
    rig.answer(1);
    assert_eq!(rig.ended.len(), 1, "three operations are still under way");
    rig.answer(0);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.sense(NEXUS, tag), (0x3, 0x1100));
    assert!(rig.held.is_empty());
}

#[test]
fn a_volume_that_may_not_be_written_says_so() {
    let mut rig = Rig::able(|traits| traits.read_only = true);
    let writes = [0x2a, 0x2e, 0x41].map(|opcode| cdb10(opcode, 0, 0, 1).to_vec());
    let more = [0x8a, 0x8b, 0x8e, 0x93].map(|opcode| cdb16(opcode, 0, 0, 1).to_vec());
    let unmap = vec![0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    for cdb in [writes.as_slice(), &more, &[unmap]].concat() {
        let tag = rig.send(&cdb, pattern(1, 7));
        assert_eq!(rig.sense(NEXUS, tag), (0x7, 0x2700), "{cdb:02x?}");
    }
    rig.good(&cdb10(0x28, 0, 0, 1), 512);
    let mut lba_status = cdb16(0x9e, 0x12, 0, 24);
    lba_status[13] = 24;
    let tag = rig.send(&lba_status, 24);
    assert_eq!(rig.data(tag).len(), 24, "what it has no storage for");
}

#[test]
fn absent_units_and_unknown_commands_are_refused() {
    let mut rig = Rig::new();
    let tag = rig.send_to(NEXUS, 5, &cdb10(0x28, 0, 0, 1), Attribute::Simple, 512);
    assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x2500));
    rig.refuses(&[0xff; 6], (), (0x5, 0x2000));
    let tag = rig.send(&cdb10(0x28, 0x20, 0, 1), 512);
    assert_eq!(
        rig.sense(NEXUS, tag),
        (0x5, 0x2400),
        "RDPROTECT is not offered"
    );
}

/// SPC-5 §7: whatever it does not carry out it does not know.
#[test]
fn the_report_luns_well_known_unit_knows_four_commands() {
    let mut rig = Rig::new();
    let mut send = |cdb: &[u8], expected_in| {
        let to = (NEXUS, WELL_KNOWN_REPORT_LUNS);
        let tag = rig.send_to_lun(to, cdb, Attribute::Simple, expected_in);
        let completed = rig.completed(NEXUS, tag).clone();
        match completed.status {
            Status::Good if expected_in > 0 => Ok(rig.data(tag).to_vec()),
            Status::Good => Ok(Vec::new()),
            _ => Err(rig.sense(NEXUS, tag)),
        }
    };
    let inquiry = send(&[0x12, 0, 0, 0, 36, 0], 36).unwrap();
    assert_eq!(inquiry[0], 0x1e, "a well known logical unit");
    assert_eq!(send(&[0; 6], 0), Ok(Vec::new()));
    let sense = send(&[0x03, 0, 0, 0, 18, 0], 18).unwrap();
    assert_eq!((sense[2], sense[12], sense[13]), (0, 0, 0));
    let luns = send(&[0xa0, 0, 1, 0, 0, 0, 0, 0, 0, 16, 0, 0], 16).unwrap();
    assert_eq!(luns[8..], WELL_KNOWN_REPORT_LUNS.0);
    for cdb in [cdb10(0x28, 0, 0, 1), cdb10(0x25, 0, 0, 0), [0xff; 10]] {
        assert_eq!(send(&cdb, 512), Err((0x5, 0x2000)), "{:02x}h", cdb[0]);
    }
    let reserved = send(&[0x12, 0x80, 0, 0, 36, 0], 36);
    assert_eq!(reserved, Err((0x5, 0x2400)), "a field, not the command");
}

#[test]
fn a_transport_that_sends_by_the_kernel_may_get_memory_for_that_alone() {
    for (sends, memory) in [(false, ReadMemory::Lent), (true, ReadMemory::Sent)] {
        let mut rig = Rig::new();
        if sends {
            rig.server.nexus_sends_by_kernel(NEXUS);
        }
        rig.good(&swap_cdb(5000, 1), vec![0; 2 * BLOCK]);
        rig.hold = true;
        for (lba, blocks) in [(0, 600), (5000, 1)] {
            rig.send(&cdb16(0x88, 0, lba, blocks), blocks as usize * BLOCK);
        }
        let reads = rig.held.iter().map(|(_, _, op)| match op {
            MediumOp::Read { memory, .. } => *memory,
            other => panic!("{other:?}"),
        });
        let reads: Vec<_> = reads.collect();
        assert_eq!(reads, [memory, memory, ReadMemory::Private]);
    }
}

//! FORMAT UNIT and SANITIZE.

use super::rig::{BLOCK, End, Rig, cdb10, pattern, traits};
use crate::long_operation::{LongOperationKind, OperationState};
use crate::medium::{Lease, MediumError, MediumOp, Sanitize, SanitizeKind};
use crate::nexus::NexusId;
use crate::task::{Function, FunctionResult, Tag};
use crate::wire::sense::Status;

const A: NexusId = NexusId(0);
const B: NexusId = NexusId(1);

const FORMAT: [u8; 6] = [0x04, 0, 0, 0, 0, 0];
const FORMAT_WITH_HEADER: [u8; 6] = [0x04, 0x10, 0, 0, 0, 0];
const IMMEDIATE_HEADER: [u8; 4] = [0, 0x82, 0, 0];

/// A unit of 64 MiB: four chunks, where it cannot unmap.
fn thick(nexuses: u32) -> Rig {
    let mut traits = traits();
    traits.blocks = 131_072;
    traits.unmap_granularity = None;
    traits.sanitize = &[SanitizeKind::Overwrite, SanitizeKind::BlockErase];
    let mut rig = Rig::with(nexuses, 1, &traits);
    rig.disks[0].fill(1);
    rig
}

fn test_unit_ready(rig: &mut Rig, nexus: NexusId) -> Tag {
    rig.send_by(nexus, &[0; 6], ())
}

fn sanitize(action: u8, length: usize) -> [u8; 10] {
    cdb10(0x48, action, 0, length as u16)
}

fn overwrite(flags: u8, pattern: &[u8]) -> Vec<u8> {
    let mut list = vec![flags, 0];
    list.extend((pattern.len() as u16).to_be_bytes());
    list.extend(pattern);
    list
}

#[test]
fn format_leaves_zeros_and_a_unit_that_is_ready() {
    let mut rig = thick(1);
    rig.good(&FORMAT, ());
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
    assert!(rig.owners[0].state().locks.is_empty());
    let ready = test_unit_ready(&mut rig, A);
    assert_eq!(rig.status(ready), Status::Good);
}

#[test]
fn format_writes_zeros_where_the_medium_turns_out_not_to_deallocate() {
    let mut rig = Rig::new();
    rig.disks[0].fill(1);
    rig.fail = Some(MediumError::Unsupported);
    rig.good(&FORMAT, ());
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
}

#[test]
fn format_waits_for_others_and_tells_them_its_progress() {
    let mut rig = thick(2).holding();
    let older = cdb10(0x28, 0, 0, 1);
    rig.send_by(B, &older, 512);
    let format = rig.send(&FORMAT, ());
    assert_eq!(rig.held.len(), 1, "a read is still under way");
    rig.answer(0);
    assert!(matches!(
        rig.held[0].2,
        MediumOp::WriteSame { pattern: None, .. }
    ));
    rig.answer(0);
    let tag = test_unit_ready(&mut rig, B);
    assert_eq!(rig.sense(B, tag), (0x2, 0x0404));
    let progress = [0x80, 0x40, 0x00];
    assert_eq!(
        rig.completed(B, tag).sense.as_slice()[15..18],
        progress,
        "a quarter"
    );
    rig.refuses_by(B, &cdb10(0x2a, 0, 0, 1), pattern(1, 1), (0x2, 0x0404));
    rig.refuses_by(B, &FORMAT, (), (0x2, 0x0404));
    rig.answer_all();
    assert_eq!(rig.status(format), Status::Good);
}

#[test]
fn format_with_immed_is_answered_when_it_has_begun() {
    let mut rig = thick(1).holding();
    rig.good(&FORMAT_WITH_HEADER, IMMEDIATE_HEADER.to_vec());
    let ready = test_unit_ready(&mut rig, A);
    assert_eq!(rig.sense(A, ready), (0x2, 0x0404));
    rig.manages(A, Function::AbortTaskSet);
    rig.answer_all();
    assert_eq!(rig.owners[0].state().operation, OperationState::Idle);
    let ready = test_unit_ready(&mut rig, A);
    assert_eq!(rig.status(ready), Status::Good);
}

#[test]
fn format_headers_that_ask_for_what_is_not_offered() {
    let mut rig = thick(1);
    let cases: [(&[u8], u16); 5] = [
        (&[0, 0, 0], 0x1a00),
        (&[1, 0, 0, 0], 0x2600),
        (&[0, 0x08, 0, 0], 0x2600),
        (&[0, 0x40, 0, 0], 0x2600),
        (&[0, 0, 0, 8], 0x2600),
    ];
    for (header, code) in cases {
        let tag = rig.send(&FORMAT_WITH_HEADER, header.to_vec());
        assert_eq!(rig.sense(A, tag), (0x5, code), "{header:?}");
    }
    rig.refuses(
        &[0x04, 0x30, 0, 0, 0, 0],
        vec![0, 0, 0, 0, 0, 0, 0, 1],
        (0x5, 0x2600),
    );
    assert!(rig.disks[0].iter().all(|byte| *byte == 1));
}

#[test]
fn a_format_that_fails_or_is_aborted_leaves_a_corrupted_format() {
    for abort in [false, true] {
        let mut rig = thick(1).holding();
        let format = rig.send(&FORMAT, ());
        if abort {
            rig.manage(A, Function::AbortTask(format));
            assert!(!rig.ended.contains_key(&(A, format)));
        } else {
            rig.fail = Some(MediumError::Write);
        }
        rig.answer(0);
        if abort {
            assert_eq!(rig.ended[&(A, format)], End::Aborted);
        } else {
            assert_eq!(rig.sense(A, format), (0x3, 0x0c00));
        }
        rig.hold = false;
        rig.refuses(&cdb10(0x28, 0, 0, 1), 512, (0x3, 0x3100));
        rig.good(&FORMAT, ());
        rig.good(&cdb10(0x28, 0, 0, 1), 512);
    }
}

#[test]
fn overwrite_makes_every_pass_and_flushes_each() {
    let mut rig = thick(1).holding();
    let list = overwrite(0x83, &[0x0f, 0x22, 0x33]);
    let tag = rig.send(&sanitize(0x01, list.len()), list);
    let mut seen = Vec::new();
    while !rig.held.is_empty() {
        match &rig.held[0].2 {
            MediumOp::Sanitize {
                method: Sanitize::Overwrite { pattern },
                ..
            } => {
                let mut block = [0; BLOCK];
                pattern.copy_out(0, &mut block);
                assert_eq!(block[..3], block[3..6], "repeated");
                seen.push(u16::from_be_bytes([block[510], block[511]]));
            }
            MediumOp::Flush { .. } => seen.push(0xffff),
            other => panic!("{other:?}"),
        }
        rig.answer(0);
    }
    let pass = |pattern: u16| [pattern, pattern, pattern, pattern, 0xffff];
    assert_eq!(seen, [pass(0x0f22), pass(0xf0dd), pass(0x0f22)].concat());
    assert_eq!(rig.status(tag), Status::Good);
}

#[test]
fn overwrite_lists_that_cannot_be_done() {
    let mut rig = thick(1);
    let cases = [
        (overwrite(0x01, &[]), 0x2400),
        (overwrite(0x01, &[0; 513]), 0x2400),
        (overwrite(0x00, &[0; 4]), 0x2400),
        (vec![1, 0, 0, 9, 0, 0], 0x2400),
    ];
    for (list, code) in cases {
        rig.refuses(&sanitize(0x01, list.len()), list, (0x5, code));
    }
    let tag = rig.send(&sanitize(0x02, 4), vec![0; 4]);
    assert_eq!(
        rig.sense(A, tag),
        (0x5, 0x2400),
        "BLOCK ERASE has no parameters"
    );
}

#[test]
fn sanitize_goes_on_whatever_becomes_of_its_command() {
    let mut rig = thick(1).holding();
    let erase = rig.send(&sanitize(0x02, 0), ());
    let id = rig.manage(A, Function::LogicalUnitReset);
    assert_eq!(rig.ended[&(A, erase)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    rig.answer_all();
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
    assert_eq!(rig.owners[0].state().operation, OperationState::Idle);
}

#[test]
fn only_a_sanitize_with_ause_lets_itself_be_forgotten() {
    for (ause, lasting) in [(0x20, false), (0x00, true)] {
        let mut rig = thick(1);
        rig.fail = Some(MediumError::Write);
        rig.refuses(&sanitize(ause | 0x02, 0), (), (0x3, 0x0c00));
        let failed = OperationState::Failed(LongOperationKind::Sanitize { lasting });
        assert_eq!(rig.owners[0].state().operation, failed);
        rig.refuses(&cdb10(0x28, 0, 0, 1), 512, (0x3, 0x3103));
        let exit = rig.send(&sanitize(0x1f, 0), ());
        if lasting {
            assert_eq!(rig.sense(A, exit), (0x5, 0x2400));
        } else {
            assert_eq!(rig.status(exit), Status::Good);
        }
        rig.good(&sanitize(0x02, 0), ());
    }
}

#[test]
fn methods_that_the_volume_does_not_have_are_unknown() {
    let mut rig = Rig::new();
    rig.refuses(&sanitize(0x02, 0), (), (0x5, 0x2000));
    assert_eq!(rig.disks[0].len(), 8192 * BLOCK);
}

#[test]
fn what_goes_on_in_the_background_holds_no_memory_of_a_nexus_that_came_later() {
    let mut rig = thick(1).holding();
    let list = overwrite(1, &[0xa5]);
    let tag = rig.send(&sanitize(0x81, list.len()), list);
    assert_eq!(rig.status(tag), Status::Good, "IMMED");
    rig.lose(A);
    assert_eq!(rig.gone, [A]);
    rig.log_in(A, 1);
    rig.answer_all();
    assert!(rig.disks[0].iter().all(|byte| *byte == 0));
}

//! What initiators set, and what comes of it for their commands and those of others.

use super::rig::{End, Rig, cdb10, pattern};
use crate::medium::MediumOp;
use crate::nexus::NexusId;
use crate::task::{Function, Tag};
use crate::unit::UnitId;
use crate::wire::sense::Status;

const A: NexusId = NexusId(0);
const B: NexusId = NexusId(1);

fn send(rig: &mut Rig, nexus: NexusId, cdb: &[u8]) -> Tag {
    rig.send_by(nexus, cdb, 255)
}

/// MODE SELECT(6) of a control mode page with these bytes 2 to 5.
fn select_control(rig: &mut Rig, nexus: NexusId, bytes: [u8; 4]) {
    let mut list = vec![0, 0, 0, 0, 0x0a, 0x0a];
    list.extend(bytes);
    list.resize(16, 0);
    let cdb = [0x15, 0x10, 0, 0, 16, 0];
    let tag = rig.send_by(nexus, &cdb, list);
    assert_eq!(rig.completed(nexus, tag).status, Status::Good);
}

const TUR: [u8; 6] = [0; 6];
const EJECT: [u8; 6] = [0x1b, 0, 0, 0, 0x02, 0];
const LOAD: [u8; 6] = [0x1b, 0, 0, 0, 0x03, 0];
const PREVENT: [u8; 6] = [0x1e, 0, 0, 0, 0x01, 0];
const CACHE_OFF: [u8; 24] = {
    let mut list = [0; 24];
    list[4] = 0x08;
    list[5] = 0x12;
    list
};

#[test]
fn d_sense_changes_the_format_of_sense_data() {
    let mut rig = Rig::removable();
    let beyond = cdb10(0x28, 0, 8192, 1);
    let tag = send(&mut rig, A, &beyond);
    assert_eq!(rig.completed(A, tag).sense.as_slice()[0] & 0x7f, 0x70);
    select_control(&mut rig, A, [0x26, 0x10, 0, 0]);
    let tag = send(&mut rig, A, &beyond);
    let sense = &rig.completed(A, tag).sense;
    assert_eq!(sense.as_slice()[..4], [0x72, 0x05, 0x21, 0x00]);
}

#[test]
fn others_are_told_of_swp_and_then_cannot_write() {
    let mut rig = Rig::removable();
    select_control(&mut rig, B, [0x22, 0x10, 0x08, 0]);
    let tag = send(&mut rig, A, &TUR);
    assert_eq!(rig.sense(A, tag), (0x6, 0x2a01));
    rig.refuses(&cdb10(0x2a, 0, 0, 1), pattern(1, 1), (0x7, 0x2702));
    let read = send(&mut rig, A, &cdb10(0x28, 0, 0, 1));
    assert_eq!(rig.status(read), Status::Good);
    select_control(&mut rig, A, [0x22, 0x10, 0, 0]);
    rig.good(&cdb10(0x2a, 0, 0, 1), pattern(1, 1));
}

#[test]
fn switching_the_cache_off_flushes_and_then_writes_through() {
    let mut rig = Rig::removable().holding();
    let off = rig.send(&[0x15, 0x10, 0, 0, 24, 0], CACHE_OFF.to_vec());
    assert!(matches!(rig.held[0].2, MediumOp::Flush { .. }));
    assert!(!rig.ended.contains_key(&(A, off)), "GOOD before the flush");
    rig.answer(0);
    assert_eq!(rig.status(off), Status::Good);
    rig.send(&cdb10(0x2a, 0, 0, 1), pattern(1, 5));
    rig.answer(0);
    assert!(matches!(rig.held[0].2, MediumOp::Write { fua: true, .. }));
}

#[test]
fn with_the_cache_off_write_same_and_unmap_are_flushed() {
    let mut rig = Rig::removable();
    rig.send(&[0x15, 0x10, 0, 0, 24, 0], CACHE_OFF.to_vec());
    rig.hold = true;
    let unmap = [[0, 22, 0, 16, 0, 0, 0, 0], [0; 8], [0, 0, 0, 8, 0, 0, 0, 0]].concat();
    for (cdb, data) in [
        (cdb10(0x41, 0x08, 0, 8), vec![0; 512]),
        (cdb10(0x42, 0, 0, 24), unmap),
    ] {
        let tag = rig.send(&cdb, data);
        while !matches!(rig.held[0].2, MediumOp::Flush { .. }) {
            rig.answer(0);
        }
        assert!(!rig.ended.contains_key(&(A, tag)), "GOOD before the flush");
        rig.answer(0);
        assert_eq!(rig.status(tag), Status::Good);
    }
}

#[test]
fn an_ejected_medium_is_gone_for_everybody_until_it_is_loaded() {
    let mut rig = Rig::removable();
    let eject = send(&mut rig, A, &EJECT);
    assert_eq!(rig.status(eject), Status::Good);
    for (nexus, cdb) in [(A, &TUR[..]), (B, &TUR), (B, &cdb10(0x28, 0, 0, 1))] {
        let tag = send(&mut rig, nexus, cdb);
        assert_eq!(rig.sense(nexus, tag), (0x2, 0x3a00));
    }
    let load = send(&mut rig, A, &LOAD);
    assert_eq!(rig.status(load), Status::Good);
    let tag = send(&mut rig, A, &TUR);
    assert_eq!(rig.status(tag), Status::Good);
    let tag = send(&mut rig, B, &TUR);
    assert_eq!(rig.sense(B, tag), (0x6, 0x2800));
}

#[test]
fn what_one_nexus_prevents_is_prevented_until_it_is_lost() {
    let mut rig = Rig::removable();
    let tag = send(&mut rig, A, &PREVENT);
    assert_eq!(rig.status(tag), Status::Good);
    let eject = send(&mut rig, B, &EJECT);
    assert_eq!(rig.sense(B, eject), (0x5, 0x5302));
    rig.lose(A);
    let eject = send(&mut rig, B, &EJECT);
    assert_eq!(rig.completed(B, eject).status, Status::Good);
}

/// READ by A in flight, LOGICAL UNIT RESET by B: how the READ ends.
fn reset_by_another(rig: &mut Rig) -> Option<Status> {
    rig.hold = true;
    let read = send(rig, A, &cdb10(0x28, 0, 0, 1));
    rig.manage(B, Function::LogicalUnitReset);
    rig.answer(0);
    match &rig.ended[&(A, read)] {
        End::Completed(completed) => Some(completed.status),
        End::Aborted => None,
    }
}

/// Who is told nothing waits for its timeout, 30 s with Linux, and then resets the unit in turn,
/// which aborts the commands of the others.
#[test]
fn what_others_abort_ends_with_task_aborted() {
    let mut rig = Rig::removable();
    assert_eq!(reset_by_another(&mut rig), Some(Status::TaskAborted));
}

#[test]
fn without_tas_what_others_abort_ends_silently() {
    let mut rig = Rig::removable();
    select_control(&mut rig, A, [0x22, 0x10, 0, 0x00]);
    let tag = send(&mut rig, B, &TUR);
    assert_eq!(rig.sense(B, tag), (0x6, 0x2a01));
    assert_eq!(reset_by_another(&mut rig), None);
}

#[test]
fn parameter_data_is_cut_to_allocation_length() {
    let mut rig = Rig::removable();
    for length in [0, 1, 5, 36, 96, 255] {
        let inquiry = send(&mut rig, A, &[0x12, 0, 0, 0, length, 0]);
        assert_eq!(rig.data(inquiry).len(), usize::from(length.min(96)));
        let told = rig.completed(A, inquiry).length_in;
        assert_eq!(told, u64::from(length.min(96)));
    }
}

#[test]
fn reads_and_writes_that_end_well_are_counted() {
    let mut rig = Rig::removable();
    rig.send(&cdb10(0x2a, 0, 0, 4), pattern(4, 1));
    send(&mut rig, A, &cdb10(0x28, 0, 0, 3));
    send(&mut rig, A, &cdb10(0x28, 0, 8192, 3));
    send(&mut rig, A, &TUR);
    let totals = rig.owners[UnitId::first(0).index()]
        .state()
        .statistics
        .totals();
    assert_eq!((totals.reads, totals.blocks_read), (1, 3));
    assert_eq!((totals.writes, totals.blocks_written), (1, 4));
}

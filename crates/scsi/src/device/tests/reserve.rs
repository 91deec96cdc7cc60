//! Hosts that reserve a unit and fence each other off.

use super::rig::{Rig, cdb10, pattern};
use crate::nexus::NexusId;
use crate::task::{Function, Tag};
use crate::wire::sense::Status;

const A: NexusId = NexusId(0);
const B: NexusId = NexusId(1);

const REGISTER: u8 = 0x00;
const RESERVE: u8 = 0x01;
const PREEMPT: u8 = 0x04;
const PREEMPT_AND_ABORT: u8 = 0x05;
const REGISTER_AND_IGNORE: u8 = 0x06;

const WRITE_EXCLUSIVE: u8 = 0x1;
const EXCLUSIVE_ACCESS: u8 = 0x3;
const EXCLUSIVE_ACCESS_REGISTRANTS_ONLY: u8 = 0x6;

const RESERVE_6: [u8; 6] = [0x16, 0, 0, 0, 0, 0];
const RELEASE_6: [u8; 6] = [0x17, 0, 0, 0, 0, 0];
const TEST_UNIT_READY: [u8; 6] = [0; 6];

fn two_hosts() -> Rig {
    Rig::hosts(2)
}

impl Rig {
    fn by(&mut self, host: NexusId, cdb: &[u8]) -> Tag {
        self.send_by(host, cdb, 512)
    }

    fn status_of(&mut self, host: NexusId, cdb: &[u8]) -> Status {
        let tag = self.by(host, cdb);
        self.completed(host, tag).status
    }

    fn out(&mut self, host: NexusId, action: u8, kind: u8, key: u64, other: u64) -> Tag {
        let mut list = [key.to_be_bytes(), other.to_be_bytes()].concat();
        list.resize(24, 0);
        let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
        self.send_by(host, &cdb, list)
    }

    fn well(&mut self, host: NexusId, action: u8, kind: u8, key: u64, other: u64) {
        let tag = self.out(host, action, kind, key, other);
        assert_eq!(self.completed(host, tag).status, Status::Good);
    }

    fn keys(&mut self, host: NexusId) -> Vec<u8> {
        let tag = self.by(host, &[0x5e, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!(self.completed(host, tag).status, Status::Good);
        self.data_in[&(host, tag)].clone()
    }

    fn attention_of(&mut self, host: NexusId) -> u16 {
        let tag = self.by(host, &TEST_UNIT_READY);
        let (key, code) = self.sense(host, tag);
        assert_eq!(key, 0x6);
        code
    }
}

#[test]
fn reserve_6_is_for_one_host_at_a_time() {
    let mut rig = two_hosts();
    assert_eq!(rig.status_of(A, &RESERVE_6), Status::Good);
    assert_eq!(rig.status_of(A, &RESERVE_6), Status::Good);
    assert_eq!(rig.status_of(B, &RESERVE_6), Status::ReservationConflict);
    assert_eq!(rig.status_of(B, &RELEASE_6), Status::Good);
    let mode_sense = [0x1a, 0, 0x3f, 0, 255, 0];
    assert_eq!(rig.status_of(A, &mode_sense), Status::Good);
    assert_eq!(rig.status_of(B, &mode_sense), Status::ReservationConflict);
    assert_eq!(rig.status_of(A, &RELEASE_6), Status::Good);
    assert_eq!(rig.status_of(B, &RESERVE_6), Status::Good);
}

#[test]
fn reserve_6_ends_with_its_nexus() {
    let mut rig = two_hosts();
    assert_eq!(rig.status_of(A, &RESERVE_6), Status::Good);
    rig.lose(A);
    assert_eq!(rig.gone, [A]);
    assert_eq!(rig.status_of(B, &RESERVE_6), Status::Good);
}

#[test]
fn reserve_6_ends_with_a_reset() {
    let mut rig = two_hosts();
    assert_eq!(rig.status_of(A, &RESERVE_6), Status::Good);
    rig.manage(A, Function::LogicalUnitReset);
    assert_eq!(rig.attention_of(B), 0x2903);
    assert_eq!(rig.status_of(B, &RESERVE_6), Status::Good);
}

#[test]
fn a_persistent_reservation_outlives_nexus_and_reset() {
    let mut rig = two_hosts();
    rig.well(A, REGISTER, 0, 0, 0xa);
    rig.well(A, RESERVE, EXCLUSIVE_ACCESS, 0xa, 0);
    rig.manage(B, Function::LogicalUnitReset);
    rig.lose(A);
    assert_eq!(rig.attention_of(B), 0x2903);
    let read = cdb10(0x28, 0, 0, 1);
    assert_eq!(rig.status_of(B, &read), Status::ReservationConflict);
    rig.log_in(A, 1);
    assert_eq!(rig.status_of(A, &read), Status::Good);
}

#[test]
fn preempt_tells_the_one_preempted_and_counts() {
    let mut rig = two_hosts();
    rig.well(A, REGISTER_AND_IGNORE, 0, 0, 0xa);
    rig.well(B, REGISTER_AND_IGNORE, 0, 0, 0xb);
    rig.well(B, PREEMPT, EXCLUSIVE_ACCESS, 0xb, 0xa);
    assert_eq!(rig.attention_of(A), 0x2a05);
    let expected = [0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0xb];
    assert_eq!(rig.keys(A), expected);
}

#[test]
fn a_holder_that_unregisters_tells_the_other_registrants() {
    let mut rig = two_hosts();
    rig.well(A, REGISTER, 0, 0, 0xa);
    rig.well(B, REGISTER, 0, 0, 0xb);
    rig.well(A, RESERVE, EXCLUSIVE_ACCESS_REGISTRANTS_ONLY, 0xa, 0);
    rig.well(A, REGISTER, 0, 0xa, 0);
    assert_eq!(rig.attention_of(B), 0x2a04);
}

/// What was begun by the fenced host ends at the medium before PREEMPT AND ABORT is answered, and
/// nothing of it lands afterwards.
#[test]
fn preempt_and_abort_fences() {
    let mut rig = two_hosts();
    rig.well(A, REGISTER, 0, 0, 0xa);
    rig.well(B, REGISTER, 0, 0, 0xb);
    rig.well(B, RESERVE, WRITE_EXCLUSIVE, 0xb, 0);
    rig.hold = true;
    let write = cdb10(0x2a, 0, 0, 1);
    let stuck = rig.send_by(B, &write, pattern(1, 1));
    assert_eq!(rig.held.len(), 1);
    let fence = rig.out(A, PREEMPT_AND_ABORT, WRITE_EXCLUSIVE, 0xa, 0xb);
    assert!(
        !rig.ended.contains_key(&(A, fence)),
        "the medium is at work"
    );
    rig.answer(0);
    assert_eq!(rig.completed(B, stuck).status, Status::TaskAborted);
    assert_eq!(rig.completed(A, fence).status, Status::Good);
    rig.hold = false;
    let before = rig.disks[0].clone();
    for _ in 0..3 {
        let late = rig.send_by(B, &write, pattern(1, 2));
        assert_ne!(rig.completed(B, late).status, Status::Good);
    }
    assert_eq!(rig.disks[0], before);
    assert_eq!(rig.status_of(B, &write), Status::ReservationConflict);
}

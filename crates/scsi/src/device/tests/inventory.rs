//! Units and LUNs that come and go under hosts that use them.

use std::sync::Arc;

use super::rig::{BLOCK, Rig, asks, cdb10, identity, nexus, pattern, target, traits};
use crate::medium::{Extent, MediumOp, SanitizeKind};
use crate::nexus::{NexusId, TargetDevice};
use crate::owner::{Input, UnitChange, UnitOwner};
use crate::task::{Attribute, Tag};
use crate::unit::{UnitId, UnitState};
use crate::wire::lun::Lun;
use crate::wire::sense::Status;

const HOST: NexusId = NexusId(0);
const TEST_UNIT_READY: [u8; 6] = [0; 6];
const NO_UNIT: (u8, u16) = (0x5, 0x2500);
const POWER_ON: (u8, u16) = (0x6, 0x2900);
const LUNS_CHANGED: (u8, u16) = (0x6, 0x3f0e);
const WRITE: [u8; 10] = cdb(0x2a, 8, 1);
const READ: [u8; 10] = cdb(0x28, 8, 1);

const fn cdb(opcode: u8, lba: u8, blocks: u8) -> [u8; 10] {
    [opcode, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

fn block() -> Vec<u8> {
    pattern(1, 7)
}

fn send(rig: &mut Rig, lun: u16, cdb: &[u8], data_out: Vec<u8>) -> Tag {
    let expected_in = if cdb[0] == READ[0] { BLOCK } else { 0 };
    rig.send_to(HOST, lun, cdb, Attribute::Simple, (expected_in, data_out))
}

fn tell(rig: &mut Rig, lun: u16) -> (u8, u16) {
    let tag = send(rig, lun, &TEST_UNIT_READY, Vec::new());
    rig.sense(HOST, tag)
}

fn is_ready(rig: &mut Rig, lun: u16) -> bool {
    let tag = send(rig, lun, &TEST_UNIT_READY, Vec::new());
    rig.status(tag) == Status::Good
}

/// What the host sees from now on.
fn remap(rig: &mut Rig, luns: &[(u16, UnitId)]) {
    let luns = luns.iter().map(|&(lun, unit)| (Lun::from_index(lun), unit));
    let device = TargetDevice {
        luns: luns.collect(),
        ..target(0)
    };
    rig.server.remap(HOST, Arc::new(device));
    rig.run();
}

fn fence(rig: &mut Rig, number: u64) -> bool {
    rig.server.fence(number);
    rig.run();
    rig.fenced.contains(&number)
}

/// Another unit with a disk of zeros.
fn attach(rig: &mut Rig, unit: UnitId) {
    let state = UnitState::new(identity(unit.slot + 10), traits());
    rig.server.attach(unit, &Arc::new(state.clone()));
    rig.disks.truncate(unit.index());
    rig.owners.truncate(unit.index());
    rig.disks.push(vec![0; traits().blocks as usize * BLOCK]);
    rig.owners.push(UnitOwner::new(state, 1));
}

const FIRST: UnitId = UnitId::first(0);
const SECOND: UnitId = UnitId::first(1);

#[test]
fn a_lun_that_comes_is_told_by_the_one_that_is_there() {
    let mut rig = Rig::new();
    assert_eq!(tell(&mut rig, 1), NO_UNIT);
    attach(&mut rig, SECOND);
    remap(&mut rig, &[(0, FIRST), (1, SECOND)]);
    assert_eq!(rig.attentions, [(HOST, 0x3f0e), (HOST, 0x3f0e)]);
    assert_eq!(tell(&mut rig, 0), LUNS_CHANGED);
    assert_eq!(tell(&mut rig, 1), POWER_ON);
    assert_eq!(tell(&mut rig, 1), LUNS_CHANGED);
    assert!(is_ready(&mut rig, 0) && is_ready(&mut rig, 1));
    let tag = send(&mut rig, 1, &WRITE, block());
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.disks[1][8 * BLOCK..9 * BLOCK], block());
}

#[test]
fn report_luns_tells_what_the_attention_would() {
    let mut rig = Rig::new();
    attach(&mut rig, SECOND);
    remap(&mut rig, &[(0, FIRST), (7, SECOND)]);
    let report = [0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0];
    let tag = rig.send(&report, 64);
    assert_eq!(rig.data(tag)[..4], [0, 0, 0, 16]);
    assert_eq!(rig.data(tag)[16..18], [0, 7]);
    assert!(is_ready(&mut rig, 0));
    assert_eq!(tell(&mut rig, 7), POWER_ON);
    assert!(is_ready(&mut rig, 7));
}

#[test]
fn what_a_host_sees_as_before_is_no_news() {
    let mut rig = Rig::new();
    remap(&mut rig, &[(0, FIRST)]);
    assert!(is_ready(&mut rig, 0));
    assert!(rig.attentions.is_empty());
}

#[test]
fn a_write_to_a_lun_that_goes_has_ended_at_the_medium_before_the_fence_stands() {
    let mut rig = Rig::with(1, 2, &traits()).holding();
    let tag = send(&mut rig, 1, &WRITE, block());
    rig.answer(0);
    assert!(matches!(rig.held[0].2, MediumOp::Write { .. }));
    remap(&mut rig, &[(0, FIRST)]);
    assert_eq!(rig.cancelled.len(), 1);
    assert!(!fence(&mut rig, 1), "the write may still reach the medium");
    rig.answer(0);
    assert_eq!(rig.status(tag), Status::TaskAborted);
    assert_eq!(rig.fenced, [1]);
    assert_eq!(tell(&mut rig, 1), NO_UNIT);
    assert_eq!(tell(&mut rig, 0), LUNS_CHANGED);
}

#[test]
fn a_host_that_owes_data_to_a_lun_that_goes_holds_nothing_up() {
    let mut rig = Rig::with(1, 2, &traits());
    rig.hold_data = true;
    let tag = send(&mut rig, 1, &WRITE, block());
    remap(&mut rig, &[(0, FIRST)]);
    assert_eq!(rig.status(tag), Status::TaskAborted);
    assert!(fence(&mut rig, 1));
    // What comes all the same goes nowhere.
    rig.send_data();
    assert_eq!(rig.disks[1][8 * BLOCK..9 * BLOCK], [0; BLOCK]);
}

#[test]
fn a_lun_that_becomes_another_units_tells_so_before_it_is_used() {
    let mut rig = Rig::with(1, 2, &traits());
    remap(&mut rig, &[(0, SECOND)]);
    assert_eq!(tell(&mut rig, 0), POWER_ON);
    assert_eq!(tell(&mut rig, 0), LUNS_CHANGED);
    assert_eq!(tell(&mut rig, 1), NO_UNIT);
    let tag = send(&mut rig, 0, &WRITE, block());
    assert_eq!(rig.status(tag), Status::Good);
    assert_eq!(rig.disks[0][8 * BLOCK..9 * BLOCK], [0; BLOCK]);
    assert_eq!(rig.disks[1][8 * BLOCK..9 * BLOCK], block());
}

#[test]
fn a_unit_that_goes_takes_its_work_in_the_background_with_it() {
    let mut rig = Rig::with(1, 2, &traits()).holding();
    let flush = [0x35, 2, 0, 0, 0, 0, 0, 0, 0, 0];
    let tag = send(&mut rig, 1, &flush, Vec::new());
    assert_eq!(rig.status(tag), Status::Good, "IMMED");
    remap(&mut rig, &[(0, FIRST)]);
    assert!(fence(&mut rig, 1), "nothing of the host's is left");
    rig.server.detach(SECOND);
    assert!(!fence(&mut rig, 2));
    rig.answer(0);
    assert_eq!(rig.fenced, [1, 2]);
}

#[test]
fn a_unit_that_goes_ends_a_sanitize_too() {
    let mut traits = traits();
    traits.sanitize = &[SanitizeKind::BlockErase];
    let mut rig = Rig::with(1, 2, &traits).holding();
    let tag = send(&mut rig, 1, &cdb10(0x48, 0x02, 0, 0), Vec::new());
    remap(&mut rig, &[(0, FIRST)]);
    assert_eq!(rig.status(tag), Status::TaskAborted);
    assert!(fence(&mut rig, 1), "it goes on without the host");
    rig.server.detach(SECOND);
    assert!(!fence(&mut rig, 2));
    rig.answer(0);
    assert!(rig.held.is_empty(), "it does not go on");
    assert_eq!(rig.fenced, [1, 2]);
}

#[test]
fn the_next_unit_in_a_slot_hears_nothing_that_was_meant_for_the_last() {
    let mut rig = Rig::with(1, 2, &traits());
    rig.hold_owner = true;
    let reserve = [0x16, 0, 0, 0, 0, 0];
    let tag = send(&mut rig, 1, &reserve, Vec::new());
    remap(&mut rig, &[(0, FIRST)]);
    rig.server.detach(SECOND);
    assert!(!fence(&mut rig, 1), "its owner has not answered");
    rig.let_owner_go();
    assert_eq!(rig.status(tag), Status::TaskAborted);
    assert_eq!(rig.fenced, [1]);
    let next = SECOND.successor();
    attach(&mut rig, next);
    // Of the unit that is gone: it is acknowledged, and changes nothing.
    let before = rig.server.unit(next).map(|unit| unit.state.version);
    let mut owner = UnitOwner::new(UnitState::new(identity(1), traits()), 1);
    owner.handle(Input::Request(asks(u64::MAX, UnitChange::Reset)));
    while let Some(output) = owner.poll() {
        if let crate::owner::OwnerOutput::Publish { publication, .. } = output {
            rig.server.publish(SECOND, publication);
        }
    }
    rig.run();
    assert_eq!(rig.server.unit(next).map(|unit| unit.state.version), before);
}

/// Whether it was granted: every core has acknowledged.
fn is_held(rig: &Rig) -> bool {
    let state = rig.owners[0].state();
    let unit = rig.server.unit(FIRST).expect("it is there");
    state.locks.iter().any(|lock| lock.extent == Extent::ALL) && unit.pending.is_empty()
}

const CONTROL: u64 = 1 << 63;

#[test]
fn what_comes_while_all_blocks_are_held_waits_and_then_goes_on() {
    let mut rig = Rig::new();
    rig.change(FIRST, CONTROL, UnitChange::Lock(Extent::ALL));
    assert!(is_held(&rig));
    rig.hold = true;
    let write = send(&mut rig, 0, &WRITE, block());
    let flush = send(&mut rig, 0, &cdb10(0x35, 0, 0, 0), Vec::new());
    let mode = [0x15, 0x10, 0, 0, 24, 0];
    let select = send(&mut rig, 0, &mode, vec![0; 24]);
    assert!(rig.held.is_empty(), "nothing goes to the medium");
    assert!(is_ready(&mut rig, 0), "what needs no medium is answered");
    rig.hold = false;
    rig.change(FIRST, CONTROL | 1, UnitChange::Unlock(CONTROL));
    for tag in [write, flush] {
        assert_eq!(rig.status(tag), Status::Good);
    }
    assert!(rig.ended.contains_key(&(HOST, select)));
    assert!(!rig.owners[0].state().shared.overlaps(Extent::new(0, 1)));
}

#[test]
fn all_blocks_are_held_when_what_was_begun_has_ended() {
    let mut rig = Rig::new();
    rig.hold_data = true;
    let owes = send(&mut rig, 0, &WRITE, block());
    rig.change(FIRST, CONTROL, UnitChange::Lock(Extent::ALL));
    assert!(!is_held(&rig), "a host owes data");
    rig.send_data();
    assert_eq!(rig.status(owes), Status::Good);
    assert!(is_held(&rig));
}

#[test]
fn a_flush_at_the_medium_holds_all_blocks_up_too() {
    let mut rig = Rig::new().holding();
    let flush = send(&mut rig, 0, &cdb10(0x35, 0, 0, 0), Vec::new());
    rig.change(FIRST, CONTROL, UnitChange::Lock(Extent::ALL));
    assert!(!is_held(&rig));
    rig.answer(0);
    assert_eq!(rig.status(flush), Status::Good);
    assert!(is_held(&rig));
}

/// What the host sees from now on: one unit, as LUN 0 and 1, of which these can be read only.
fn protect(rig: &mut Rig, read_only: &[u16]) {
    let luns = [0, 1].map(|lun| (Lun::from_index(lun), FIRST));
    let device = TargetDevice {
        luns: luns.into(),
        read_only: read_only.iter().map(|&lun| Lun::from_index(lun)).collect(),
        ..target(0)
    };
    rig.server.remap(HOST, Arc::new(device));
    rig.run();
}

const PROTECTED: (u8, u16) = (0x7, 0x2700);
const MODES_CHANGED: (u8, u16) = (0x6, 0x2a01);
const MODE_SENSE: [u8; 6] = [0x1a, 0x08, 0x3f, 0, 4, 0];
const WP: u8 = 0x80;

fn is_protected(rig: &mut Rig, lun: u16) -> bool {
    let data = (4, Vec::new());
    let tag = rig.send_to(HOST, lun, &MODE_SENSE, Attribute::Simple, data);
    rig.data(tag)[2] & WP != 0
}

#[test]
fn a_lun_can_be_for_reading_while_another_one_writes() {
    let mut rig = Rig::new();
    protect(&mut rig, &[1]);
    while !is_ready(&mut rig, 0) || !is_ready(&mut rig, 1) {}
    assert!(is_protected(&mut rig, 1) && !is_protected(&mut rig, 0));
    let refused = send(&mut rig, 1, &WRITE, block());
    assert_eq!(rig.sense(HOST, refused), PROTECTED);
    let written = send(&mut rig, 0, &WRITE, block());
    assert_eq!(rig.status(written), Status::Good);
    let read = send(&mut rig, 1, &READ, Vec::new());
    assert_eq!(rig.data(read), block());
}

#[test]
fn a_host_is_told_that_it_may_write_or_no_longer() {
    let mut rig = Rig::new();
    protect(&mut rig, &[]);
    while !is_ready(&mut rig, 0) || !is_ready(&mut rig, 1) {}
    for read_only in [&[1][..], &[]] {
        protect(&mut rig, read_only);
        assert!(is_ready(&mut rig, 0), "nothing has changed there");
        assert_eq!(tell(&mut rig, 1), MODES_CHANGED);
        assert!(is_ready(&mut rig, 1), "its LUNs are the same");
    }
}

#[test]
fn a_host_that_comes_back_is_told_that_it_can_only_read() {
    let mut rig = Rig::new();
    protect(&mut rig, &[]);
    while !is_ready(&mut rig, 0) || !is_ready(&mut rig, 1) {}
    let heard = rig.server.heard(HOST).unwrap();
    rig.server.nexus_lost(HOST);
    rig.run();
    let mut nexus = nexus(HOST, 0);
    nexus.target = Arc::new(TargetDevice {
        read_only: [Lun::from_index(1)].into(),
        ..TargetDevice::clone(&heard.target)
    });
    rig.server.nexus_back(HOST, nexus, &heard);
    assert_eq!(tell(&mut rig, 0), (0x6, 0x2907));
    assert!(is_ready(&mut rig, 0));
    assert_eq!(tell(&mut rig, 1), (0x6, 0x2907));
    assert_eq!(tell(&mut rig, 1), MODES_CHANGED);
}

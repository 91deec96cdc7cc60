//! What changes about a unit while it is used, and is told by unit attentions.

use super::unit::{BLOCK, Rig, Unit, flush, write, write_at, zeros};
use crate::medium::{Extent, MediumError, MediumOp, ReadMemory};
use crate::wire::sense::SenseKey;
use crate::wire::sense::Status;

const CHANGED: [u16; 10] = [
    0x2800, 0x2900, 0x2901, 0x2902, 0x2903, 0x2904, 0x2a01, 0x2a09, 0x3f03, 0x3f0e,
];

/// A unit that begins to cache writes, as the next write is told.
fn begins_to_cache(dpofua: bool) -> Rig {
    let mut rig = Rig::ready(Unit {
        write_cache: false,
        dpofua,
        ..Unit::default()
    });
    rig.unit.write_cache = true;
    rig.ends(SenseKey::UnitAttention, 0x2a01);
    rig
}

fn last<const N: usize>(rig: &mut Rig) -> [String; N] {
    let asked = rig.take_asked();
    asked[asked.len() - N..].to_vec().try_into().unwrap()
}

#[test]
fn another_unit_that_comes_in_its_place_is_not_written() {
    for code in CHANGED {
        let mut rig = Rig::default();
        rig.unit.serial = "s2";
        rig.ends(SenseKey::UnitAttention, code);
        assert_eq!(rig.go(write()).unwrap_err(), MediumError::Gone);
        let told = rig.take_told();
        let told = told.last().unwrap();
        assert!(told.starts_with("refused: a different unit"), "{code:#06x}");
        let writes = rig.asked.iter().filter(|cdb| cdb.starts_with("2a"));
        assert_eq!(writes.count(), 1, "{code:#06x}");
    }
}

#[test]
fn what_was_read_meanwhile_waits_for_the_unit_to_be_the_same() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x28);
    let (extent, memory) = (Extent::new(0, 1), ReadMemory::Lent);
    let read = rig.submit(MediumOp::Read { extent, memory });
    rig.run();
    let id = rig.unanswered.pop().unwrap();
    rig.unit.silent.push(0x12);
    rig.ends(SenseKey::UnitAttention, 0x3f0e);
    let written = rig.submit(write());
    rig.run();
    rig.answers(id, Status::Good, BLOCK as usize);
    assert!(rig.results.is_empty());
    let inquiry = rig.unanswered.pop().unwrap();
    rig.unit.silent.clear();
    rig.answers(inquiry, Status::TaskAborted, 0);
    let mut done: Vec<u64> = rig.results.iter().map(|(id, _)| *id).collect();
    done.sort_unstable();
    assert_eq!(done, [read, written]);
}

#[test]
fn a_unit_that_becomes_smaller_is_refused() {
    let mut rig = Rig::default();
    rig.unit.blocks = 1024;
    rig.ends(SenseKey::UnitAttention, 0x2a09);
    assert_eq!(rig.go(write()).unwrap_err(), MediumError::Gone);
    let refused = "refused: it has 1024 blocks, and had 2048";
    rig.tells([refused]);
}

#[test]
fn what_changes_while_it_is_asked_is_asked_again() {
    let mut rig = Rig::default();
    // Up to the capacity.
    rig.ends(SenseKey::UnitAttention, 0x2a09);
    rig.unit.silent.push(0x1a);
    rig.submit(write());
    rig.run();
    rig.unit.blocks = 4096;
    rig.unit.silent.clear();
    let caching = rig.unanswered.pop().unwrap();
    let attention = [0x72, 0x06, 0x2a, 0x09, 0, 0, 0, 0];
    let answer = super::super::CommandStatus {
        status: 0x02,
        sense: &attention,
        moved: 0,
    };
    rig.client.answered(rig.now, caching, &answer);
    rig.run();
    rig.tells(["4096 blocks, cached", "ready"]);
    assert!(matches!(rig.results.pop(), Some((_, Ok(_)))));
}

#[test]
fn announcements_without_end_are_given_up() {
    let mut rig = Rig::default();
    for _ in 0..1000 {
        rig.ends(SenseKey::UnitAttention, 0x2a09);
    }
    rig.submit(write());
    rig.run();
    rig.tells(["not now: it does not become ready: check the target"]);
}

#[test]
fn a_unit_that_begins_to_cache_keeps_what_its_user_takes_for_kept() {
    let mut rig = begins_to_cache(true);
    rig.go(write()).unwrap();
    rig.tells(["2048 blocks, cached", "ready"]);
    // The first time it went out as if there were no cache.
    assert_eq!(last(&mut rig), ["2a0800000001000001", "35"]);
    rig.go(write()).unwrap();
    assert_eq!(last(&mut rig), ["2a0800000001000001"]);
    let mut rig = begins_to_cache(false);
    rig.go(write()).unwrap();
    assert_eq!(last(&mut rig), ["2a0000000001000001", "35"]);
    rig.go(zeros(2)).unwrap();
    assert_eq!(last(&mut rig), ["9300000000000000000000000002", "35"]);
    rig.go(flush()).unwrap();
    assert_eq!(last(&mut rig), ["35"]);
}

#[test]
fn a_cache_that_its_user_knows_is_used_and_flushed() {
    let mut rig = begins_to_cache(true);
    rig.go(write()).unwrap();
    rig.cache.is_known();
    rig.go(write()).unwrap();
    assert_eq!(last(&mut rig), ["2a0000000001000001"]);
    rig.ends(SenseKey::UnitAttention, 0x2901);
    assert_eq!(rig.go(flush()).unwrap_err(), MediumError::Write);
    rig.go(flush()).unwrap();
}

#[test]
fn a_write_that_is_under_way_when_a_cache_begins_is_flushed() {
    let mut rig = Rig::with(|unit| unit.write_cache = false);
    rig.unit.silent.push(0x2a);
    let first = rig.submit(write_at(1, true));
    rig.run();
    let id = rig.unanswered.pop().unwrap();
    rig.unit.silent.clear();
    rig.unit.write_cache = true;
    rig.ends(SenseKey::UnitAttention, 0x2a01);
    rig.go(write_at(2, false)).unwrap();
    rig.take_asked();
    rig.answers(id, Status::Good, BLOCK as usize);
    rig.asks(["35"]);
    assert!(matches!(rig.results.pop(), Some((id, Ok(_))) if id == first));
}

#[test]
fn a_cache_that_ends_is_flushed_once_more() {
    let mut rig = Rig::default();
    rig.go(write()).unwrap();
    rig.unit.write_cache = false;
    rig.ends(SenseKey::UnitAttention, 0x2a01);
    rig.go(write_at(2, false)).unwrap();
    rig.tells(["2048 blocks", "ready"]);
    rig.take_asked();
    rig.go(flush()).unwrap();
    rig.go(flush()).unwrap();
    rig.asks(["35"]);
}

#[test]
fn protection_comes_and_goes() {
    let mut rig = Rig::default();
    rig.unit.write_protected = true;
    rig.ends(SenseKey::DataProtect, 0x2700);
    assert_eq!(rig.go(write()).unwrap_err(), MediumError::ReadOnly);
    rig.tells(["2048 blocks, cached, protected", "ready"]);
    rig.unit.write_protected = false;
    rig.ends(SenseKey::UnitAttention, 0x2a01);
    rig.go(flush()).unwrap();
    rig.tells(["2048 blocks, cached", "ready"]);
    rig.go(write()).unwrap();
}

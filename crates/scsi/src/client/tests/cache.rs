//! Writes that the unit's cache may lose.

use std::sync::Arc;

use super::super::cache::CacheView;
use super::super::{Cache, Client, CommandStatus};
use super::unit::{BLOCK, Rig, Unit, flush, zeros};
use crate::medium::{Extent, HeapLease, Lease, MediumError, MediumOp};
use crate::wire::sense::{SenseKey, Status};

fn blocks(count: usize) -> Vec<u8> {
    vec![5; count * BLOCK as usize]
}

fn without_fua() -> Unit {
    Unit::with(|unit| unit.dpofua = false)
}

fn good(rig: &mut Rig) {
    rig.endings.push_back((Status::Good, None));
}

/// Some of the clients of one unit, with a nexus each.
fn sharing<const N: usize>(cache: &Arc<Cache>) -> [Rig; N] {
    let asked = Rig::default();
    let facts = asked.client.facts().unwrap();
    [(); N].map(|()| {
        let mut rig = Rig::new(Unit::default());
        rig.client = Client::of(facts.clone(), Arc::clone(cache));
        rig.ends(SenseKey::UnitAttention, 0x2900);
        rig.begin();
        rig
    })
}

#[test]
fn what_was_not_flushed_is_written_again_on_the_next_nexus() {
    let mut rig = Rig::ready(without_fua());
    rig.unit.silent.push(0x35);
    rig.submit(MediumOp::Write {
        extent: Extent::new(1, 1),
        data: HeapLease::from_bytes(blocks(1)),
        fua: true,
        atomic: false,
    });
    rig.run();
    rig.asks(["2a0000000001000001", "35"]);
    rig.client.lost();
    rig.unit.silent.clear();
    rig.ends(SenseKey::UnitAttention, 0x2901);
    rig.begin();
    let asked = rig.take_asked();
    assert_eq!(asked[asked.len() - 2..], ["2a0000000001000001", "35"]);
    assert!(matches!(rig.results.pop(), Some((_, Ok(_)))));
}

#[test]
fn what_was_not_flushed_is_written_again_after_a_reset() {
    let mut rig = Rig::ready(without_fua());
    good(&mut rig);
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.write(1, &blocks(1), true).unwrap();
    let both = ["2a0000000001000001", "35"];
    assert_eq!(rig.take_work(), [both, both].concat());
}

#[test]
fn all_pieces_are_written_again_after_a_reset() {
    let mut rig = Rig::with(|unit| unit.max_transfer = 3);
    good(&mut rig);
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.write(0, &blocks(5), false).unwrap();
    let both = ["2a0000000000000003", "2a0000000003000002"];
    assert_eq!(rig.take_work(), [both, both].concat());
    // With FUA, what was written is there.
    good(&mut rig);
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.write(0, &blocks(5), true).unwrap();
    let [first, second] = ["2a0800000000000003", "2a0800000003000002"];
    rig.works([first, second, second]);
}

#[test]
fn what_stands_for_write_same_is_written_again_after_a_reset() {
    let mut rig = Rig::default();
    rig.ends(SenseKey::IllegalRequest, 0x2000);
    good(&mut rig);
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.go(zeros(256)).unwrap();
    let both = ["2a0000000000000080", "2a0000000080000080"];
    assert_eq!(rig.take_work()[1..], [both, both].concat());
}

#[test]
fn resets_without_end_are_given_up() {
    let mut rig = Rig::with(|unit| unit.max_transfer = 3);
    rig.ends_only = Some(0x2a);
    for _ in 0..16 {
        good(&mut rig);
        rig.ends(SenseKey::UnitAttention, 0x2900);
    }
    assert_eq!(
        rig.write(0, &blocks(5), false).unwrap_err(),
        MediumError::Write
    );
}

#[test]
fn a_flush_covers_what_ended_before_it() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x35);
    rig.submit(flush());
    rig.run();
    rig.write(1, &blocks(1), false).unwrap();
    let answer = CommandStatus {
        status: Status::Good as u8,
        sense: &[],
        moved: 0,
    };
    let id = rig.unanswered.pop().unwrap();
    rig.client.answered(rig.now, id, &answer);
    rig.client.lost();
    rig.ends(SenseKey::UnitAttention, 0x2901);
    rig.begin();
    rig.tells(["cache lost", "ready"]);
}

#[test]
fn a_loss_is_told_by_a_flush_of_each_client() {
    let [mut one, mut other] = sharing(&Arc::default());
    one.write(1, &blocks(1), false).unwrap();
    other.ends(SenseKey::UnitAttention, 0x2901);
    for rig in [&mut other, &mut one] {
        assert!(matches!(rig.go(flush()), Err(MediumError::Write)));
        rig.go(flush()).unwrap();
    }
}

#[test]
fn a_flush_covers_what_any_client_wrote() {
    let [mut one, mut other] = sharing(&Arc::default());
    one.write(1, &blocks(1), false).unwrap();
    other.go(flush()).unwrap();
    one.ends(SenseKey::UnitAttention, 0x2901);
    one.go(flush()).unwrap();
}

#[test]
fn what_each_new_client_is_told_is_no_reset_unless_a_nexus_was_lost() {
    let cache = Arc::default();
    let [mut one] = sharing(&cache);
    one.write(1, &blocks(1), false).unwrap();
    let [mut second] = sharing(&cache);
    second.tells(["ready"]);
    one.client.lost();
    let [mut third] = sharing(&cache);
    third.tells(["cache lost", "ready"]);
}

#[test]
fn a_flush_of_a_new_client_does_not_hide_what_an_older_one_lost() {
    let cache = Arc::default();
    let [mut one] = sharing(&cache);
    one.write(1, &blocks(1), false).unwrap();
    // The reset that this one is told of may be one that all of them are told of.
    let [mut second] = sharing(&cache);
    second.go(flush()).unwrap();
    one.ends(SenseKey::UnitAttention, 0x2900);
    assert!(matches!(one.go(flush()), Err(MediumError::Write)));
    assert!(matches!(second.go(flush()), Err(MediumError::Write)));
    second.write(1, &blocks(1), false).unwrap();
    second.go(flush()).unwrap();
    one.ends(SenseKey::UnitAttention, 0x2900);
    one.go(flush()).unwrap();
}

#[test]
fn a_write_that_ends_when_another_client_is_told_of_a_reset_counts_as_lost() {
    let cache = Arc::<Cache>::default();
    let (mut one, other) = (
        CacheView::of(Arc::clone(&cache)),
        CacheView::of(Arc::clone(&cache)),
    );
    one.open();
    let before = other.resets();
    assert!(!one.reset());
    assert!(other.wrote(before));
    assert!(one.flushed(one.written()));
    assert!(!other.wrote(other.resets()));
}

#[test]
fn a_loss_that_nobody_has_told_is_told_by_who_comes_later() {
    let cache = Arc::default();
    let [mut one] = sharing(&cache);
    one.write(1, &blocks(1), false).unwrap();
    one.ends(SenseKey::UnitAttention, 0x2901);
    one.write(1, &blocks(1), false).unwrap();
    let [mut second] = sharing(&cache);
    assert!(matches!(second.go(flush()), Err(MediumError::Write)));
    let [mut third] = sharing(&cache);
    third.go(flush()).unwrap();
}

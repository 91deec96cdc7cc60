//! Task attributes.

use super::rig::{Rig, cdb10, pattern};
use crate::nexus::NexusId;
use crate::task::{Attribute, Tag};
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);

fn read(rig: &mut Rig, attribute: Attribute) -> Tag {
    rig.send_to(NEXUS, 0, &cdb10(0x28, 0, 0, 1), attribute, 512)
}

#[test]
fn simple_commands_go_side_by_side() {
    let mut rig = Rig::new().holding();
    let first = read(&mut rig, Attribute::Simple);
    let second = read(&mut rig, Attribute::Simple);
    rig.answer(1);
    rig.answer(0);
    assert_eq!(rig.order[1..], [second, first]);
}

#[test]
fn ordered_waits_for_older_and_holds_newer_back() {
    let mut rig = Rig::new().holding();
    let first = read(&mut rig, Attribute::Simple);
    let second = read(&mut rig, Attribute::Ordered);
    let third = read(&mut rig, Attribute::Simple);
    let fourth = read(&mut rig, Attribute::Ordered);
    assert_eq!(rig.held.len(), 1);
    for _ in 0..4 {
        assert_eq!(rig.held.len(), 1);
        rig.answer(0);
    }
    assert_eq!(rig.order[1..], [first, second, third, fourth]);
}

#[test]
fn head_of_queue_passes_what_has_not_begun() {
    let mut rig = Rig::new().holding();
    let first = read(&mut rig, Attribute::Simple);
    let ordered = read(&mut rig, Attribute::Ordered);
    let head = read(&mut rig, Attribute::HeadOfQueue);
    let last = read(&mut rig, Attribute::Simple);
    assert_eq!(rig.held.len(), 2);
    rig.answer(0);
    assert_eq!(rig.held.len(), 1, "ORDERED still waits for HEAD OF QUEUE");
    rig.answer(0);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.order[1..], [first, head, ordered, last]);
}

#[test]
fn a_long_chain_of_ordered_commands_is_no_recursion() {
    let mut rig = Rig::new().holding();
    let first = read(&mut rig, Attribute::Simple);
    for _ in 0..1000 {
        rig.send_to(NEXUS, 0, &[0; 6], Attribute::Ordered, ());
    }
    assert_eq!(rig.order.len(), 1);
    rig.answer(0);
    assert_eq!(rig.order.len(), 1002);
    assert!(rig.order[1..].is_sorted() && rig.order[1] == first);
}

#[test]
fn a_task_set_has_an_end() {
    let mut rig = Rig::hosts(2).holding();
    for _ in 0..1024 {
        read(&mut rig, Attribute::Simple);
    }
    let tag = read(&mut rig, Attribute::Simple);
    assert_eq!(rig.status(tag), Status::TaskSetFull);
    rig.hold = false;
    let write = cdb10(0x2a, 0, 0, 1);
    rig.good_by(NexusId(1), &write, pattern(1, 0));
}

#[test]
fn aca_is_refused() {
    let mut rig = Rig::new();
    let tag = read(&mut rig, Attribute::Aca);
    assert_eq!(rig.sense(NEXUS, tag), (0x5, 0x4900));
}

//! What a client asks before it does anything, and what it makes of the answers.

use std::time::Duration;

use super::unit::{Rig, Unit};
use crate::medium::Traits;
use crate::wire::sense::{SenseKey, Status};

#[test]
fn a_unit_is_asked_what_it_is() {
    let mut rig = Rig::new(Unit::default());
    rig.begin();
    assert_eq!(
        rig.asked,
        [
            "",
            "12000000ff",
            "12010000ff",
            "12018000ff",
            "12018300ff",
            "1201b000ff",
            "1201b100ff",
            "1201b200ff",
            "9e10000000000000000000000020",
            "1a000800ff",
            "a30c0193000000000014",
        ]
    );
    let facts = rig.client.facts().unwrap();
    assert_eq!(
        facts.traits,
        Traits {
            block_size: 512,
            blocks: 2048,
            physical_exponent: 0,
            read_only: false,
            write_cache: true,
            unmap_granularity: Some(8),
            anchor: false,
            atomic: None,
            sanitize: &[],
            write_same_to_end: false,
            shared: true,
            solid_state: true,
        }
    );
    let identity = &facts.identity;
    assert_eq!(
        (
            &identity.vendor[..],
            &identity.product[..],
            &identity.serial[..]
        ),
        ("LUNAR", "DISK", "s1")
    );
    assert_eq!(identity.designator, [1, 3, 0x30, 7, 7, 7, 7, 7, 7, 7]);
    rig.tells(["ready"]);
}

#[test]
fn what_is_only_told_by_the_way_is_asked_again() {
    let mut rig = Rig::new(Unit::default());
    rig.ends(SenseKey::UnitAttention, 0x2900);
    rig.ends(SenseKey::UnitAttention, 0x3f0e);
    rig.ends(SenseKey::AbortedCommand, 0x4700);
    rig.begin();
    assert_eq!(rig.asked[..5], ["", "", "", "", "12000000ff"]);
    rig.tells(["ready"]);
}

#[test]
fn what_becomes_ready_is_waited_for() {
    let mut rig = Rig::new(Unit::default());
    rig.ends(SenseKey::NotReady, 0x0401);
    rig.endings.push_back((Status::Busy, None));
    rig.client.begin();
    for _ in 0..2 {
        rig.run();
        rig.asks([""]);
        rig.now = rig.client.next_deadline().unwrap();
        rig.client.expire(rig.now);
    }
    rig.run();
    rig.tells(["ready"]);
}

#[test]
fn what_never_becomes_ready_is_given_up() {
    let mut rig = Rig::new(Unit::default());
    for _ in 0..100 {
        rig.ends(SenseKey::NotReady, 0x0401);
    }
    rig.begin();
    while let Some(at) = rig.client.next_deadline() {
        rig.now = at;
        rig.client.expire(at);
        rig.run();
    }
    rig.tells(["refused: it does not become ready: check the target"]);
    assert!(rig.now < Duration::from_secs(60));
}

#[test]
fn old_units_do_without_the_long_form_and_without_pages() {
    let mut rig = Rig::new(Unit {
        unknown: vec![0x9e, 0x1a],
        write_same_unmaps: false,
        ..Unit::default()
    });
    rig.begin();
    assert_eq!(rig.asked.last().unwrap(), "1a000800ff");
    assert!(rig.asked.contains(&"25".to_owned()));
    let facts = rig.client.facts().unwrap();
    assert_eq!(facts.traits.blocks, 2048);
    assert!(!facts.traits.write_cache);
}

#[test]
fn a_unit_that_is_larger_than_anything_is_refused() {
    let mut rig = Rig::new(Unit::with(|unit| unit.blocks = 1 << 54));
    rig.begin();
    rig.tells(["refused: it reports 18014398509481984 blocks, more than a unit can have"]);
}

#[test]
fn a_lun_without_a_unit_is_told() {
    let mut rig = Rig::new(Unit::default());
    rig.ends(SenseKey::IllegalRequest, 0x2500);
    rig.ends(SenseKey::IllegalRequest, 0x2500);
    rig.begin();
    assert_eq!(rig.asked, ["", "12000000ff"]);
    rig.tells(["refused: no such LUN: `lunar ls` lists the LUNs of the target"]);
}

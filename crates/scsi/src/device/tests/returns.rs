//! Ports whose nexus was lost, and that come back.

use super::rig::{Rig, nexus, traits};
use crate::medium::Traits;
use crate::nexus::{AttentionHistory, NexusId};
use crate::owner::UnitChange;
use crate::task::{Attribute, Function};
use crate::unit::UnitId;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);
const OTHER: NexusId = NexusId(1);
const UNITS: u32 = 2;

/// The nexus is lost; returns what its port had heard.
fn lose(rig: &mut Rig) -> AttentionHistory {
    let heard = rig.server.heard(NEXUS).expect("it is there");
    rig.lose(NEXUS);
    heard
}

/// Its port comes back; returns what each unit tells then.
fn come_back(rig: &mut Rig, heard: &AttentionHistory) -> Vec<(u8, u16)> {
    rig.server.nexus_back(NEXUS, nexus(NEXUS, UNITS), heard);
    (0..UNITS).map(|unit| ask(rig, unit)).collect()
}

fn ask(rig: &mut Rig, unit: u32) -> (u8, u16) {
    let simple = Attribute::Simple;
    let tag = rig.send_to(NEXUS, unit as u16, &[0; 6], simple, ());
    rig.sense(NEXUS, tag)
}

const LOSS: (u8, u16) = (0x6, 0x2907);
const POWER_ON: (u8, u16) = (0x6, 0x2900);
const LUNS_CHANGED: (u8, u16) = (0x6, 0x3f0e);

#[test]
fn a_port_that_comes_back_is_told_of_the_loss_and_of_nothing_else() {
    let mut rig = Rig::with(1, UNITS, &traits());
    let heard = lose(&mut rig);
    assert_eq!(come_back(&mut rig, &heard), [LOSS, LOSS]);
}

#[test]
fn what_a_port_had_not_heard_is_not_hidden_by_the_loss() {
    let mut rig = Rig::with(1, UNITS, &traits());
    resize(&mut rig, 1);
    let heard = lose(&mut rig);
    assert_eq!(come_back(&mut rig, &heard), [LOSS, POWER_ON]);
}

#[test]
fn what_a_port_misses_while_it_is_away_is_not_hidden_by_the_loss() {
    let mut rig = Rig::with(2, UNITS, &traits());
    let heard = lose(&mut rig);
    rig.manage(OTHER, Function::LogicalUnitReset);
    assert_eq!(come_back(&mut rig, &heard), [POWER_ON, LOSS]);
}

#[test]
fn a_loss_that_was_not_heard_is_no_more_than_a_loss() {
    let mut rig = Rig::with(1, UNITS, &traits());
    let heard = lose(&mut rig);
    rig.server.nexus_back(NEXUS, nexus(NEXUS, UNITS), &heard);
    let heard = lose(&mut rig);
    assert_eq!(come_back(&mut rig, &heard), [LOSS, LOSS]);
}

#[test]
fn what_parameter_data_told_may_not_have_come() {
    let mut rig = Rig::with(1, UNITS, &traits());
    resize(&mut rig, 1);
    request_sense(&mut rig, 1);
    let heard = lose(&mut rig);
    assert_eq!(come_back(&mut rig, &heard), [LOSS, POWER_ON]);
    // Of the next nexus that is known again; and a loss is told again by the next one.
    let heard = lose(&mut rig);
    rig.server.nexus_back(NEXUS, nexus(NEXUS, UNITS), &heard);
    request_sense(&mut rig, 1);
    let heard = lose(&mut rig);
    assert_eq!(come_back(&mut rig, &heard), [LOSS, LOSS]);
}

fn request_sense(rig: &mut Rig, unit: u16) {
    let (cdb, simple) = ([0x03, 0, 0, 0, 252, 0], Attribute::Simple);
    let tag = rig.send_to(NEXUS, unit, &cdb, simple, 252);
    assert_eq!(rig.completed(NEXUS, tag).status, Status::Good);
}

#[test]
fn of_units_that_a_port_has_never_seen_it_is_told_power_on() {
    let mut rig = Rig::with(1, UNITS, &traits());
    let heard = lose(&mut rig);
    let fewer = AttentionHistory {
        target: nexus(NEXUS, 1).target,
        versions: heard.versions[..1].into(),
    };
    assert_eq!(come_back(&mut rig, &fewer), [LOSS, POWER_ON]);
    // And that it has them.
    assert_eq!([ask(&mut rig, 0), ask(&mut rig, 1)], [LUNS_CHANGED; 2]);
}

fn resize(rig: &mut Rig, unit: u32) {
    let blocks = traits().blocks * 2;
    let grown = UnitChange::Medium(Traits { blocks, ..traits() });
    rig.change(UnitId::first(unit), u64::MAX, grown);
}

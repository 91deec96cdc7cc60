mod access;
mod actions;
mod commands;
mod exclusive;
mod model;
mod preempt;
mod store;

use std::sync::Arc;

use super::{Action, ActionOutcome, Register, ReservationRefusal, ReservationType, Reservations};
use crate::nexus::NexusIdentity;

fn register(key: u64, new_key: u64) -> Action {
    Action::Register(Register {
        key: Some(key),
        new_key,
        siblings: Vec::new(),
        specified: None,
        aptpl: false,
    })
}

fn register_anyway(new_key: u64) -> Action {
    Action::Register(Register {
        key: None,
        new_key,
        siblings: Vec::new(),
        specified: None,
        aptpl: false,
    })
}

fn reserve(key: u64, kind: ReservationType) -> Action {
    Action::Reserve { key, kind }
}

fn release(key: u64, kind: ReservationType) -> Action {
    Action::Release { key, kind }
}

fn preempt(key: u64, victim: u64, kind: ReservationType) -> Action {
    Action::Preempt {
        key,
        victim,
        kind: Some(kind),
        abort: false,
    }
}

/// Acts as a unit's state does: what is refused changes nothing.
fn act(
    reservations: &mut Reservations,
    nexus: &Arc<NexusIdentity>,
    action: &Action,
) -> Result<ActionOutcome, ReservationRefusal> {
    let mut next = reservations.clone();
    let outcome = next.act(nexus, action)?;
    *reservations = next;
    Ok(outcome)
}

/// Acts, and expects it to go well without a word to anybody.
fn quietly(reservations: &mut Reservations, nexus: &Arc<NexusIdentity>, action: &Action) {
    let outcome = act(reservations, nexus, action);
    assert_eq!(outcome, Ok(ActionOutcome::default()), "{action:?}");
}

#[track_caller]
fn refuses(
    reservations: &mut Reservations,
    nexus: &Arc<NexusIdentity>,
    action: &Action,
    why: ReservationRefusal,
) {
    assert_eq!(act(reservations, nexus, action), Err(why), "{action:?}");
}

/// Registers each host with its key.
fn registered(hosts: &[(&Arc<NexusIdentity>, u64)]) -> Reservations {
    let mut reservations = Reservations::default();
    for (host, key) in hosts {
        quietly(&mut reservations, host, &register(0, *key));
    }
    reservations
}

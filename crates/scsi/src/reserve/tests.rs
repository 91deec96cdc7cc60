mod access;
mod actions;
mod commands;
mod exclusive;
mod model;
mod preempt;
mod store;

use std::sync::Arc;

use super::{Action, Outcome, Refusal, Register, Reservations, Type};
use crate::nexus::Identity;

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

fn reserve(key: u64, kind: Type) -> Action {
    Action::Reserve { key, kind }
}

fn release(key: u64, kind: Type) -> Action {
    Action::Release { key, kind }
}

fn preempt(key: u64, victim: u64, kind: Type) -> Action {
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
    nexus: &Arc<Identity>,
    action: &Action,
) -> Result<Outcome, Refusal> {
    let mut next = reservations.clone();
    let outcome = next.act(nexus, action)?;
    *reservations = next;
    Ok(outcome)
}

/// Acts, and expects it to go well without a word to anybody.
fn quietly(reservations: &mut Reservations, nexus: &Arc<Identity>, action: &Action) {
    let outcome = act(reservations, nexus, action);
    assert_eq!(outcome, Ok(Outcome::default()), "{action:?}");
}

/// Registers each host with its key.
fn registered(hosts: &[(&Arc<Identity>, u64)]) -> Reservations {
    let mut reservations = Reservations::default();
    for (host, key) in hosts {
        quietly(&mut reservations, host, &register(0, *key));
    }
    reservations
}

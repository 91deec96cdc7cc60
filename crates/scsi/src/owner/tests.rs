mod any_order;
mod crash;
mod in_turn;
mod lock;

use super::*;
use crate::reserve::{Action, Register, Type};
use crate::testing::{host, unit};

const CONFLICT: Failure = Failure::Status(Status::ReservationConflict);

/// What an owner did, short enough to compare.
#[derive(Debug, PartialEq)]
enum Did {
    Publish(u64),
    Persist,
    Reply(u16, u64, Result<(), Failure>),
}

/// Two cores and the owner of a unit between them.
fn owner() -> Owner {
    Owner::new(unit(), 2)
}

/// Hands something in, and tells what came out.
fn did(owner: &mut Owner, input: Input) -> Vec<Did> {
    owner.handle(input);
    std::iter::from_fn(|| owner.poll()).map(brief).collect()
}

fn brief(output: Output) -> Did {
    match output {
        Output::Publish(publication) => Did::Publish(publication.state.version),
        Output::Persist(_) => Did::Persist,
        Output::Reply { core, id, result } => Did::Reply(core.0, id, result),
    }
}

fn ask(core: u16, id: u64, change: Change) -> Input {
    let nexus = Some(host(core as u8 + 1));
    let core = CoreId(core);
    Input::Request(Request {
        core,
        id,
        nexus,
        change,
    })
}

fn acknowledge(core: u16, version: u64) -> Input {
    let core = CoreId(core);
    Input::Acknowledged { core, version }
}

fn register(new_key: u64, aptpl: bool) -> Change {
    Change::PersistentReserve(Action::Register(Register {
        key: None,
        new_key,
        siblings: Vec::new(),
        specified: None,
        aptpl,
    }))
}

fn reserve(key: u64) -> Change {
    let kind = Type::WriteExclusive;
    Change::PersistentReserve(Action::Reserve { key, kind })
}

mod any_order;
mod crash;
mod in_turn;
mod lock;
mod subscribe;

use self::Did::{Persist, Publish, Reply};
use super::*;
use crate::reserve::{Action, Register, ReservationType};
use crate::testing::{host, unit};

const CONFLICT: CommandFailure = CommandFailure::Status(Status::ReservationConflict);

/// What an owner did, short enough to compare.
#[derive(Debug, PartialEq)]
enum Did {
    Publish(u64),
    Persist,
    Reply(u16, u64, Result<(), CommandFailure>),
}

/// Two cores that use a unit, and its owner between them.
fn owner() -> UnitOwner {
    let mut owner = UnitOwner::new(unit(), 2);
    for core in 0..2 {
        let answer = Reply(core, 1000, Ok(()));
        owner.does(ask(core, 1000, UnitChange::Subscribe), [Publish(0), answer]);
    }
    owner
}

/// Hands something in, and tells what came out.
fn did(owner: &mut UnitOwner, input: Input) -> Vec<Did> {
    owner.handle(input);
    std::iter::from_fn(|| owner.poll()).map(brief).collect()
}

impl UnitOwner {
    /// Hands something in, of which exactly this comes.
    #[track_caller]
    fn does<const N: usize>(&mut self, input: Input, expected: [Did; N]) {
        assert_eq!(did(self, input), Vec::from(expected));
    }
}

fn brief(output: OwnerOutput) -> Did {
    match output {
        OwnerOutput::Publish { publication, .. } => Publish(publication.state.version),
        OwnerOutput::Persist(_) => Persist,
        OwnerOutput::Reply { core, id, result } => Reply(core.0, id, result),
    }
}

fn ask(core: u16, id: u64, change: UnitChange) -> Input {
    let nexus = Some(host(core as u8 + 1));
    let core = CoreId(core);
    Input::Request(OwnerRequest {
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

fn register(new_key: u64, aptpl: bool) -> UnitChange {
    UnitChange::PersistentReserve(Action::Register(Register {
        key: None,
        new_key,
        siblings: Vec::new(),
        specified: None,
        aptpl,
    }))
}

fn reserve(key: u64) -> UnitChange {
    let kind = ReservationType::WriteExclusive;
    UnitChange::PersistentReserve(Action::Reserve { key, kind })
}

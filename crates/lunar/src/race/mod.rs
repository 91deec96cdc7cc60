//! `lunar race`: from the command line to turns, and what came of them.

pub(crate) mod args;

use std::process::ExitCode;

use args::RaceArgs;
use bench::load::Subject;
use bench::race::Plan;
use bench::run::{self, begun};

use crate::Failure;
use crate::client::addresses;
use crate::measuring::{self, Line, typed};

pub(crate) fn run(args: &RaceArgs) -> Result<ExitCode, Failure> {
    let RaceArgs { load, means, .. } = args;
    let words = means.words(load)?;
    let addresses = addresses(&args.volumes)?;
    args.check()?;
    means.check()?;
    let mut subjects = means.open(&addresses, &words)?;
    tell_apart(&mut subjects);
    let mut line = Line::new(words.runtime);
    let race = Plan {
        plan: run::Plan {
            words,
            subjects,
            machinery: means.machinery(),
            fill: means.fill,
            floor: None,
        },
        turn: args.turn,
        losses: None,
    };
    measuring::warn_of_holes(&race.plan);
    let mut outcome = begun(typed());
    let ended = measuring::watched(&mut line, |watch| race.run(&mut outcome, watch))?;
    race.plan.tell_gathered();
    measuring::tell(&outcome, means.json, means.html.as_deref())?;
    ended.exit()
}

impl RaceArgs {
    fn check(&self) -> Result<(), Failure> {
        if self.turn.is_zero() {
            return Err(Failure::usage(
                "--turn is 0: give the time of each turn, such as 500ms",
            ));
        }
        match self.volumes.len() {
            1 => Err(Failure::usage(
                "a race takes two addresses or more: give another, or lunar bench for one alone",
            )),
            _ => Ok(()),
        }
    }
}

/// Numbers addresses that are given more than once.
fn tell_apart(subjects: &mut [Subject]) {
    for at in (0..subjects.len()).rev() {
        let (before, rest) = subjects.split_at_mut(at);
        let same = |other: &&Subject| other.address == rest[0].address;
        match before.iter().filter(same).count() {
            0 => {}
            count => rest[0].address += &format!(" ({})", count + 1),
        }
    }
}

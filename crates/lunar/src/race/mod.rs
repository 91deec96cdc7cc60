//! `lunar race`: from the command line to turns, and what came of them.

pub(crate) mod args;
mod network;
mod served;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use address::Address;
use args::RaceArgs;
use bench::floor::ether;
use bench::load::{LoadResources, LoadVolume};
use bench::plan::FioOptions;
use bench::race::RacePlan;
use bench::run::{self, begun};
use served::Served;

use crate::VerbError;
use crate::client::{address, addresses};
use crate::measuring::{self, MeasurementEnd, StatusLine, typed};
use crate::progress_display::{ENDED, heed_signals};

pub(crate) fn run(args: &RaceArgs) -> Result<ExitCode, VerbError> {
    let words = args.means.words(&args.load)?;
    args.check()?;
    let stop = Arc::default();
    let Some(volume) = &args.volume else {
        let race = plan(args, words, &args.volumes, None)?;
        heed_signals(Arc::clone(&stop), ENDED.to_owned());
        return race_until(&stop, args, &race)?.exit();
    };
    let parsed = address(volume)?;
    args.means.check()?;
    let private = network::enter()?;
    if private && is_elsewhere(&parsed) {
        return Err(VerbError::usage(format!(
            "--volume {volume}: the target of a race has a private network and cannot reach other \
             targets: serve the volume with lunar serve and race the addresses that it prints"
        )));
    }
    // From here on there is something to be put away.
    heed_signals(Arc::clone(&stop), ENDED.to_owned());
    let mut served = Served::start(args, volume, private, &stop)?;
    let race = plan(args, words, &served.addresses, Some(&served));
    let ended = race.and_then(|race| race_until(&stop, args, &race));
    // If it does not, that is why nothing else went well.
    served.check()?;
    ended?.exit()
}

/// Whether it has a unit that is reached by a network.
fn is_elsewhere(address: &Address) -> bool {
    address.leaves().any(|leaf| match leaf {
        Address::Iscsi(_) => true,
        Address::Fcoe(unit) => !matches!(unit.place, ether::Place::Cable(_)),
        _ => false,
    })
}

/// Opens everything before anything is measured.
fn plan(
    args: &RaceArgs,
    words: FioOptions,
    volumes: &[String],
    served: Option<&Served>,
) -> Result<RacePlan, VerbError> {
    let means = &args.means;
    let addresses = addresses(volumes)?;
    means.check()?;
    let mut subjects = means.open(&addresses, &words)?;
    tell_apart(&mut subjects);
    let machinery = means.machinery();
    let targets = served.map_or(machinery.targets, |served| vec![served.pid()]);
    Ok(RacePlan {
        plan: run::RunPlan {
            words,
            subjects,
            machinery: LoadResources {
                targets,
                ..machinery
            },
            fill: means.fill,
            floor: None,
        },
        turn: args.turn,
        losses: served.map(Served::losses),
    })
}

fn race_until(
    stop: &AtomicBool,
    args: &RaceArgs,
    race: &RacePlan,
) -> Result<MeasurementEnd, VerbError> {
    let mut line = StatusLine::new(race.plan.words.runtime);
    measuring::warn_of_holes(&race.plan);
    let mut outcome = begun(typed());
    let ended = measuring::watched_until(stop, &mut line, |watch| race.run(&mut outcome, watch));
    race.plan.tell_gathered();
    measuring::tell(&outcome, args.means.json, args.means.html.as_deref())?;
    Ok(ended)
}

impl RaceArgs {
    fn check(&self) -> Result<(), VerbError> {
        if self.turn.is_zero() {
            return Err(VerbError::usage(
                "--turn is 0: give the time of each turn, such as 500ms",
            ));
        }
        match (self.volumes.len(), self.over.len()) {
            (1, _) => Err(VerbError::usage(
                "a race needs at least two addresses: give another one, or measure a single volume \
                 with lunar bench",
            )),
            (_, 1) => Err(VerbError::usage(
                "--over needs at least two transports: give another one, as in iscsi,fcoe",
            )),
            _ => Ok(()),
        }
    }
}

/// Numbers addresses that are given more than once.
fn tell_apart(subjects: &mut [LoadVolume]) {
    for at in (0..subjects.len()).rev() {
        let (before, rest) = subjects.split_at_mut(at);
        let same = |other: &&LoadVolume| other.address == rest[0].address;
        match before.iter().filter(same).count() {
            0 => {}
            count => rest[0].address += &format!(" ({})", count + 1),
        }
    }
}

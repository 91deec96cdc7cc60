//! `lunar race`: from the command line to turns, and what came of them.

mod network;
mod served;
mod transport;

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use address::Address;
use bench::floor::ether;
use bench::load::{LoadResources, LoadVolume};
use bench::plan::FioOptions;
use bench::race::RacePlan;
use bench::run::RunPlan;
use clap::Args;
use served::Served;
use transport::RacedTransport;

use crate::VerbError;
use crate::client::{address, addresses};
use crate::measuring::{self, LoadArgs, MeansArgs, Measurement};
use crate::progress_display::stop_on_signal;
use crate::units::{number, parse_time};

/// Compare the speed of volumes under the same load, in turns
///
/// The other ADDRs are compared with the first. Turns are short, so noise affects all volumes
/// alike; each round starts with another volume, and ratios are taken within a round. A difference
/// is reported only if it is statistically significant. In each row --runtime is the total time of
/// all turns of an ADDR, and --ramp-time is spent once for each. A load that writes destroys the
/// data on the volumes, without asking. ^C stops with exit code 130 and prints what was measured so
/// far.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct RaceArgs {
    /// Addresses of the volumes, such as iscsi://192.0.2.1/iqn.2026-11.org.example:disk0/0
    #[arg(value_name = "ADDR", required_unless_present = "volume")]
    volumes: Vec<String>,

    /// Serve this volume, and compare the transports of --over to it
    ///
    /// The target and this process get a network namespace each, with a pair of virtual Ethernet
    /// interfaces between them. Lost frames are reported with the place of the loss.
    #[arg(long, value_name = "ADDR", requires = "over",
          conflicts_with_all = ["volumes", "target_pid"])]
    volume: Option<String>,

    /// Transports to --volume, of iscsi, iser and fcoe; the others are compared with the first
    ///
    /// Options of its address may follow a transport: iscsi?digests=crc32c, iser?crc=off.
    #[arg(
        long,
        value_name = "TRANSPORT,...",
        requires = "volume",
        value_delimiter = ',',
        value_parser = RacedTransport::parse
    )]
    over: Vec<RacedTransport>,

    /// MTU between both ends of --volume, from 1280 to 65535 [default: 2500]
    #[arg(long, value_name = "BYTES", requires = "volume",
          value_parser = number(1280..=65535_u32))]
    mtu: Option<u32>,

    #[command(flatten)]
    load: LoadArgs,

    /// Time to measure each turn; a quarter of it is a warm-up before
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    turn: Duration,

    #[command(flatten)]
    means: MeansArgs,
}

pub(crate) fn run(args: &RaceArgs) -> Result<ExitCode, VerbError> {
    let words = args.means.words(&args.load)?;
    args.check()?;
    let Some(volume) = &args.volume else {
        let race = plan(args, words, &args.volumes, None)?;
        return race_until(&stop_on_signal(), args, &race);
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
    let stop = stop_on_signal();
    let mut served = Served::start(args, volume, private, &stop)?;
    let race = plan(args, words, &served.addresses, Some(&served));
    let ended = race.and_then(|race| race_until(&stop, args, &race));
    // If it does not, that is why nothing else went well.
    served.check()?;
    ended
}

/// Whether it has a unit that is reached by a network.
fn is_elsewhere(address: &Address) -> bool {
    address.leaves().any(|leaf| match leaf {
        Address::Iscsi(_) | Address::Iser(_) => true,
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
        plan: RunPlan {
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

fn race_until(stop: &AtomicBool, args: &RaceArgs, race: &RacePlan) -> Result<ExitCode, VerbError> {
    measuring::warn_of_holes(&race.plan);
    let runtime = race.plan.words.runtime;
    let measured = Measurement::run(stop, runtime, |outcome, watch| race.run(outcome, watch));
    race.plan.tell_gathered();
    measured.tell(args.means.json, args.means.html.as_deref())
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

//! `lunar bench`: from the command line to the load generator, and what came of it.

use std::process::ExitCode;

use bench::plan::FioOptions;
use bench::run::RunPlan;
use clap::Args;

use crate::VerbError;
use crate::client::addresses;
use crate::floor::FloorEnd;
use crate::measuring::{self, LoadArgs, MeansArgs, Measurement};
use crate::progress_display::stop_on_signal;

/// Measure volumes under load, with options named as in fio
///
/// All ADDRs are measured at the same time, each by --numjobs threads, with one row each. A load
/// that writes destroys the data on the volumes, without asking. ^C stops with exit code 130 and
/// prints what was measured so far; the first I/O error stops with exit code 1.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Addresses of the volumes, such as iscsi://192.0.2.1/iqn.2026-11.org.example:disk0/0
    #[arg(value_name = "ADDR", required = true)]
    volumes: Vec<String>,

    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    means: MeansArgs,

    /// Limit for each job, in I/Os per second
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    rate_iops: Option<u64>,

    /// Check that the data read is the data written
    ///
    /// Blocks carry --randseed, their number, and a write counter. After a load that writes, all
    /// data it wrote is read again. A load that only reads checks the data of an earlier --verify
    /// or --fill with the same --randseed.
    #[arg(long)]
    verify: bool,

    /// Also measure bare TCP, to this machine (local) or to a lunar floor --listen
    #[arg(long, value_name = "local|HOST[:PORT]")]
    floor: Option<String>,
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, VerbError> {
    let words = args.words()?;
    let addresses = addresses(&args.volumes)?;
    args.means.check()?;
    let subjects = args.means.open(&addresses, &words)?;
    let size = subjects.iter().map(|subject| subject.span.bytes()).max();
    let floor = args.floor.as_deref();
    let needed = (size.unwrap_or(0), words.jobs);
    let floor = floor.map(|place| FloorEnd::reach(place, needed, false));
    let floor = floor.transpose()?;
    let plan = RunPlan {
        words,
        subjects,
        machinery: args.means.machinery(),
        fill: args.means.fill,
        floor: floor.as_ref().map(|floor| floor.place),
    };
    measuring::warn_of_holes(&plan);
    let (stop, runtime) = (stop_on_signal(), plan.words.runtime);
    let measured = Measurement::run(&stop, runtime, |outcome, watch| plan.run(outcome, watch));
    plan.tell_gathered();
    measured.tell(args.means.json, args.means.html.as_deref())
}

impl BenchArgs {
    fn words(&self) -> Result<FioOptions, VerbError> {
        if self.floor.is_some() && self.volumes.len() > 1 {
            return Err(VerbError::usage(
                "--floor compares with one volume only: give one ADDR, or omit --floor",
            ));
        }
        Ok(FioOptions {
            rate_iops: self.rate_iops,
            verify: self.verify,
            ..self.means.words(&self.load)?
        })
    }
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = text.parse().ok();
    rate.filter(|rate| *rate > 0)
        .ok_or_else(|| "give a number of I/Os per second, such as 1000".to_owned())
}

//! `lunar bench`: from the command line to the load generator, and what came of it.

pub(crate) mod args;

use std::process::ExitCode;

use args::BenchArgs;
use bench::plan::FioOptions;
use bench::run::{RunPlan, begun};

use crate::VerbError;
use crate::client::addresses;
use crate::floor::FloorEnd;
use crate::measuring::{self, StatusLine, typed};

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
    let mut line = StatusLine::new(words.runtime);
    let plan = RunPlan {
        words,
        subjects,
        machinery: args.means.machinery(),
        fill: args.means.fill,
        floor: floor.as_ref().map(FloorEnd::place),
    };
    measuring::warn_of_holes(&plan);
    let mut outcome = begun(typed());
    let ended = measuring::watched(&mut line, |watch| plan.run(&mut outcome, watch))?;
    plan.tell_gathered();
    measuring::tell(&outcome, args.means.json, args.means.html.as_deref())?;
    ended.exit()
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

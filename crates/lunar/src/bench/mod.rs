//! `lunar bench`: from the command line to the load generator, and what came of it.

pub(crate) mod args;

use std::process::ExitCode;

use args::BenchArgs;
use bench::load::{Machinery, Subject};
use bench::plan::Words;
use bench::processes;
use bench::run::{Plan, begun};

use crate::client::{address, open_options};
use crate::floor::End;
use crate::measuring::{self, Line, typed};
use crate::{Failure, log};

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let words = args.words()?;
    let subjects = args.open(&words)?;
    let size = subjects.iter().map(|subject| subject.span.octets()).max();
    let floor = args.floor.as_deref();
    let floor = floor.map(|place| End::reach(place, size.unwrap_or(0), false));
    let floor = floor.transpose()?;
    let mut line = Line::new(words.runtime);
    let plan = Plan {
        words,
        subjects,
        machinery: Machinery::new(args.ring.into(), args.target_pid.clone()),
        fill: args.fill,
        floor: floor.as_ref().map(End::place),
    };
    for hole in plan.holes() {
        log::say(&format!(
            "{hole}: nothing was written there yet, so that reads cost less than they will; \
             --fill writes it before"
        ));
    }
    let mut outcome = begun(typed());
    let ended = measuring::watched(&mut line, |watch| plan.run(&mut outcome, watch))?;
    plan.tell_gathered();
    measuring::tell(&outcome, args.json, args.html.as_deref())?;
    ended.exit()
}

impl BenchArgs {
    fn words(&self) -> Result<Words, Failure> {
        if self.floor.is_some() && self.volumes.len() > 1 {
            return Err(Failure::usage(
                "--floor is compared with one volume: give one ADDR, or leave it out",
            ));
        }
        Ok(Words {
            offset: self.offset,
            rate_iops: self.rate_iops,
            verify: self.verify,
            ..self.load.words()?
        })
    }

    /// Opens everything that is needed before anything is measured.
    fn open(&self, words: &Words) -> Result<Vec<Subject>, Failure> {
        let addresses: Result<Vec<_>, _> = self.volumes.iter().map(|text| address(text)).collect();
        let addresses = addresses?;
        for pid in &self.target_pid {
            if processes::cpu_time_of(&[*pid]).is_none() {
                return Err(Failure::failed(format!(
                    "--target-pid {pid}: there is no such process here"
                )));
            }
        }
        if let Some(page) = &self.html {
            measuring::can_write(page)?;
        }
        log::start();
        let options = open_options()?;
        let open = |address| {
            let subject = Subject::open(address, &options, words);
            subject.map_err(|cause| Failure::failed(cause.to_string()))
        };
        addresses.iter().map(open).collect()
    }
}

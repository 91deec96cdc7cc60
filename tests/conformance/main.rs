//! All tests of libiscsi's `iscsi-test-cu`, suite by suite, over two paths, against a normal, a
//! read-only and a removable LUN, on each ring; and five of them, which none of these can pass,
//! against null volumes.
//!
//! No test may fail anywhere, and each has to pass on at least one LUN, but for those that
//! `unable.txt` lists with a reason. On the read-only LUN only the suite that is about it may
//! write (`-d`): every other test that writes would find what it must find there, a refusal, and
//! call it a failure.
//!
//! `--ring RING` (may be repeated) picks the rings; `--at ADDRESS` tries another target, whatever
//! it is, as a normal LUN.
#![forbid(unsafe_code)]

mod report;
mod suites;

use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use report::{Outcomes, Report};
use suites::{Lun, Suite};
use tests::cunit::Test;
use tests::server::Server;
use tests::tool::{self, Ran};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(cause) => {
            eprintln!("conformance: {cause:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run() -> Result<bool> {
    tool::present(&["iscsi-test-cu"])?;
    let suites = suites::list()?;
    match arguments()? {
        Arguments::At(address) => at(&suites, &address),
        Arguments::Rings(rings) => {
            let mut good = true;
            for ring in rings {
                good &= on_ring(&suites, &ring)?;
            }
            Ok(good)
        }
    }
}

enum Arguments {
    At(String),
    Rings(Vec<String>),
}

fn arguments() -> Result<Arguments> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let mut rings = Vec::new();
    for pair in args.chunks(2) {
        match pair {
            [arg, value] if arg == "--at" => return Ok(Arguments::At(value.clone())),
            [arg, value] if arg == "--ring" => rings.push(value.clone()),
            _ => bail!("{pair:?} is not known: --ring RING, --at ADDRESS"),
        }
    }
    if rings.is_empty() {
        rings = vec!["uring".to_owned(), "epoll".to_owned()];
    }
    Ok(Arguments::Rings(rings))
}

/// Tries whatever target is there.
fn at(suites: &[Suite], address: &str) -> Result<bool> {
    let outcomes = try_all(suites, Lun::Normal, address)?;
    let report = Report::new(suites, &[(Lun::Normal, outcomes)], &[]);
    println!("iscsi-test-cu at {address}\n{report}");
    Ok(report.good())
}

/// Tries our own on one ring: as many servers at once as there are LUNs.
fn on_ring(suites: &[Suite], ring: &str) -> Result<bool> {
    let unable = suites::unable()?;
    let runs: Result<Vec<_>> = thread::scope(|scope| {
        let runs = Lun::ALL.map(|lun| (lun, scope.spawn(move || serve_and_try(suites, lun, ring))));
        let ended = runs.map(|(lun, run)| {
            let outcomes = run.join().map_err(|_| anyhow!("the run on {lun} died"))?;
            Ok((lun, outcomes.with_context(|| format!("on the {lun} LUN"))?))
        });
        ended.into_iter().collect()
    });
    let report = Report::new(suites, &runs?, &unable);
    println!("iscsi-test-cu on ring {ring}\n{report}");
    Ok(report.good())
}

fn serve_and_try(suites: &[Suite], lun: Lun, ring: &str) -> Result<Outcomes> {
    let name = format!("conformance-{ring}-{lun}");
    let options = [lun.options(), &["--ring", ring]].concat();
    let mut server = Server::start(&name, &[lun.volume()], &options)?;
    let outcomes = try_all(suites, lun, server.address(0))?;
    if !server.alive()? {
        bail!("the server died: {}", server.log());
    }
    Ok(outcomes)
}

/// A target that lets so many suites hang is not worth the wait for the rest.
const HANGS: usize = 4;

fn try_all(suites: &[Suite], lun: Lun, address: &str) -> Result<Outcomes> {
    let mut outcomes = Outcomes::new();
    let mut hangs = 0;
    for suite in suites {
        if hangs == HANGS {
            outcomes.insert(suite.name.clone(), suites::given_up(suite));
            continue;
        }
        let mut tries = Tries {
            suite,
            lun,
            address,
            hangs: &mut hangs,
        };
        let tests = if lun.meets_all() {
            suite.outcomes(&tries.run(&suite.name)?)
        } else {
            tries.some()?
        };
        outcomes.insert(suite.name.clone(), tests);
    }
    Ok(outcomes)
}

/// A suite that meets a LUN.
struct Tries<'a> {
    suite: &'a Suite,
    lun: Lun,
    address: &'a str,
    /// How many runs did not come to an end.
    hangs: &'a mut usize,
}

impl Tries<'_> {
    /// Runs a suite, or one test by `Suite.Test`.
    fn run(&mut self, what: &str) -> Result<Ran> {
        let mut command = Command::new("iscsi-test-cu");
        if self.lun.may_write(self.suite) {
            command.args(["-d", "-S"]);
        }
        command.args(["-t", &format!("ALL.{what}")]);
        // The same address twice: two I_T nexuses to one logical unit.
        command.args([self.address, self.address]);
        let ran = tool::run(&mut command, self.lun.limit())?;
        if ran.status.is_none() {
            eprintln!("{what} hangs on the {} LUN", self.lun);
            *self.hangs += 1;
        }
        Ok(ran)
    }

    /// Runs only the tests that are for the LUN.
    fn some(&mut self) -> Result<Vec<Test>> {
        let suite = self.suite;
        let tests = suite.tests.iter().map(|name| {
            if !self.lun.meets(suite, name) {
                return Ok(suites::not_tried(name));
            }
            let ran = self.run(&format!("{}.{name}", suite.name))?;
            Ok(Suite::outcome(name, &ran))
        });
        tests.collect()
    }
}

//! All tests of libiscsi's `iscsi-test-cu`, suite by suite, over two paths, against LUNs of
//! different kinds.
//!
//! No test may fail anywhere, and each has to pass on at least one LUN, but for those that
//! `tests/conformance/unable.txt` lists with a reason. On the read-only LUN only the suite that is
//! about it may write (`-d`): every other test that writes would find what it must find there, a
//! refusal, and call it a failure.

mod report;
mod suites;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use self::report::Outcomes;
pub use self::report::Report;
use self::suites::{Lun, Suite, Unable, Version};
use crate::cunit::Test;
use crate::server::Server;
use crate::tool::{self, Ran};

/// An `iscsi-test-cu`, and what its version has to come to.
#[derive(Debug)]
pub struct Conformance {
    root: Option<PathBuf>,
    version: Version,
    suites: Vec<Suite>,
    unable: Vec<Unable>,
}

/// A target that lets so many suites hang is not worth the wait for the rest.
const HANGS: usize = 4;

impl Conformance {
    /// The `iscsi-test-cu` of this machine, or that in another root directory.
    ///
    /// # Errors
    /// When there is none, or when its version is not known.
    pub fn new(root: Option<&Path>) -> Result<Self> {
        let list = tool::must(test_cu(root).arg("-l"))?;
        let suites = suites::parse(&list);
        let version = Version::of(&suites)?;
        Ok(Self {
            root: root.map(Path::to_owned),
            unable: suites::unable(version)?,
            version,
            suites,
        })
    }

    /// Tries whatever target is there.
    ///
    /// # Errors
    /// When the tool cannot be run.
    pub fn at(&self, address: &str) -> Result<Report> {
        let outcomes = self.try_all(Lun::Normal, address)?;
        Ok(Report::new(&self.suites, &[(Lun::Normal, outcomes)], &[]))
    }

    /// Tries our own target on one ring: as many servers at once as there are LUNs.
    ///
    /// # Errors
    /// When a server or the tool cannot be run.
    pub fn on_ring(&self, ring: &str) -> Result<Report> {
        let luns = Lun::ALL.into_iter().filter(|lun| self.is_for(*lun));
        let runs: Result<Vec<_>> = thread::scope(|scope| {
            let run = |lun| (lun, scope.spawn(move || self.serve_and_try(lun, ring)));
            let runs: Vec<_> = luns.map(run).collect();
            let ended = runs.into_iter().map(|(lun, run)| {
                let outcomes = run.join().map_err(|_| anyhow!("the run on {lun} died"))?;
                Ok((lun, outcomes.with_context(|| format!("on the {lun} LUN"))?))
            });
            ended.collect()
        });
        Ok(Report::new(&self.suites, &runs?, &self.unable))
    }

    /// Whether any test meets the LUN.
    fn is_for(&self, lun: Lun) -> bool {
        let meets = |suite: &Suite| suite.tests.iter().any(|test| lun.meets(suite, test));
        self.suites.iter().any(meets)
    }

    fn serve_and_try(&self, lun: Lun, ring: &str) -> Result<Outcomes> {
        let version = self.version.name();
        let dir = crate::scratch(&format!("conformance-{version}-{ring}-{lun}"))?;
        let proof = lun.proof(&dir)?;
        let proof: Vec<_> = proof.iter().map(String::as_str).collect();
        let options = [lun.options(), &proof, &["--ring", ring]].concat();
        let mut server = Server::start_in(&dir, &[lun.volume()], &options)?;
        let outcomes = self.try_all(lun, server.address(0))?;
        if !server.alive()? {
            bail!("the server died: {}", server.log());
        }
        Ok(outcomes)
    }

    fn try_all(&self, lun: Lun, address: &str) -> Result<Outcomes> {
        let mut outcomes = Outcomes::new();
        let mut hangs = 0;
        for suite in &self.suites {
            if hangs == HANGS {
                outcomes.insert(suite.name.clone(), suites::given_up(suite));
                continue;
            }
            let mut tries = Tries {
                root: self.root.as_deref(),
                suite,
                lun,
                address,
                hangs: &mut hangs,
            };
            let tests = if lun.meets_all() && !suite.goes_apart(self.version) {
                suite.outcomes(&tries.run(&suite.name)?)
            } else {
                tries.some()?
            };
            outcomes.insert(suite.name.clone(), tests);
        }
        Ok(outcomes)
    }
}

fn test_cu(root: Option<&Path>) -> Command {
    tool::inside(root, "iscsi-test-cu")
}

/// A suite that meets a LUN.
struct Tries<'a> {
    root: Option<&'a Path>,
    suite: &'a Suite,
    lun: Lun,
    address: &'a str,
    /// How many runs did not come to an end.
    hangs: &'a mut usize,
}

impl Tries<'_> {
    /// Runs a suite, or one test by `Suite.Test`.
    fn run(&mut self, what: &str) -> Result<Ran> {
        let mut command = test_cu(self.root);
        if self.lun.may_write(self.suite) {
            command.args(["-d", "-S"]);
        }
        command.envs(self.lun.environment());
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

    /// Runs one by one the tests that are for the LUN.
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

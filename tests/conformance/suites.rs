//! What there is to be run: suites, LUNs, and the tests that cannot pass.

use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tests::cunit::{self, Test, Verdict};
use tests::tool::{self, Ran};

/// How long a suite may take. The slowest takes 6 s, most of it the tool's own sleeps.
const LIMIT: Duration = Duration::from_secs(30);

/// The same on the vast LUN, where the tool sleeps for a minute when it has seen that SANITIZE goes
/// on, and for another one on a machine that is not done by then.
const VAST_LIMIT: Duration = Duration::from_secs(140);

/// What the tool itself says it has; another version has other tests, and is looked at by a
/// person.
const TESTS: usize = 230;

/// A suite of the tool.
#[derive(Debug)]
pub(crate) struct Suite {
    /// Its name.
    pub(crate) name: String,
    /// Its tests.
    pub(crate) tests: Vec<String>,
}

/// The suites of the family ALL.
pub(crate) fn list() -> Result<Vec<Suite>> {
    let output = tool::must(Command::new("iscsi-test-cu").arg("-l"))?;
    let mut suites: Vec<Suite> = Vec::new();
    for line in output.lines() {
        let parts: Vec<_> = line.split('.').collect();
        match (parts.as_slice(), suites.last_mut()) {
            (["ALL", suite], _) => suites.push(Suite {
                name: (*suite).to_owned(),
                tests: Vec::new(),
            }),
            (["ALL", _, test], Some(suite)) => suite.tests.push((*test).to_owned()),
            _ => {}
        }
    }
    let count: usize = suites.iter().map(|suite| suite.tests.len()).sum();
    if count != TESTS {
        bail!("this iscsi-test-cu has {count} tests, not the {TESTS} of version 1.19");
    }
    Ok(suites)
}

impl Suite {
    /// What became of each of its tests; one that the output does not name has failed.
    pub(crate) fn outcomes(&self, ran: &Ran) -> Vec<Test> {
        let found = cunit::parse(&ran.output);
        let outcome = |name: &String| {
            let test = found.iter().find(|test| test.name == *name).cloned();
            test.unwrap_or_else(|| verdict(name, Verdict::Failed, not_run(ran)))
        };
        self.tests.iter().map(outcome).collect()
    }

    /// What became of one of them, where only that was run.
    pub(crate) fn outcome(name: &str, ran: &Ran) -> Test {
        let found = cunit::parse(&ran.output).into_iter();
        let test = found.into_iter().find(|test| test.name == name);
        test.unwrap_or_else(|| verdict(name, Verdict::Failed, not_run(ran)))
    }
}

/// The outcomes of a suite that is not tried any more.
pub(crate) fn given_up(suite: &Suite) -> Vec<Test> {
    let why = "not tried: too many suites before it did not come to an end";
    let given_up = |name: &String| verdict(name, Verdict::Failed, vec![why.to_owned()]);
    suite.tests.iter().map(given_up).collect()
}

/// A test that is not for a LUN.
pub(crate) fn not_tried(name: &str) -> Test {
    verdict(name, Verdict::Skipped, vec!["not tried here".to_owned()])
}

fn verdict(name: &str, verdict: Verdict, said: Vec<String>) -> Test {
    Test {
        name: name.to_owned(),
        verdict,
        said,
    }
}

fn not_run(ran: &Ran) -> Vec<String> {
    let why = match ran.status {
        Some(status) => format!("did not run: the tool ended with {status}"),
        None => "did not run: it took too long".to_owned(),
    };
    let last = ran.output.lines().rev().take(3).map(str::to_owned);
    [why].into_iter().chain(last).collect()
}

/// The LUNs that each suite meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lun {
    /// As `lunar serve` makes it.
    Normal,
    /// `--readonly`.
    ReadOnly,
    /// `--removable`, of 4,096-byte blocks.
    Removable,
    /// A null volume, where WRITE SAME of 0 blocks goes to the end.
    Null,
    /// A null volume that takes at least 5 s to be overwritten.
    Vast,
}

impl Lun {
    pub(crate) const ALL: [Self; 5] = [
        Self::Normal,
        Self::ReadOnly,
        Self::Removable,
        Self::Null,
        Self::Vast,
    ];

    /// How it is made.
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Normal | Self::Null | Self::Vast => &[],
            Self::ReadOnly => &["--readonly"],
            Self::Removable => &["--removable", "--block-size", "4096"],
        }
    }

    /// What it has: small enough to be sanitized whole many times, and where blocks are large fewer
    /// of them than the tool moves by one command without asking whether it may.
    pub(crate) fn volume(self) -> &'static str {
        match self {
            Self::Normal | Self::ReadOnly => "ram:256M",
            Self::Removable => "ram:255M",
            Self::Null => "null:256M",
            Self::Vast => "null:20T",
        }
    }

    /// Whether every test meets it. Where nothing is kept, only those do that ask for more than the
    /// other LUNs can do.
    pub(crate) fn meets_all(self) -> bool {
        !matches!(self, Self::Null | Self::Vast)
    }

    /// Whether this test does.
    pub(crate) fn meets(self, suite: &Suite, test: &str) -> bool {
        match (self, suite.name.as_str(), test) {
            (Self::Null, "WriteSame10" | "WriteSame16", "ZeroBlocks" | "UnmapUntilEnd")
            | (Self::Vast, "Sanitize", "Reset") => true,
            _ => self.meets_all(),
        }
    }

    /// How long a suite may take on it.
    pub(crate) fn limit(self) -> Duration {
        match self {
            Self::Vast => VAST_LIMIT,
            _ => LIMIT,
        }
    }

    /// Whether the tool is let write to it.
    pub(crate) fn may_write(self, suite: &Suite) -> bool {
        self != Self::ReadOnly || suite.name == "ReadOnly"
    }
}

impl fmt::Display for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Normal => "normal",
            Self::ReadOnly => "readonly",
            Self::Removable => "removable",
            Self::Null => "null",
            Self::Vast => "vast",
        })
    }
}

/// A test that cannot pass.
#[derive(Debug)]
pub(crate) struct Unable {
    /// `Suite.Test`.
    pub(crate) name: String,
    /// Where; `None` on every LUN.
    lun: Option<Lun>,
}

impl Unable {
    /// Whether it is this test, on this LUN.
    pub(crate) fn is(&self, name: &str, lun: Lun) -> bool {
        self.name == name && self.lun.is_none_or(|only| only == lun)
    }
}

/// The tests that cannot pass, from `unable.txt`: `Suite.Test  reason` or `Suite.Test on LUN
/// reason` a line.
pub(crate) fn unable() -> Result<Vec<Unable>> {
    let lines = include_str!("unable.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| unable_line(line).with_context(|| format!("unable.txt: {line}")))
        .collect()
}

fn unable_line(line: &str) -> Result<Unable> {
    let (test, reason) = line.split_once("  ").context("no reason")?;
    if reason.trim().is_empty() {
        bail!("no reason");
    }
    let Some((name, lun)) = test.split_once(" on ") else {
        let name = test.to_owned();
        return Ok(Unable { name, lun: None });
    };
    let known = Lun::ALL.into_iter().find(|known| known.to_string() == lun);
    Ok(Unable {
        name: name.to_owned(),
        lun: Some(known.with_context(|| format!("no LUN is called {lun}"))?),
    })
}

//! What there is to be run: suites, LUNs, and the tests that cannot pass.

use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cunit::{self, Test, Verdict};
use crate::tool::Ran;

/// How long a suite may take. The slowest takes 6 s, most of it the tool's own sleeps.
const LIMIT: Duration = Duration::from_secs(30);

/// The same on the vast LUN, where the tool sleeps for a minute when it has seen that SANITIZE goes
/// on, and for another one on a machine that is not done by then.
const VAST_LIMIT: Duration = Duration::from_secs(140);

/// A version of the tool. One with other tests is looked at by a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// That of Debian 12, which `./check` runs.
    V1_19,
    /// That of Debian 13.
    V1_20,
}

impl Version {
    const ALL: [Self; 2] = [Self::V1_19, Self::V1_20];

    /// The version that has as many tests.
    pub(super) fn of(suites: &[Suite]) -> Result<Self> {
        let count: usize = suites.iter().map(|suite| suite.tests.len()).sum();
        let version = Self::ALL.into_iter().find(|known| known.tests() == count);
        version.with_context(|| {
            format!("this iscsi-test-cu has {count} tests: it is neither version 1.19 nor 1.20")
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1_19 => "1.19",
            Self::V1_20 => "1.20",
        }
    }

    fn tests(self) -> usize {
        match self {
            Self::V1_19 => 230,
            Self::V1_20 => 238,
        }
    }
}

/// A suite of the tool.
#[derive(Debug)]
pub(super) struct Suite {
    /// Its name.
    pub(super) name: String,
    /// Its tests.
    pub(super) tests: Vec<String>,
}

/// The suites of the family ALL, in what `-l` prints.
pub(super) fn parse(list: &str) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for line in list.lines() {
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
    suites
}

impl Suite {
    /// Whether each of its tests has a run of its own. Those of 1.20 that abort commands end the
    /// session, and the tool skips what follows (test_async_abort_simple.c); a text request that it
    /// waits for in vain takes the rest of its suite with it. Some of 1.19 need the one before.
    pub(super) fn goes_apart(&self, version: Version) -> bool {
        let apart = ["iSCSITMF", "iSCSISendTargets"];
        version == Version::V1_20 && apart.contains(&self.name.as_str())
    }

    /// What became of each of its tests; one that the output does not name has failed.
    pub(super) fn outcomes(&self, ran: &Ran) -> Vec<Test> {
        let found = cunit::parse(&ran.output);
        let outcome = |name: &String| {
            let test = found.iter().find(|test| test.name == *name).cloned();
            test.unwrap_or_else(|| verdict(name, Verdict::Failed, not_run(ran)))
        };
        self.tests.iter().map(outcome).collect()
    }

    /// What became of one of them, where only that was run.
    pub(super) fn outcome(name: &str, ran: &Ran) -> Test {
        let found = cunit::parse(&ran.output).into_iter();
        let test = found.into_iter().find(|test| test.name == name);
        test.unwrap_or_else(|| verdict(name, Verdict::Failed, not_run(ran)))
    }
}

/// The outcomes of a suite that is not tried any more.
pub(super) fn given_up(suite: &Suite) -> Vec<Test> {
    let why = "not tried: too many suites before it did not come to an end";
    let given_up = |name: &String| verdict(name, Verdict::Failed, vec![why.to_owned()]);
    suite.tests.iter().map(given_up).collect()
}

/// A test that is not for a LUN.
pub(super) fn not_tried(name: &str) -> Test {
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
pub(super) enum Lun {
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
    /// For those who prove themselves by CHAP.
    Chap,
}

/// Whom the LUN with CHAP lets in.
const USER: &str = "tester";
const SECRET: &str = "fourteen-bytes";

impl Lun {
    pub(super) const ALL: [Self; 6] = [
        Self::Normal,
        Self::ReadOnly,
        Self::Removable,
        Self::Null,
        Self::Vast,
        Self::Chap,
    ];

    /// How it is made.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Normal | Self::Null | Self::Vast | Self::Chap => &[],
            Self::ReadOnly => &["--readonly"],
            Self::Removable => &["--removable", "--block-size", "4096"],
        }
    }

    /// The options by which its server, whose folder this is, wants proof.
    pub(super) fn proof(self, dir: &Path) -> Result<Vec<String>> {
        if self != Self::Chap {
            return Ok(Vec::new());
        }
        let path = dir.join("secret");
        fs::write(&path, SECRET)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let path = path.to_string_lossy().into_owned();
        let options = [
            "--chap".to_owned(),
            USER.to_owned(),
            "--secret-file".to_owned(),
        ];
        Ok([&options[..], &[path]].concat())
    }

    /// By what the tool proves itself there, as libiscsi takes it from its environment.
    pub(super) fn environment(self) -> Vec<(&'static str, &'static str)> {
        if self != Self::Chap {
            return Vec::new();
        }
        vec![
            ("LIBISCSI_CHAP_USERNAME", USER),
            ("LIBISCSI_CHAP_PASSWORD", SECRET),
        ]
    }

    /// What it has: small enough to be sanitized whole many times, and where blocks are large fewer
    /// of them than the tool moves by one command without asking whether it may.
    pub(super) fn volume(self) -> &'static str {
        match self {
            Self::Normal | Self::ReadOnly => "ram:256M",
            Self::Removable => "ram:255M",
            Self::Null => "null:256M",
            Self::Vast => "null:20T",
            Self::Chap => "ram:16M",
        }
    }

    /// Whether every test meets it. Where nothing is kept, or proof is wanted, only those do that
    /// ask for more than the other LUNs can do.
    pub(super) fn meets_all(self) -> bool {
        !matches!(self, Self::Null | Self::Vast | Self::Chap)
    }

    /// Whether this test does.
    pub(super) fn meets(self, suite: &Suite, test: &str) -> bool {
        match (self, suite.name.as_str(), test) {
            (Self::Null, "WriteSame10" | "WriteSame16", "ZeroBlocks" | "UnmapUntilEnd")
            | (Self::Vast, "Sanitize", "Reset")
            | (Self::Chap, "iSCSICHAP", _) => true,
            _ => self.meets_all(),
        }
    }

    /// How long a suite may take on it.
    pub(super) fn limit(self) -> Duration {
        match self {
            Self::Vast => VAST_LIMIT,
            _ => LIMIT,
        }
    }

    /// Whether the tool is let write to it.
    pub(super) fn may_write(self, suite: &Suite) -> bool {
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
            Self::Chap => "chap",
        })
    }
}

/// A test that cannot pass.
#[derive(Debug)]
pub(super) struct Unable {
    /// `Suite.Test`.
    pub(super) name: String,
    /// Where; `None` on every LUN.
    lun: Option<Lun>,
}

impl Unable {
    /// Whether it is this test, on this LUN.
    pub(super) fn is(&self, name: &str, lun: Lun) -> bool {
        self.name == name && self.lun.is_none_or(|only| only == lun)
    }
}

/// The tests of a version that cannot pass, from `unable.txt`: `Suite.Test  reason` or `Suite.Test
/// on LUN  reason` a line, with `1.20: ` before it if that version alone is meant.
pub(super) fn unable(version: Version) -> Result<Vec<Unable>> {
    let lines = include_str!("../../conformance/unable.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.filter_map(|line| match line.split_once(": ") {
        Some((only, rest)) if Version::ALL.iter().any(|known| known.name() == only) => {
            (only == version.name()).then_some(rest)
        }
        _ => Some(line),
    });
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

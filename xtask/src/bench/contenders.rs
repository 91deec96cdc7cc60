//! The contenders, and how each is asked to carry out a load.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench::outcome::{ResultRow, RunResult};
use serde::{Serialize, Serializer};

use super::VOLUME;
use super::figures::Figures;
use super::fio;
use super::media::{Backend, Medium};
use super::rows::Row;
use super::target::{GENERATOR_CPU, Target};

/// What is measured in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    /// `lunar serve`.
    Lunar,
    /// The same, in sessions with header and data digests.
    Digests,
    /// `lunar serve --poll never`.
    Asleep,
    /// `lunar serve --poll always`.
    Spinning,
    /// The same as asleep with two threads, both on the CPU of targets.
    TwoThreads,
    /// tgtd.
    Tgtd,
    /// Bare TCP, whichever is cheaper: an end that sleeps or one that spins.
    Floor,
    /// A target whose address was given: the first is 1.
    Beside(usize),
    /// `lunar serve` with a volume on a backend.
    On(Backend),
    /// The same with `--ring epoll`.
    Epoll(Backend),
    /// fio on this backend, without a network.
    Fio(Backend),
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Beside(number) => return f.pad(&format!("beside {number}")),
            Self::On(backend) => return backend.fmt(f),
            Self::Epoll(backend) => return f.pad(&format!("epoll {backend}")),
            Self::Fio(backend) => return f.pad(&format!("fio {backend}")),
            Self::Lunar => "lunar",
            Self::Digests => "digests",
            Self::Asleep => "poll never",
            Self::Spinning => "poll always",
            Self::TwoThreads => "two threads",
            Self::Tgtd => "tgtd",
            Self::Floor => "floor",
        })
    }
}

impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// All that are measured, each started for its first load.
pub(super) struct Contenders {
    binary: PathBuf,
    /// Addresses that were given.
    beside: Vec<String>,
    started: BTreeMap<Contender, Target>,
}

impl Contenders {
    pub(super) fn new(binary: &Path, beside: &[String]) -> Self {
        Self {
            binary: binary.to_owned(),
            beside: beside.to_vec(),
            started: BTreeMap::new(),
        }
    }

    /// Ends all others: each takes the memory of a volume.
    pub(super) fn keep(&mut self, contenders: &BTreeSet<Contender>) {
        self.started
            .retain(|contender, _| contenders.contains(contender));
    }

    /// One round of a row: what each of `contenders` gave, in their order.
    pub(super) fn round(
        &mut self,
        row: &Row,
        contenders: &[Contender],
        time: Duration,
    ) -> Result<Vec<Figures>> {
        let addresses = contenders.iter().map(|contender| self.address(*contender));
        let addresses: Vec<_> = addresses.collect::<Result<_>>()?;
        let both = || contenders.iter().zip(&addresses);
        let served = both().filter(|(contender, _)| contender.is_served());
        let served: Vec<_> = served.map(|(_, address)| address.clone()).collect();
        let mut raced = self.race(row, &served, time)?.into_iter();
        let figures = |(contender, address): (&Contender, &String)| match contender {
            Contender::Floor => self.floor(row, address, time),
            Contender::Fio(_) => fio::run(row, address, time).context(*contender),
            _ => raced.next().context("lunar race left an address out"),
        };
        both().map(figures).collect()
    }

    /// Puts the load on several targets in turns. A single target gets each session as an address
    /// of its own, which tells how evenly they are served.
    fn race(&self, row: &Row, addresses: &[String], time: Duration) -> Result<Vec<Figures>> {
        let words = row.words(time);
        match addresses {
            [] => Ok(Vec::new()),
            [address] => {
                let sessions = vec![address.clone(); row.sessions as usize];
                let rows = self.run("bench", &[sessions, words].concat())?;
                let (all, each) = rows.split_last().context("no row")?;
                Ok(vec![Figures::of(all).with_sessions(each)])
            }
            _ => {
                // Two turns for each, so that each is once the first.
                let options = format!("--turn {}ms", (time / 2).as_millis());
                let words = [addresses.to_vec(), words, row.jobs(), split(&options)];
                let rows = self.run("race", &words.concat())?;
                Ok(rows.iter().map(Figures::of).collect())
            }
        }
    }

    /// Bare TCP: of an end that sleeps and one that spins each is cheaper at some loads.
    fn floor(&self, row: &Row, address: &str, time: Duration) -> Result<Figures> {
        let measure = |more| -> Result<Figures> {
            let words = [split(address), row.words(time), row.jobs(), more].concat();
            let rows = self.run("floor", &words)?;
            Ok(Figures::of(rows.first().context("no row")?))
        };
        let (sleeping, spinning) = (measure(Vec::new())?, measure(split("--spin"))?);
        Ok(if sleeping.target_us < spinning.target_us {
            sleeping
        } else {
            spinning
        })
    }

    fn run(&self, verb: &str, words: &[String]) -> Result<Vec<ResultRow>> {
        generate(&self.binary, verb, words)
    }

    /// How it is reached. It is started, and its volume filled, when it is first asked for.
    fn address(&mut self, contender: Contender) -> Result<String> {
        if contender == Contender::Digests {
            return Ok(self.address(Contender::Lunar)? + "?digests=crc32c");
        }
        if !self.started.contains_key(&contender) {
            let target = self.start(contender).context(contender)?;
            if contender != Contender::Floor {
                let options = "--fill --runtime 10ms --ramp-time 0s --size";
                let words = format!("{} {options} {VOLUME}", target.address);
                self.run("bench", &split(&words)).context(contender)?;
                target.rest()?;
            }
            self.started.insert(contender, target);
        }
        let target = self.started.get(&contender).context("just started")?;
        Ok(target.address.clone())
    }

    fn start(&self, contender: Contender) -> Result<Target> {
        let options = match contender {
            Contender::Tgtd => return Target::tgtd(),
            Contender::Floor => return Target::floor(&self.binary),
            Contender::Beside(number) => {
                let address = self.beside.get(number - 1).context("not given")?;
                return Ok(Target::new(address.clone(), ()));
            }
            Contender::Fio(backend) => {
                let medium = Medium::new(backend, contender)?;
                return Ok(Target::new(medium.address(), medium));
            }
            Contender::Asleep => "--poll never",
            Contender::Spinning => "--poll always",
            Contender::TwoThreads => "--poll never --threads 2",
            // Where O_DIRECT needs it.
            Contender::On(backend) if backend.is_direct() => "--block-size 4096",
            Contender::Epoll(_) => "--ring epoll",
            _ => "",
        };
        let medium = match contender {
            Contender::On(backend) | Contender::Epoll(backend) => {
                Some(Medium::new(backend, contender)?)
            }
            _ => None,
        };
        let name = contender.to_string();
        Target::lunar(&self.binary, &name, medium, options)
    }
}

impl Contender {
    /// Whether it is reached by iSCSI.
    fn is_served(self) -> bool {
        !matches!(self, Self::Floor | Self::Fio(_))
    }
}

/// Runs a verb of `lunar` that measures to its end, on the CPU of the load generator.
pub(crate) fn generate(binary: &Path, verb: &str, words: &[String]) -> Result<Vec<ResultRow>> {
    generate_on(GENERATOR_CPU, binary, verb, words)
}

/// The same on another CPU.
pub(crate) fn generate_on(
    cpu: &str,
    binary: &Path,
    verb: &str,
    words: &[String],
) -> Result<Vec<ResultRow>> {
    let output = Command::new("taskset")
        .args(["-c", cpu])
        .arg(binary)
        .args([verb, "--json"])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .context("cannot start taskset")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "lunar {verb}: {}", said.trim());
    let printed: serde_json::Result<RunResult> = serde_json::from_slice(&output.stdout);
    Ok(printed
        .with_context(|| format!("lunar {verb} --json"))?
        .rows)
}

/// The words of a command.
pub(crate) fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

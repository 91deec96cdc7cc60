//! The contenders, and how each is asked to do a load.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use address::UnitAddress;
use anyhow::{Context, Result};

use super::VOLUME;
use super::floor::{Floor, Manner};
use super::load::{self, Job};
use super::media::{Backend, Medium};
use super::meter::Measured;
use super::target::Target;

/// A contender, and how it does a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// `lunar serve`.
    Lunar,
    /// The same, in sessions with header and data digests.
    Digests,
    /// `lunar serve --poll never`.
    Asleep,
    /// The same with two threads, both on the CPU of targets.
    TwoThreads,
    /// tgtd.
    Tgtd,
    /// Bare TCP, as it is cheapest.
    Floor,
    /// Bare TCP whose ends both sleep.
    SleepingFloor,
    /// Bare TCP with one thread for all connections at each end, of which one spins.
    SharedFloor,
    /// One whose address was given: the first is 1.
    Beside(usize),
    /// `lunar serve` with a volume on a backend.
    On(Backend),
    /// fio on this backend, without a network.
    Fio(Backend),
}

impl Who {
    /// The target that has to run for it.
    fn server(self) -> Self {
        match self {
            Self::Digests => Self::Lunar,
            other => other,
        }
    }

    /// Other than usual options of `lunar serve`.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Asleep => &["--poll", "never"],
            Self::TwoThreads => &["--poll", "never", "--threads", "2"],
            _ => &[],
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Beside(number) => return f.pad(&format!("beside {number}")),
            Self::On(backend) => return backend.fmt(f),
            Self::Fio(backend) => return f.pad(&format!("fio {backend}")),
            Self::Lunar => "lunar",
            Self::Digests => "digests",
            Self::Asleep => "poll never",
            Self::TwoThreads => "two threads",
            Self::Tgtd => "tgtd",
            Self::Floor | Self::SharedFloor => "floor",
            Self::SleepingFloor => "sleeping floor",
        })
    }
}

/// All that run, each from its first load on.
#[derive(Default)]
pub(crate) struct Lineup {
    /// Addresses that were given.
    beside: Vec<UnitAddress>,
    targets: BTreeMap<Who, Target>,
    /// Dropped after the targets, which hold them.
    media: BTreeMap<Backend, Medium>,
    floor: Option<Floor>,
}

/// Waits until a server has done what it does by itself after a volume was filled: a RAM disk of
/// ours gets huge pages.
fn rest(pid: u32) -> Result<()> {
    const WINDOW: Duration = Duration::from_secs(2);
    for _ in 0..30 {
        let before = io::cpu::time_of(pid)?;
        std::thread::sleep(WINDOW);
        if io::cpu::time_of(pid)? - before < WINDOW / 50 {
            break;
        }
    }
    Ok(())
}

impl Lineup {
    pub(crate) fn new(beside: &[UnitAddress]) -> Self {
        Self {
            beside: beside.to_vec(),
            ..Self::default()
        }
    }

    /// Has one do a load for a while.
    pub(crate) fn measure(&mut self, who: Who, job: &Job, time: Duration) -> Result<Measured> {
        match who {
            Who::Floor => self.floor()?.best(job, time),
            Who::Fio(backend) => self.medium(backend)?.measure(job, time),
            Who::SharedFloor => self.floor()?.best_shared(job, time),
            Who::SleepingFloor => self.floor()?.measure(job, time, Manner::Asleep),
            target => {
                let digests = who == Who::Digests;
                load::measure(self.target(target)?, job, digests, time)
            }
        }
        .with_context(|| who.to_string())
    }

    fn target(&mut self, who: Who) -> Result<&Target> {
        let who = who.server();
        if !self.targets.contains_key(&who) {
            let target = self.start(who)?;
            load::fill(&target)
                .with_context(|| format!("filling {} MiB of {who}", VOLUME >> 20))?;
            target.pid.map_or(Ok(()), rest)?;
            self.targets.insert(who, target);
        }
        self.targets.get(&who).context("just started")
    }

    fn start(&mut self, who: Who) -> Result<Target> {
        let volume = match who {
            Who::Tgtd => return Target::tgtd(),
            Who::Beside(number) => {
                return Target::beside(self.beside.get(number - 1).context("not given")?);
            }
            Who::On(backend) => self.medium(backend)?.address(),
            _ => format!("ram:{VOLUME}"),
        };
        let folder = format!("bench-{who}").replace(' ', "-");
        Target::lunar(&folder, &volume, who.options())
    }

    fn medium(&mut self, backend: Backend) -> Result<&Medium> {
        Ok(match self.media.entry(backend) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(lacking) => lacking.insert(Medium::new(backend)?),
        })
    }

    fn floor(&mut self) -> Result<&Floor> {
        if self.floor.is_none() {
            self.floor = Some(Floor::start()?);
        }
        self.floor.as_ref().context("just started")
    }
}

//! What of a machine's processors can be asked for, and what contradicts itself.

use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use ::io::cpu::{self, CpuList};
use address::Time;

use super::{PollMode, ServeOptions};

/// How long network cards may be polled: below, a look at the clock costs more than the poll, and
/// above no initiator is waited for.
pub const BUSY_POLL: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(1);

/// Threads or processors that cannot be had together. What, why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineMisuse {
    /// A number of threads that the list of CPUs contradicts.
    #[error(
        "--threads {threads} contradicts --pin {list}, which has a CPU for each of {} threads: \
         omit --threads, or list {threads} CPUs", list.numbers().len()
    )]
    Threads {
        /// How many are to be started.
        threads: usize,
        /// Where each is to be pinned.
        list: CpuList,
    },
    /// A CPU where no thread can run.
    #[error(
        "no thread can be pinned to CPU {cpu}: this machine has none, or keeps it from this \
         process (taskset, cpuset, CPUAffinity=, AllowedCPUs=): choose from {available}"
    )]
    NotAvailable {
        /// Its number.
        cpu: usize,
        /// Those where threads can run.
        available: CpuList,
    },
    /// Polling before a sleep that there is not.
    #[error(
        "--busy-poll is what a core does before it sleeps, and with --poll always none does: give \
         --poll never or adaptive, or omit --busy-poll"
    )]
    NeverAsleep,
    /// A time that network cards cannot be polled for.
    #[error(
        "--busy-poll {} cannot be: give a time from {} to {}, such as 50us", Time(*.0),
        Time(*BUSY_POLL.start()), Time(*BUSY_POLL.end())
    )]
    BusyPoll(Duration),
}

impl MachineMisuse {
    /// Looks whether this process can pin threads to all of these CPUs now.
    ///
    /// # Errors
    ///
    /// The first where it cannot.
    pub fn look_for(list: &CpuList) -> Result<(), Self> {
        // Where the kernel does not tell, pinning itself will.
        let available = cpu::allowed().unwrap_or_else(|_| list.numbers().to_vec());
        let missing = list.numbers().iter().find(|cpu| !available.contains(cpu));
        missing.map_or(Ok(()), |&cpu| {
            Err(Self::NotAvailable {
                cpu,
                available: available.into(),
            })
        })
    }
}

impl ServeOptions {
    /// Only what the options themselves tell: the machine is looked at when its threads start.
    pub(super) fn validate_machine(&self) -> Result<(), MachineMisuse> {
        if let (Some(threads), Some(list)) = (self.threads.map(NonZeroUsize::get), &self.pin)
            && list.numbers().len() != threads
        {
            let list = list.clone();
            return Err(MachineMisuse::Threads { threads, list });
        }
        match self.busy_poll {
            Some(_) if self.poll == PollMode::Always => Err(MachineMisuse::NeverAsleep),
            Some(time) if !BUSY_POLL.contains(&time) => Err(MachineMisuse::BusyPoll(time)),
            _ => Ok(()),
        }
    }
}

//! What a process costs, as the kernel counts it; and where this one runs.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The CPU that generates load.
pub(crate) const GENERATOR_CPU: usize = 0;

/// The CPU that targets run on, as `taskset` wants it.
pub(crate) const TARGET_CPU: &str = "1";

/// The CPU time of all threads of a process, in nanoseconds (the first number of schedstat, which
/// is finer than the ticks in stat).
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = task?.path().join("schedstat");
        // A thread may have ended since the folder was read.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let time = text.split_whitespace().next().context("empty schedstat")?;
        sum += time.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(sum))
}

/// The resident memory of a process, in octets.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(kib.parse::<u64>()? << 10)
}

/// Pins the calling thread.
pub(crate) fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).context("cannot pin to a CPU")
}

/// Lets this process hold as many sockets as it may.
pub(crate) fn raise_file_limit() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("cannot raise the file limit")
}

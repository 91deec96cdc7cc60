//! Where this process runs, and what it may hold.

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The CPU that generates load.
pub(crate) const GENERATOR_CPU: usize = 0;

/// The CPU that targets run on, as `taskset` wants it.
pub(crate) const TARGET_CPU: &str = "1";

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

//! What a process costs, as the kernel counts it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};

/// The resident memory of a process, in bytes.
///
/// # Errors
/// When it has ended.
pub fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.context("no VmRSS")?.trim().trim_end_matches(" kB");
    Ok(kib.parse::<u64>()? << 10)
}

/// How often threads of a process gave their core away to wait for something.
///
/// # Errors
/// When it has ended.
pub fn waits(pid: u32) -> Result<u64> {
    let threads = switches(pid)?;
    Ok(threads.values().map(|thread| thread.waits).sum())
}

/// How often a thread was switched away from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSwitches {
    /// What the thread is called.
    pub name: String,
    /// It had to wait for something: as often it was woken.
    pub waits: u64,
    /// Another thread had its turn.
    pub preemptions: u64,
}

/// The threads of a process by their ids, as far as they have not ended.
///
/// # Errors
/// When the process has ended.
pub fn switches(pid: u32) -> Result<BTreeMap<u32, ThreadSwitches>> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?;
        let Ok(status) = fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        let id = task.file_name().to_string_lossy().parse()?;
        threads.insert(id, of_thread(&status)?);
    }
    Ok(threads)
}

fn of_thread(status: &str) -> Result<ThreadSwitches> {
    let field = |name: &str| {
        let mut lines = status.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(str::trim).with_context(|| format!("no {name}"))
    };
    Ok(ThreadSwitches {
        name: field("Name")?.to_owned(),
        waits: field("voluntary_ctxt_switches")?.parse()?,
        preemptions: field("nonvoluntary_ctxt_switches")?.parse()?,
    })
}

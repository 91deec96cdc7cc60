//! What a process costs, as the kernel counts it.

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
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(task?.path().join("status"))?;
        let mut lines = status.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        sum += count
            .context("no voluntary_ctxt_switches")?
            .trim()
            .parse::<u64>()?;
    }
    Ok(sum)
}

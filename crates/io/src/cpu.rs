//! Processors.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The numbers of the processors that this thread may run on.
///
/// # Errors
///
/// Of sched_getaffinity.
pub fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// Keeps this thread on one processor: its memory and its sockets' interrupts stay near.
///
/// # Errors
///
/// There is no such processor, or we may not run there.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests;

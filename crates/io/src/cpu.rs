//! Processors.

mod list;

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rustix::process::{getpid, getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use list::{CpuList, CpuListError};

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

/// Keeps this thread on one processor, and with it the threads that it starts, but for those of
/// [`spawn_helper`].
///
/// # Errors
///
/// EINVAL when there is no such processor, or none that this thread may run on.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Starts a thread that waits for what a reactor must not wait for. It may run wherever the main
/// thread of the process may, whichever thread starts it: on the processor of a pinned one it would
/// wait for that to sleep, and that may spin.
///
/// # Errors
///
/// When no thread can be started.
pub fn spawn_helper<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(|| {
        unpin();
        work()
    })
}

/// Lets this thread run wherever the main thread of the process may, which nothing pins.
fn unpin() {
    // A thread that stays where it is does its work all the same.
    if let Ok(set) = sched_getaffinity(Some(getpid())) {
        let _ = sched_setaffinity(None, &set);
    }
}

/// Lets other threads go before this one, and before those that it starts: `nice` says how much,
/// from 1 to 19. Beside another thread one of nice 5 has a quarter of a processor, one of nice 10 a
/// tenth.
///
/// # Errors
///
/// Of getpriority and setpriority.
pub fn give_way(nice: i32) -> io::Result<()> {
    // Of Linux these are asked for a thread, whatever POSIX says. It may have been started by one
    // that gives way.
    if getpriority_process(None)? < nice {
        setpriority_process(None, nice)?;
    }
    Ok(())
}

/// The kernel gives no process a larger number.
const PID_MAX: u32 = 1 << 22;

/// The CPU time of a process, with that of its threads that have ended; in nanoseconds, as the
/// scheduler counts it (`stat` in /proc has ticks, `schedstat` only one thread that still runs).
///
/// # Errors
///
/// When there is no such process, ESRCH.
pub fn time_of(pid: u32) -> io::Result<Duration> {
    // The name of a clock has 29 bits for a process: a larger number would name another clock, and
    // 0 names our own.
    if pid == 0 || pid > PID_MAX {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let mut clock = 0;
    // SAFETY: `clock` is written by the call, which keeps no pointer to it.
    match unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) } {
        0 => {}
        code => return Err(io::Error::from_raw_os_error(code)),
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: as above, with `time`.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32)),
        // The process has ended between the calls.
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

#[cfg(test)]
mod tests;

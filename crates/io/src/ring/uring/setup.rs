//! Opening an io_uring, with what this kernel has.

use std::io;

use io_uring::IoUring;

/// Entries of the submission queue: the operations that are begun by one system call. More are
/// submitted by another.
const SUBMISSIONS: u32 = 1024;

/// Entries of the completion queue. The kernel keeps what does not fit.
const COMPLETIONS: u32 = 8192;

/// Opens an io_uring for this thread.
///
/// Completions are made when we ask for them (DEFER_TASKRUN, Linux 6.1), so that no interrupt
/// breaks into the work; or when we enter the kernel anyhow (COOP_TASKRUN, 5.19); or at any time.
pub(super) fn open() -> io::Result<IoUring> {
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_coop_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS);
    let cooperative = || {
        IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)
    };
    let ring = match deferred {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => cooperative(),
        ring => ring,
    };
    ring.map_err(|error| explain(&error))
}

/// Says what an error of io_uring_setup most probably means.
fn explain(error: &io::Error) -> io::Error {
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has none",
        Some(libc::EPERM | libc::EACCES) => {
            "forbidden by the sysctl kernel.io_uring_disabled, a container or a security policy"
        }
        Some(libc::EINVAL) => "this kernel is older than Linux 5.19",
        Some(libc::ENOMEM) => "the limit of locked memory is too low",
        _ => return io::Error::new(error.kind(), format!("io_uring: {error}")),
    };
    io::Error::new(error.kind(), format!("io_uring: {error}: {cause}"))
}

#[cfg(test)]
mod tests;

//! What a panic costs: the process, or one piece of work of the control plane.
//!
//! A thread that serves hosts must not end alone. Its sessions would hang, and what it had locked
//! would stay locked, so the process aborts, and its service manager starts it again. The threads
//! of the control plane do no I/O of hosts: a panic costs them a request, or a start of the thread.

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::process::abort;

thread_local! {
    static MAY_UNWIND: Cell<bool> = const { Cell::new(false) };
}

/// From now on a panic aborts the process after its message, except on threads that may unwind.
pub fn abort_on_panic() {
    let told = take_hook();
    set_hook(Box::new(move |panic: &PanicHookInfo<'_>| {
        told(panic);
        if !MAY_UNWIND.get() {
            abort();
        }
    }));
}

/// Panics of this thread unwind from now on. It has to serve no host.
pub(crate) fn let_unwind() {
    MAY_UNWIND.set(true);
}

/// Does some work of the control plane; `None` where it panicked.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = MAY_UNWIND.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    MAY_UNWIND.set(before);
    done.ok()
}

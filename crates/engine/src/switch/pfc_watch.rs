//! Which interfaces have PFC: a change of it is no change of their link, so nothing tells the
//! switch, and the kernel must not forward from an interface that has it.
//!
//! The settings are read by a thread of their own, as the kernel answers under a lock that the
//! reset of a network card may hold for a while.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tracing::Span;

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct PfcWatch {
    _ends: Sender<()>,
}

impl PfcWatch {
    /// Looks at these interfaces, each with the number of its port, at once, and once in such a
    /// time. `told` is given the number of one for which `has_pfc` says something else than before,
    /// or that has PFC at first.
    ///
    /// # Errors
    ///
    /// When there can be no thread.
    pub(super) fn start(
        interfaces: Vec<(usize, String)>,
        period: Duration,
        has_pfc: impl Fn(&str) -> bool + Send + 'static,
        told: impl Fn(usize) + Send + 'static,
    ) -> io::Result<Self> {
        let (_ends, ended) = channel();
        let span = Span::current();
        let thread = thread::Builder::new().name("pfc".to_owned());
        thread.spawn(move || {
            let _named = span.entered();
            look(&interfaces, &ended, period, (has_pfc, told));
        })?;
        Ok(Self { _ends })
    }
}

fn look(
    interfaces: &[(usize, String)],
    ended: &Receiver<()>,
    period: Duration,
    (has_pfc, told): (impl Fn(&str) -> bool, impl Fn(usize)),
) {
    let mut before = vec![false; interfaces.len()];
    loop {
        for ((at, name), before) in interfaces.iter().zip(&mut before) {
            let now = has_pfc(name);
            if std::mem::replace(before, now) != now {
                told(*at);
            }
        }
        if ended.recv_timeout(period) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// How often a switch looks.
pub(super) const PFC_READ: Duration = Duration::from_secs(5);

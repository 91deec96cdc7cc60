//! The threads of the cores of a switch beside that of core 0.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::io::ring::{AnyRing, Ring, RingKind, Waker};
use tracing::Span;

use super::core::{CoreParts, SwitchCore};
use super::cores::SwitchCores;

/// Threads whose rings are there, and that wait for their ports.
pub(super) struct WaitingThreads(Vec<WaitingThread>);

struct WaitingThread {
    waker: Waker,
    parts: Sender<(CoreParts, Arc<SwitchCores>)>,
    thread: JoinHandle<io::Result<()>>,
}

/// Threads that forward. They are told to end when this is dropped.
pub(super) struct CoreThreads {
    cores: Option<Arc<SwitchCores>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl WaitingThreads {
    /// As many beside that of core 0. A ring belongs to the thread that has made it.
    ///
    /// # Errors
    ///
    /// When the kernel has no thread or ring.
    pub(super) fn start(others: usize, ring: RingKind) -> io::Result<Self> {
        let threads = (1..=others).map(|core| start(core, ring));
        threads.collect::<io::Result<_>>().map(Self)
    }

    /// What wakes them.
    pub(super) fn wakers(&self) -> impl Iterator<Item = Waker> {
        self.0.iter().map(|one| one.waker.clone())
    }

    /// Gives each its ports.
    pub(super) fn begin(
        self,
        cores: Arc<SwitchCores>,
        parts: impl Iterator<Item = CoreParts>,
    ) -> CoreThreads {
        let threads = self.0.into_iter().zip(parts).map(|(waiting, parts)| {
            // One that has ended already is noticed by its flag.
            let _ = waiting.parts.send((parts, Arc::clone(&cores)));
            waiting.thread
        });
        CoreThreads {
            threads: threads.collect(),
            cores: Some(cores),
        }
    }
}

impl CoreThreads {
    /// Of a switch with one core.
    pub(super) const fn none() -> Self {
        Self {
            cores: None,
            threads: Vec::new(),
        }
    }

    /// Has them end when what they have to send has left. [`Self::wait`] waits for that.
    pub(super) fn end(&self) {
        if let Some(cores) = &self.cores {
            cores.end();
        }
    }

    /// Waits until they have ended, but not for ever.
    ///
    /// # Errors
    ///
    /// What one of them has failed of.
    pub(super) fn wait(mut self) -> io::Result<()> {
        let ports = self.cores.as_ref().map_or(0, |cores| cores.homes.len());
        let until = Instant::now() + LAST + SPARE + CLOSE * ports as u32;
        let mut result = Ok(());
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                thread::sleep(LOOK);
            }
            if thread.is_finished() {
                let ended = thread.join();
                let ended = ended.unwrap_or_else(|_| Err(io::Error::other("a core has panicked")));
                result = result.and(ended);
            } else {
                tracing::error!("a core of the switch does not end, so it is left behind");
            }
        }
        result
    }
}

impl Drop for CoreThreads {
    fn drop(&mut self) {
        self.end();
    }
}

fn start(core: usize, ring: RingKind) -> io::Result<WaitingThread> {
    let (tell_waker, waker) = channel();
    let (parts, take_parts) = channel();
    let span = Span::current();
    let thread = thread::Builder::new().name(format!("switch-{core}"));
    let thread = thread.spawn(move || {
        let _named = span.entered();
        run(ring, &tell_waker, &take_parts)
    })?;
    match waker.recv() {
        Ok(waker) => Ok(WaitingThread {
            waker,
            parts,
            thread,
        }),
        Err(_) => Err(match thread.join() {
            Ok(Err(cause)) => cause,
            _ => io::Error::other("a core ended before it began"),
        }),
    }
}

fn run(
    ring: RingKind,
    tell_waker: &Sender<Waker>,
    take_parts: &Receiver<(CoreParts, Arc<SwitchCores>)>,
) -> io::Result<()> {
    let (ring, _) = AnyRing::open(ring)?;
    let _ = tell_waker.send(ring.waker());
    let Ok((parts, cores)) = take_parts.recv() else {
        return Ok(());
    };
    let _notifier = EndNotifier(cores);
    SwitchCore::new(ring, parts).run()
}

/// Tells core 0, when it is dropped, that a core ends, however it does.
struct EndNotifier(Arc<SwitchCores>);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        self.0.has_failed.store(true, Ordering::Release);
        self.0.wakers[0].wake();
    }
}

/// How long a core beside core 0 waits for its last frames to leave. Core 0 has waited for their
/// control frames before it tells them to end.
pub(super) const LAST: Duration = Duration::from_millis(250);

/// How long a core may take to end beside the time that its last frames have.
const SPARE: Duration = Duration::from_millis(500);

/// How long it may take to close its socket at a port. One core took 1.3 s for 48 interfaces.
const CLOSE: Duration = Duration::from_millis(100);

/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(1);

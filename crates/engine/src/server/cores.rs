//! The threads of a server, a core each.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use ::io::cpu::{self, CpuList};
use ::io::limits::{address_space, processor_quota};
use ::io::memory::Pool;
use ::io::ring::{AnyRing, Ring as _, RingKind, Waker};
use block::volume::CoreContext;
use scsi::unit::CoreId;

use crate::core::{ControlCore, Core, CoreParts};
use crate::mailbox::{CoreMailbox, Mailboxes};
use crate::serve::options::ServeError;
use crate::server::ServerConfig;
use block::volumes::Volumes;
use runtime::journal::Journal;
use runtime::polling::{OF_A_SERVER, PollMode, Polling, thread_time};

/// The most that a core's buffers for file and block volumes may take: a thousand segments on
/// their way.
const POOL_BYTES: usize = 256 << 20;

/// The least, 16 segments, however little address space there is: a server that has less is not
/// worth starting.
const POOL_MIN: usize = 4 << 20;

/// Address space that a core takes for other things: three threads, for the heap of each of which
/// the C library reserves 64 MiB and for a moment twice that, and 32 MiB of received data. Three
/// are its own and two for calls that block. A core may have more of the latter (`THREADS_MAX` in
/// `io/src/ring/blocking.rs`), but does without those that find no address space; to keep room for
/// all of them would leave hardly any for buffers.
const OTHERS: u64 = 320 << 20;

/// How much memory the buffers of each core may take where so much address space is left, in bytes.
fn pool_bytes(address_space: Option<u64>, cores: u16) -> usize {
    let each =
        |left: u64| (left / u64::from(cores.max(1))).saturating_sub(OTHERS) / Pool::ADDRESSES;
    let fits = address_space.map(|left| usize::try_from(each(left)).unwrap_or(POOL_BYTES));
    let bytes = fits.map_or(POOL_BYTES, |fits| fits.clamp(POOL_MIN, POOL_BYTES));
    if bytes < POOL_BYTES {
        tracing::warn!(
            "the limit of address space (ulimit -v) leaves each core {} MiB of buffers for files \
             and devices, instead of {} MiB",
            bytes >> 20,
            POOL_BYTES >> 20
        );
    }
    bytes
}

/// What every core needs to begin.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) ring: RingKind,
    pub(super) polling: PollMode,
    /// The CPU of each; `None`: none is pinned.
    pub(super) pin: Option<CpuList>,
    /// How long the kernel polls network cards before a core sleeps.
    pub(super) busy_poll: Option<Duration>,
    pub(super) journal: Arc<Journal>,
    /// The most that a core's buffers take, in bytes.
    pub(super) pool: usize,
    pub(super) start: Instant,
}

impl Common {
    /// What this many cores are told.
    pub(super) fn new(config: &ServerConfig, cores: u16, start: Instant) -> Self {
        Self {
            ring: config.ring,
            polling: config.poll.within(processor_quota(), cores),
            pin: config.pin.clone(),
            busy_poll: config.busy_poll,
            journal: Arc::default(),
            pool: pool_bytes(address_space(), cores),
            start,
        }
    }
}

/// A core's thread that has its ring and waits for the way to the others.
struct StartedCore {
    waker: Waker,
    mailboxes: Sender<Mailboxes>,
    thread: CoreThread,
}

/// A core's thread, which ends with what its ring fails of.
pub(super) type CoreThread = JoinHandle<io::Result<()>>;

/// Starts this many cores. A ring belongs to the thread that made it, so each thread makes its own,
/// tells how it is woken, and begins when there are mailboxes for all.
pub(super) fn start(
    count: u16,
    common: &Common,
    control: Box<ControlCore>,
    ended: &Arc<dyn Fn(CoreId) + Send + Sync>,
) -> io::Result<(Mailboxes, Vec<CoreThread>)> {
    let mut control = Some(control);
    let waiting = (0..count).map(|core| {
        let notifier = EndNotifier(Arc::clone(ended), CoreId(core));
        spawn(notifier, common.clone(), control.take())
    });
    let waiting = waiting.collect::<io::Result<Vec<_>>>()?;
    let mailboxes = Mailboxes::new(waiting.iter().map(|core| core.waker.clone()).collect());
    let mut threads = Vec::new();
    for core in waiting {
        let _ = core.mailboxes.send(mailboxes.clone());
        threads.push(core.thread);
    }
    Ok((mailboxes, threads))
}

/// Tells, when it is dropped, that a core ends, however it does.
struct EndNotifier(Arc<dyn Fn(CoreId) + Send + Sync>, CoreId);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        (self.0)(self.1);
    }
}

fn spawn(
    notifier: EndNotifier,
    common: Common,
    control: Option<Box<ControlCore>>,
) -> io::Result<StartedCore> {
    let core = notifier.1;
    let (tell_waker, waker) = mpsc::channel();
    let (mailboxes, take_mailboxes) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name(format!("lunar-{}", core.0))
        .spawn(move || {
            let _notifier = notifier;
            run(core, &common, control, &tell_waker, &take_mailboxes)
        })?;
    match waker.recv() {
        Ok(waker) => Ok(StartedCore {
            waker,
            mailboxes,
            thread,
        }),
        Err(_) => Err(failure(thread)),
    }
}

fn failure(thread: CoreThread) -> io::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => io::Error::other("a core stopped before it started"),
    }
}

fn run(
    id: CoreId,
    common: &Common,
    control: Option<Box<ControlCore>>,
    tell_waker: &Sender<Waker>,
    mailboxes: &Receiver<Mailboxes>,
) -> io::Result<()> {
    // Before its memory is taken, so that this lies in the node of its CPU.
    pin(id, common.pin.as_ref())?;
    let (ring, instead) = AnyRing::open(common.ring)?;
    if let Some(cause) = instead
        && id == CoreId(0)
    {
        tracing::info!("io_uring is unavailable ({cause}): using epoll");
    }
    if let Some(limit) = common.busy_poll {
        ring.busy_poll(limit)?;
    }
    let context = CoreContext::new(Pool::new(common.pool)?);
    let _ = tell_waker.send(ring.waker());
    let Ok(mailboxes) = mailboxes.recv() else {
        return Ok(());
    };
    let post = mailboxes.for_core(id);
    let core = Core::new(CoreParts {
        id,
        ring,
        post,
        units: Vec::new(),
        volumes: Volumes::default(),
        context,
        views: Arc::default(),
        journal: Arc::clone(&common.journal),
        control,
    });
    drive(core, common)
}

/// Keeps the thread of a core on its CPU.
fn pin(id: CoreId, list: Option<&CpuList>) -> io::Result<()> {
    let cpu = list.and_then(|list| list.numbers().get(usize::from(id.0)));
    cpu.map_or(Ok(()), |&cpu| {
        let cause = |error| io::Error::other(format!("cannot pin it to CPU {cpu}: {error}"));
        cpu::pin(cpu).map_err(cause)
    })
}

/// The loop of a core.
fn drive(mut core: Core<AnyRing, CoreMailbox>, common: &Common) -> io::Result<()> {
    let mut polling = Polling::new(common.polling, OF_A_SERVER);
    let begun = common.start.elapsed();
    core.begin(begun);
    let (mut idle_since, mut was_busy) = (begun, false);
    while !core.has_left() {
        let now = common.start.elapsed();
        if was_busy {
            idle_since = now;
        }
        let patience = core.patience(now);
        let timeout = if core.ring().pauses() {
            patience
        } else {
            polling.timeout(now, patience)
        };
        let timeout = core.may_wait(timeout);
        core.ring().wait(timeout)?;
        let now = common.start.elapsed();
        // A turn that finds nothing is part of the waiting.
        core.was_idle(now - idle_since);
        idle_since = now;
        was_busy = core.turn(now);
        if was_busy {
            polling.arrived(now, core.completed(), thread_time);
        }
    }
    Ok(())
}

/// What a core ended with.
pub(super) fn join(thread: CoreThread) -> Result<(), ServeError> {
    let ended = thread.join();
    let ended = ended.unwrap_or_else(|_| Err(io::Error::other("it panicked")));
    ended.map_err(|cause| ServeError::Machine {
        what: "a core failed".into(),
        cause,
    })
}

/// Why this many cores were not started, and the way out.
pub(super) fn cannot_start(count: u16, cause: io::Error) -> ServeError {
    let what = match Errno::from_io_error(&cause) {
        Some(Errno::NOMEM | Errno::AGAIN) if address_space().is_some() => format!(
            "cannot start {count} cores within the limit of address space: raise it (ulimit -v), \
             or give a smaller --threads"
        ),
        Some(_) => format!("cannot start {count} cores: give a smaller --threads"),
        None => format!("cannot start {count} cores"),
    };
    ServeError::Machine { what, cause }
}

//! The threads of a server, a core each.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use ::io::memory::Pool;
use ::io::ring::{AnyRing, Ring, RingKind, Waker};
use block::volume::{CoreContext, Volume};
use scsi::unit::{CoreId, UnitState};

use super::fc_ports::FcPortSpec;
use super::options::PollMode;
use super::orders::Orders;
use crate::core::{ControlCore, Core, CoreParts, FcPort, accept_token};
use crate::mailbox::{CoreMailbox, Mailboxes};
use block::volumes::Volumes;
use runtime::journal::Journal;
use runtime::polling::{OF_A_SERVER, Polling};

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
pub(super) fn pool_bytes(address_space: Option<u64>, cores: u16) -> usize {
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
    pub(super) units: Vec<Arc<UnitState>>,
    pub(super) volumes: Vec<Arc<dyn Volume>>,
    pub(super) journal: Arc<Journal>,
    /// The most that a core's buffers take, in bytes.
    pub(super) pool: usize,
    pub(super) start: Instant,
}

/// What the world comes in by.
pub(super) struct EntryPoints {
    /// For core 0, as are the listeners.
    pub(super) front: Box<ControlCore>,
    pub(super) listeners: Vec<OwnedFd>,
    /// For the cores from the last one on, as core 0 has more to do than the others.
    pub(super) berths: Vec<FcPortSpec>,
}

/// What one core of these has.
#[derive(Default)]
struct CoreInit {
    /// On core 0.
    entrance: Option<(Box<ControlCore>, Vec<OwnedFd>)>,
    berths: Vec<FcPortSpec>,
}

/// A core's thread that has its ring and waits for the way to the others.
struct StartedCore {
    waker: Waker,
    office: Sender<Mailboxes>,
    thread: JoinHandle<io::Result<()>>,
}

/// Starts this many cores. A ring belongs to the thread that made it, so each thread makes its own,
/// tells how it is woken, and begins when the post office knows all.
pub(super) fn start(
    count: u16,
    common: &Common,
    entrance: EntryPoints,
    orders: &Orders,
) -> io::Result<(Mailboxes, Vec<JoinHandle<io::Result<()>>>)> {
    let mut doors = Vec::new();
    doors.resize_with(usize::from(count), CoreInit::default);
    doors[0].entrance = Some((entrance.front, entrance.listeners));
    let from_the_last = (0..doors.len()).rev().cycle();
    for (berth, core) in entrance.berths.into_iter().zip(from_the_last) {
        doors[core].berths.push(berth);
    }
    let waiting = (0..).zip(doors);
    let waiting = waiting
        .map(|(core, doors)| spawn(CoreId(core), common.clone(), doors, orders))
        .collect::<io::Result<Vec<_>>>()?;
    let office = Mailboxes::new(waiting.iter().map(|core| core.waker.clone()).collect());
    let mut threads = Vec::new();
    for core in waiting {
        let _ = core.office.send(office.clone());
        threads.push(core.thread);
    }
    Ok((office, threads))
}

fn spawn(
    core: CoreId,
    common: Common,
    doors: CoreInit,
    orders: &Orders,
) -> io::Result<StartedCore> {
    let last_word = orders.last_word(core);
    let (tell_waker, waker) = mpsc::channel();
    let (office, take_office) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name(format!("lunar-{}", core.0))
        .spawn(move || {
            let _last_word = last_word;
            run(core, &common, doors, &tell_waker, &take_office)
        })?;
    match waker.recv() {
        Ok(waker) => Ok(StartedCore {
            waker,
            office,
            thread,
        }),
        Err(_) => Err(failure(thread)),
    }
}

fn failure(thread: JoinHandle<io::Result<()>>) -> io::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        _ => io::Error::other("a core stopped before it started"),
    }
}

fn run(
    id: CoreId,
    common: &Common,
    doors: CoreInit,
    tell_waker: &Sender<Waker>,
    office: &Receiver<Mailboxes>,
) -> io::Result<()> {
    let (mut ring, instead) = AnyRing::open(common.ring)?;
    if let Some(cause) = instead
        && id == CoreId(0)
    {
        tracing::info!("io_uring is unavailable ({cause}): using epoll");
    }
    let context = CoreContext::new(Pool::new(common.pool)?);
    let volumes = Volumes::attach(&common.volumes, &context)?;
    let mut front = None;
    if let Some((entrance, listeners)) = doors.entrance {
        for (number, listener) in listeners.into_iter().enumerate() {
            ring.listen(listener, accept_token(number as u32))?;
        }
        front = Some(entrance);
    }
    let _ = tell_waker.send(ring.waker());
    let Ok(office) = office.recv() else {
        return Ok(());
    };
    let post = office.counter(id);
    let now = common.start.elapsed();
    let berths = doors.berths.into_iter();
    let fc_ports = berths.map(|(site, device)| FcPort::begin(site, device, now));
    let fc_ports = fc_ports.collect();
    let (units, journal) = (common.units.clone(), Arc::clone(&common.journal));
    let core = Core::new(CoreParts {
        id,
        ring,
        post,
        units,
        volumes,
        fc_ports,
        buffers: context.pool.clone(),
        journal,
        front,
    });
    drive(core, common)
}

/// The loop of a core.
fn drive(mut core: Core<AnyRing, CoreMailbox>, common: &Common) -> io::Result<()> {
    let mut polling = Polling::new(common.polling, OF_A_SERVER);
    core.begin(common.start.elapsed());
    while !core.has_left() {
        let now = common.start.elapsed();
        let patience = core.patience(now);
        let timeout = if core.ring().pauses() {
            patience
        } else {
            polling.timeout(now, patience)
        };
        core.ring().wait(timeout)?;
        let now = common.start.elapsed();
        if core.turn(now) {
            polling.arrived(now);
        }
    }
    Ok(())
}

//! The floor under Fibre Channel over Ethernet: frames as long as its longest, one way or both, by
//! the same ports. What is sent is copied out of memory, and what comes in is copied there, as no
//! protocol above could do without.
//!
//! Nothing holds a sender of frames back, so the receiver tells from time to time how far it has
//! come, and no more than [`WINDOW`] frames are on their way. Frames that are lost are counted, not
//! sent again.

mod blast;
mod frame;
mod relay;
mod side;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub use self::blast::{BlastTotals, blast};
pub use ::io::ether::{EtherOpenError, Place};

use ::io::ether::EtherPort;

use self::frame::{FloorFrameKind, FloorMessage, GROUP, Run};
pub use self::relay::FloorRelay;
use self::side::FloorPort;
use crate::load::{self, Measured, RunError};
use crate::load_threads::{self, LoadPhase, LoadThread, RunObserver, ThreadTotals};
use crate::outcome::{AccessOrder, DataDirection, Load, RunResult};
use crate::plan::FioOptions;

/// Frames on their way that the receiver has not told of: less than a port's ring takes.
pub const WINDOW: u32 = 2048;

/// How long the other end may take to answer, and may be silent.
const SILENCE: Duration = Duration::from_secs(5);

/// How often it is called meanwhile.
const CALL: Duration = Duration::from_millis(100);

/// How long one waits for frames before the phase is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What is asked of a floor.
#[derive(Clone, Copy, Debug)]
pub struct FloorRequest<'a> {
    /// Our end.
    pub place: &'a Place,
    /// Each frame is summed when it is sent, and its sum checked when it came, as Fibre Channel's
    /// CRC is.
    pub crc: bool,
    /// Bytes of memory that frames come from and go to.
    pub size: u64,
}

/// Answers each peer that calls.
pub struct FloorResponder(FloorPort);

impl FloorResponder {
    /// Listens at a port, with so much memory.
    ///
    /// # Errors
    ///
    /// When there is no port to be had there.
    pub fn new(place: &Place, size: u64) -> Result<Self, EtherOpenError> {
        let port = EtherPort::open(place, &<_>::default())?;
        let failed = |cause| EtherOpenError::Io(place.to_string(), cause);
        let mut side = FloorPort::new(port, size, None).map_err(failed)?;
        side.port.join(GROUP).map_err(failed)?;
        Ok(Self(side))
    }

    /// Answers until `stop`.
    ///
    /// # Errors
    ///
    /// What is wrong with the port.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let Self(side) = self;
        while !stop.load(Relaxed) {
            side.turn()?;
            if side.silent() > SILENCE {
                side.session = None;
            }
            side.wait(LOOK)?;
        }
        Ok(())
    }
}

/// Measures each direction of `words` into `outcome`, until all are, something fails, or it is
/// stopped.
///
/// # Errors
///
/// When it failed; what was measured before is in `outcome`.
pub fn rows(
    frames: FloorRequest<'_>,
    words: &FioOptions,
    outcome: &mut RunResult,
    watch: &mut RunObserver<'_>,
) -> Result<(), RunError> {
    for rw in &words.rws {
        if watch.stopped() {
            return Ok(());
        }
        let measured = measure(frames, words, rw.direction, watch);
        if let (Err(_), true) = (&measured, watch.stopped()) {
            return Ok(());
        }
        measured?.take(&mut outcome.rows)?;
    }
    Ok(())
}

fn measure(
    frames: FloorRequest<'_>,
    words: &FioOptions,
    direction: DataDirection,
    watch: &mut RunObserver<'_>,
) -> Result<Measured, RunError> {
    let address = format!("fcoe://{}", frames.place);
    let failed = |cause: io::Error| RunError::Load(format!("{address}: {cause}"));
    let port = EtherPort::open(frames.place, &<_>::default());
    let port = port.map_err(|cause| RunError::Load(cause.to_string()))?;
    let run = Run::new(direction, frames.crc);
    let mut side = FloorPort::new(port, frames.size, Some(run)).map_err(failed)?;
    let far = call(&mut side, frames.place, run, watch).map_err(failed)?;
    let load = Load {
        direction,
        order: AccessOrder::Sequential,
        block_bytes: side.payload_len as u32,
        depth: WINDOW,
        jobs: 1,
    };
    (watch.live)(load_threads::LiveFigures::Begin(load));
    let member = move |post: &LoadThread<'_>| {
        let mut report = ThreadTotals::default();
        post.ready(None);
        if let Err(cause) = work(&mut side, post, &mut report) {
            report.failure = Some(cause.to_string());
        }
        report
    };
    let result = load_threads::run(vec![member], words.times(), watch, || {
        far.into_iter().collect()
    })?;
    Ok(load::measured(vec![address], load, &result))
}

/// Calls the other end until it answers. Returns its process, if that is of this machine.
fn call(
    side: &mut FloorPort,
    place: &Place,
    run: Run,
    watch: &RunObserver<'_>,
) -> io::Result<Option<u32>> {
    if let Some(far) = hail(side, run, SILENCE, watch.stop)? {
        return Ok(far);
    }
    let absent = match place.interface() {
        Some(name) if !side.port.link().up => {
            format!("the link is down: ip link set {name} up, or check its cable")
        }
        _ => NO_ANSWER.to_owned(),
    };
    Err(io::Error::new(io::ErrorKind::TimedOut, absent))
}

/// Calls the other end until it answers, for so long. Returns its process, if that is of this
/// machine; nothing if it does not answer.
fn hail(
    side: &mut FloorPort,
    run: Run,
    patience: Duration,
    stop: &AtomicBool,
) -> io::Result<Option<Option<u32>>> {
    let begin = Instant::now();
    while begin.elapsed() < patience && !stop.load(Relaxed) {
        side.send(GROUP, FloorMessage::of(FloorFrameKind::Hello, run))?;
        let next = Instant::now() + CALL;
        while let Some(left) = next.checked_duration_since(Instant::now()) {
            side.wait(left)?;
            side.turn()?;
            if let Some(session) = &side.session {
                return Ok(Some(session.far));
            }
        }
    }
    Ok(None)
}

const NO_ANSWER: &str =
    "no answer: start lunar floor --listen fcoe://IFACE --open at the other end";

fn work(side: &mut FloorPort, post: &LoadThread<'_>, report: &mut ThreadTotals) -> io::Result<()> {
    loop {
        let counts = match post.phase() {
            LoadPhase::Rest | LoadPhase::Ramp => false,
            LoadPhase::Measure => true,
            _ => return side.end(),
        };
        side.turn()?;
        if side.silent() > SILENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (came, went) = side.take_progress();
        if counts {
            for (tally, progress) in [(&mut report.reads, came), (&mut report.writes, went)] {
                tally.ios += progress.frames;
                tally.bytes += progress.frames * side.payload_len as u64;
                for _ in 0..progress.lost {
                    tally.fail(|| "frames were lost".to_owned());
                }
            }
            post.show(report);
        }
        side.wait(LOOK)?;
    }
}

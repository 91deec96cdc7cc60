//! As many frames as pass, both ways at a time, for whoever looks for the place where some are
//! lost.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ::io::ether::{EtherOpenError, EtherPort, Place};

use super::frame::Run;
use super::side::{FloorPort, FrameCounts};
use super::{LOOK, SILENCE, hail};
use crate::outcome::DataDirection;

/// What became of the frames of a blast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlastTotals {
    /// Frames that came.
    pub received: u64,
    /// Frames that the other end sent and that did not come.
    pub lost_in: u64,
    /// Frames that the other end has told of.
    pub sent: u64,
    /// Frames that did not arrive there.
    pub lost_out: u64,
    /// Frames that the ring of our socket had no room for.
    pub ring_full: u64,
}

/// Sends frames of full length to a floor that answers at the other end, and has it send such
/// frames, for this long. `None` if no floor answers, in which case nothing but the calls was sent.
///
/// # Errors
///
/// What is wrong with the port, by its name, and `TimedOut` if the other end falls silent.
pub fn blast(
    place: &Place,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<BlastTotals>, EtherOpenError> {
    let port = EtherPort::open(place, &<_>::default())?;
    let failed = |cause| EtherOpenError::Io(place.to_string(), cause);
    blast_by(port, time, stop).map_err(failed)
}

fn blast_by(port: EtherPort, time: Duration, stop: &AtomicBool) -> io::Result<Option<BlastTotals>> {
    let run = Run::new(DataDirection::Mixed, false);
    let mut side = FloorPort::new(port, MEMORY, Some(run))?;
    if hail(&mut side, run, PATIENCE, stop)?.is_none() {
        return Ok(None);
    }
    let mut totals = BlastTotals::default();
    let begin = Instant::now();
    while begin.elapsed() < time && !stop.load(Relaxed) {
        side.turn()?;
        if side.silent() > SILENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        totals.add(side.take_progress());
        side.wait(LOOK)?;
    }
    side.end()?;
    totals.ring_full = side.port.drops()?.ring_full;
    Ok(Some(totals))
}

impl BlastTotals {
    const fn add(&mut self, (came, went): (FrameCounts, FrameCounts)) {
        self.received += came.frames;
        self.lost_in += came.lost;
        self.sent += went.frames;
        self.lost_out += went.lost;
    }
}

/// Bytes that frames come from and go to: what matters here is the way, not the memory.
const MEMORY: u64 = 4 << 20;

/// A floor that is there answers within a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);

//! What every volume is.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use ::io::memory::{Buffer, Pool};
use ::io::ring::{FileOp, FileRing, Token};
use scsi::medium::{MediumOp, MediumResult, Traits};
use scsi::statistics::Usage;

use crate::lease::Lease;

/// A volume that was opened, for all cores.
pub trait Volume: Send + Sync + fmt::Debug {
    /// What it is and can do, now.
    fn traits(&self) -> Traits;

    /// What one core works with.
    ///
    /// # Errors
    ///
    /// Of whatever the volume needs for each core.
    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>>;

    /// Whether it forgets everything when the process ends, so that it must not come back under
    /// the same identity.
    fn is_empty_at_start(&self) -> bool {
        false
    }

    /// How much of its storage it uses now, and how much there still is for it; `None` where that
    /// is not counted. Never blocks.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// A descriptor that becomes readable when [`Self::refresh`] may have something to tell; `None`
    /// where that never happens. The volume's own writes make it readable too, so that it is to be
    /// looked at once a second or so and not slept upon.
    fn changes(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Learns what changed outside. Returns whether [`Self::traits`] tells something new: a larger
    /// capacity. Never blocks.
    ///
    /// # Errors
    ///
    /// When the volume can no longer be looked at; its traits stay as they were.
    fn refresh(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// What a core gives to the volumes that it attaches.
#[derive(Debug)]
pub struct CoreContext {
    /// Its buffers.
    pub pool: Pool,
}

/// A volume as one core sees it.
///
/// Operations that touch the same blocks at the same time end in any order; who needs an order
/// waits for the outcome. When the core's pool is exhausted an operation that needs a buffer ends
/// with [`scsi::medium::MediumError::Busy`] at once: nobody tells a handle when a buffer comes
/// back, so a queue here would wait without a bound.
pub trait Handle {
    /// Starts an operation. Its result comes out of `cx.done`, at once or later, under `id`.
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>);

    /// A file operation that this handle started has ended. `slot` is what it gave to
    /// [`Context::file`].
    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        result: io::Result<u64>,
        buffer: Option<Buffer>,
    );
}

/// What a volume may use while it works.
pub struct Context<'a> {
    /// Starts file operations, whose token is made of `volume` and a slot.
    pub ring: &'a mut dyn FileRing,
    /// The number of the volume on this core, for tokens; below 2^28.
    pub volume: u32,
    /// Where results go.
    pub done: &'a mut Vec<(u64, MediumResult<Lease>)>,
}

impl Context<'_> {
    /// Starts a file operation that ends by [`Handle::completed`] with `slot`. Its token is the
    /// volume's number in the upper and the slot in the lower 32 bits.
    pub fn file(&mut self, slot: u32, op: FileOp) {
        let token = Token(u64::from(self.volume) << 32 | u64::from(slot));
        self.ring.file(token, op);
    }

    /// Tells the result of an operation.
    pub fn done(&mut self, id: u64, result: MediumResult<Lease>) {
        self.done.push((id, result));
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context(volume {})", self.volume)
    }
}

//! What every volume is.

use scsi::medium::{MediumOp, MediumResult, Traits};

use crate::lease::Lease;

/// A volume that was opened, for all cores.
pub trait Volume: Send + Sync + std::fmt::Debug {
    /// What it is and can do, now.
    fn traits(&self) -> Traits;

    /// What one core works with.
    fn attach(&self, core: &CoreContext) -> std::io::Result<Box<dyn Handle>>;
}

/// What a core gives to the volumes that it attaches.
#[derive(Debug)]
pub struct CoreContext {
    /// Its buffers.
    pub pool: io::memory::Pool,
}

/// A volume as one core sees it.
pub trait Handle {
    /// Starts an operation. Its result comes out of `cx.done`, at once or later, under `id`.
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>);

    /// A file operation that this handle started has ended. `slot` is what it gave to
    /// [`Context::file`].
    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        result: std::io::Result<u64>,
        buffer: Option<io::memory::Buffer>,
    );
}

/// What a volume may use while it works.
pub struct Context<'a> {
    /// Starts file operations, whose token is made of `volume` and a slot.
    pub ring: &'a mut dyn io::ring::FileRing,
    /// The number of the volume on this core, for tokens.
    pub volume: u32,
    /// Where results go.
    pub done: &'a mut Vec<(u64, MediumResult<Lease>)>,
}

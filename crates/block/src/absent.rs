//! A volume that is not there.

use std::io;

use scsi::medium::{MediumError, MediumOp, MediumOutcome, Traits};

use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, HandleId, Volume};

/// Stands for a volume that cannot be opened now. It tells what is known of it, and fails whatever
/// it is asked for.
#[derive(Debug)]
pub struct Absent {
    traits: Traits,
}

impl Absent {
    /// In place of a volume that was never seen: it has no blocks.
    #[must_use]
    pub fn new(block_size: Option<u32>) -> Self {
        Self::of(Traits {
            block_size: block_size.unwrap_or(512),
            blocks: 0,
            physical_exponent: 0,
            read_only: false,
            write_cache: false,
            unmap_granularity: None,
            anchor: false,
            atomic: None,
            sanitize: &[],
            solid_state: false,
            write_same_to_end: false,
            shared: false,
        })
    }

    /// In place of a volume that was like this.
    #[must_use]
    pub fn of(traits: Traits) -> Self {
        Self { traits }
    }
}

impl Volume for Absent {
    fn traits(&self) -> Traits {
        self.traits.clone()
    }

    /// Nobody knows what it is, so nothing is to be taken for it.
    fn is_empty_at_start(&self) -> bool {
        true
    }

    fn attach(&self, _: &CoreContext) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(AbsentHandle))
    }
}

struct AbsentHandle;

impl Handle for AbsentHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        cx.done(
            id,
            match op {
                // Nothing that was accepted can be lost by it.
                MediumOp::Flush { .. } => Ok(MediumOutcome::Done),
                _ => Err(MediumError::Gone),
            },
        );
    }

    fn event(&mut self, _: &mut Context<'_>, _: HandleId, _: u32, _: HandleEvent<'_>) {}
}

//! `readonly(A)`: any volume, protected from writes.

use std::io;
use std::sync::Arc;

use scsi::medium::{MediumError, MediumOp, MediumOutcome, Traits};

use crate::filter::{Filter, FilterHandle};
use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, Volume};

/// A volume through which another one cannot be written.
#[derive(Debug)]
pub struct Readonly(Arc<dyn Volume>);

impl Readonly {
    /// Protects a volume.
    #[must_use]
    pub fn new(volume: Arc<dyn Volume>) -> Self {
        Self(volume)
    }
}

impl Filter for Readonly {
    fn inside(&self) -> &dyn Volume {
        &*self.0
    }

    /// How blocks are provisioned can still be asked.
    fn limit(&self, inside: Traits) -> Traits {
        Traits {
            read_only: true,
            write_cache: false,
            atomic: None,
            sanitize: &[],
            ..inside
        }
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        Ok(Box::new(ReadonlyHandle(self.0.attach(core)?)))
    }
}

struct ReadonlyHandle(Box<dyn Handle>);

impl FilterHandle for ReadonlyHandle {
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        match op {
            MediumOp::Read { .. }
            | MediumOp::Buffer { .. }
            | MediumOp::Status { .. }
            | MediumOp::Prefetch { .. } => self.0.submit(cx, id, op),
            // Nothing was written by us, and what others wrote is theirs to flush.
            MediumOp::Flush { .. } => cx.done(id, Ok(MediumOutcome::Done)),
            MediumOp::PrepareWrite { .. }
            | MediumOp::Write { .. }
            | MediumOp::WriteSame { .. }
            | MediumOp::Unmap { .. }
            | MediumOp::Sanitize { .. } => cx.done(id, Err(MediumError::ReadOnly)),
        }
    }

    fn let_act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        act(&mut *self.0, cx);
    }

    fn inside(&self) -> &dyn Handle {
        &*self.0
    }

    fn inside_mut(&mut self) -> &mut dyn Handle {
        &mut *self.0
    }
}

//! `readonly(A)`: any volume, protected from writes.

use std::io;
use std::sync::Arc;

use ::io::memory::{Buffer, Recall};
use ::io::ring::SendBatch;
use scsi::medium::{MediumError, MediumOp, Outcome, Traits};

use crate::around::Around;
use crate::lease::Lease;
use crate::volume::{Context, CoreContext, Handle, Node, Volume};

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

impl Around for Readonly {
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

impl Handle for ReadonlyHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        match op {
            MediumOp::Read { .. }
            | MediumOp::Buffer { .. }
            | MediumOp::Status { .. }
            | MediumOp::Prefetch { .. } => self.0.submit(cx, id, op),
            // Nothing was written by us, and what others wrote is theirs to flush.
            MediumOp::Flush { .. } => cx.done(id, Ok(Outcome::Done)),
            MediumOp::Lend { .. }
            | MediumOp::Write { .. }
            | MediumOp::WriteSame { .. }
            | MediumOp::Unmap { .. }
            | MediumOp::Sanitize { .. } => cx.done(id, Err(MediumError::ReadOnly)),
        }
    }

    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        node: Node,
        slot: u32,
        result: io::Result<u64>,
        buffer: Option<Buffer>,
    ) {
        self.0.completed(cx, node, slot, result, buffer);
    }

    fn received(&mut self, cx: &mut Context<'_>, node: Node, slot: u32, octets: io::Result<&[u8]>) {
        self.0.received(cx, node, slot, octets);
    }

    fn sent(
        &mut self,
        cx: &mut Context<'_>,
        node: Node,
        slot: u32,
        batch: Box<SendBatch>,
        result: io::Result<()>,
    ) {
        self.0.sent(cx, node, slot, batch, result);
    }

    fn recall(&mut self) -> Option<Recall> {
        self.0.recall()
    }

    fn expire(&mut self, cx: &mut Context<'_>) {
        self.0.expire(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.0.leave(cx);
    }

    fn has_left(&self) -> bool {
        self.0.has_left()
    }
}

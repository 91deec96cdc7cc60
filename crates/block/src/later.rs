//! Operations that begin later, in the order in which they came.

use std::collections::VecDeque;
use std::io;

use ::io::memory::{Buffer, Recall};
use ::io::ring::SendBatch;
use scsi::medium::{MediumOp, Now};

use crate::lease::Lease;
use crate::volume::{Context, Handle, Node};

/// Says when operations begin.
pub(crate) trait When {
    /// When an operation that came now begins; never before what was told last. `None`: at once,
    /// past those that wait.
    fn begin(&self, now: Now, op: &MediumOp<Lease>) -> Option<Now>;
}

/// A handle whose operations wait before they begin.
pub(crate) struct LaterHandle<W> {
    inside: Box<dyn Handle>,
    when: W,
    queue: VecDeque<(Now, u64, MediumOp<Lease>)>,
}

impl<W: When> LaterHandle<W> {
    pub(crate) fn new(inside: Box<dyn Handle>, when: W) -> Self {
        let queue = VecDeque::new();
        Self {
            inside,
            when,
            queue,
        }
    }

    fn begin_due(&mut self, cx: &mut Context<'_>) {
        while let Some((_, id, op)) = self.queue.pop_front_if(|(at, ..)| *at <= cx.now) {
            self.inside.submit(cx, id, op);
        }
        if let Some((at, ..)) = self.queue.front() {
            cx.call_at(*at);
        }
    }
}

impl<W: When> Handle for LaterHandle<W> {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        let Some(at) = self.when.begin(cx.now, &op) else {
            return self.inside.submit(cx, id, op);
        };
        self.queue.push_back((at, id, op));
        self.begin_due(cx);
    }

    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        node: Node,
        slot: u32,
        result: io::Result<u64>,
        buffer: Option<Buffer>,
    ) {
        self.inside.completed(cx, node, slot, result, buffer);
    }

    fn received(&mut self, cx: &mut Context<'_>, node: Node, slot: u32, octets: io::Result<&[u8]>) {
        self.inside.received(cx, node, slot, octets);
    }

    fn sent(
        &mut self,
        cx: &mut Context<'_>,
        node: Node,
        slot: u32,
        batch: Box<SendBatch>,
        result: io::Result<()>,
    ) {
        self.inside.sent(cx, node, slot, batch, result);
    }

    fn recall(&mut self) -> Option<Recall> {
        self.inside.recall()
    }

    fn expire(&mut self, cx: &mut Context<'_>) {
        self.inside.expire(cx);
        self.begin_due(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.inside.leave(cx);
    }

    fn has_left(&self) -> bool {
        self.inside.has_left()
    }
}

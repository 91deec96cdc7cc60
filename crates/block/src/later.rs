//! Operations that begin later, in the order in which they came.

use std::collections::VecDeque;

use scsi::medium::{MediumOp, Now};

use crate::around::HandleAround;
use crate::lease::Lease;
use crate::volume::{Context, Handle};

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

impl<W: When> HandleAround for LaterHandle<W> {
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        let Some(at) = self.when.begin(cx.now, &op) else {
            return self.inside.submit(cx, id, op);
        };
        self.queue.push_back((at, id, op));
        self.begin_due(cx);
    }

    fn let_act(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(&mut dyn Handle, &mut Context<'_>),
    ) {
        act(&mut *self.inside, cx);
    }

    fn inside(&self) -> &dyn Handle {
        &*self.inside
    }

    fn inside_mut(&mut self) -> &mut dyn Handle {
        &mut *self.inside
    }

    fn expired(&mut self, cx: &mut Context<'_>) {
        self.begin_due(cx);
    }
}

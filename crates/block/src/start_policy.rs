//! Operations that begin later, in the order in which they came.

use std::collections::VecDeque;
use std::ops::Range;

use scsi::medium::{MediumError, MediumOp, Now};

use crate::filter::FilterHandle;
use crate::lease::BlockLease;
use crate::volume::{Context, Handle};

/// Says when operations begin.
pub(crate) trait StartPolicy {
    /// When an operation that came now begins; never before what was told last. `None`: at once,
    /// past those that wait.
    fn begin(&self, now: Now, op: &MediumOp<BlockLease>) -> Option<Now>;

    /// Takes back what [`Self::begin`] counted for an operation that has not begun. Returns whether
    /// others may begin earlier by that.
    fn give_back(&self, op: &MediumOp<BlockLease>) -> bool {
        let _ = op;
        false
    }
}

/// A handle whose operations wait before they begin.
pub(crate) struct LaterHandle<W> {
    inside: Box<dyn Handle>,
    when: W,
    queue: VecDeque<(Now, u64, MediumOp<BlockLease>)>,
    /// Those in the queue may begin earlier than was said.
    relieved: bool,
}

impl<W: StartPolicy> LaterHandle<W> {
    pub(crate) fn new(inside: Box<dyn Handle>, when: W) -> Self {
        let queue = VecDeque::new();
        Self {
            inside,
            when,
            queue,
            relieved: false,
        }
    }

    /// Says anew when each begins, once for all that were given up together.
    fn begin_earlier(&mut self, now: Now) {
        for (_, _, op) in &self.queue {
            self.when.give_back(op);
        }
        for (at, _, op) in &mut self.queue {
            *at = self.when.begin(now, op).unwrap_or(now);
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

impl<W: StartPolicy> FilterHandle for LaterHandle<W> {
    fn begin(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
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

    fn give_up(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        let waits = |(_, id, _): &(_, u64, _)| ids.contains(id);
        while let Some(at) = self.queue.iter().position(waits)
            && let Some((_, id, op)) = self.queue.remove(at)
        {
            self.relieved |= self.when.give_back(&op);
            cx.done(id, Err(MediumError::Cancelled));
        }
        if self.relieved {
            cx.call_at(cx.now);
        }
    }

    fn expired(&mut self, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.relieved) {
            self.begin_earlier(cx.now);
        }
        self.begin_due(cx);
    }
}

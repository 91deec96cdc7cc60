//! A remote unit as one core uses it: what the application client wants goes to the link, and what
//! that tells to the client.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use ::io::memory::Pool;
use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle, HandleEvent, HandleId};
use scsi::client::{Client, ClientOutput, CommandStatus, Facts, UnitRequest};
use scsi::medium::{Extent, MediumError, MediumOp, Now};
use scsi::wire::sense::Status;

use super::SharedUnit;
use super::indeterminate_writes::IndeterminateWrites;
use super::link::Link;
use super::reconnect::Backoff;

/// A remote unit, its client, and the link between them.
pub(super) struct RemoteHandle<L> {
    pub(super) shared: Arc<SharedUnit>,
    /// Of the session, among all with the unit.
    pub(super) number: u16,
    pub(super) link: L,
    pub(super) client: Client<BlockLease>,
    pool: Pool,
    /// Commands for which the session has no room now.
    pub(super) waiting: VecDeque<UnitRequest<BlockLease>>,
    /// Commands of the session before may still have an effect, if it was not ended by this one.
    pub(super) unaccounted: bool,
    /// Where the last nexus was.
    pub(super) group: usize,
    /// What was written there or in another place by commands that were given up.
    pub(super) doubts: IndeterminateWrites,
    pub(super) backoff: Backoff,
    /// Its last session, or attempt at one, has failed.
    pub(super) away: bool,
    /// It is to come back, even with nothing to do.
    pub(super) wanted: bool,
    /// What was said last of why it is away.
    pub(super) why: Option<String>,
    /// Nothing more will be asked for.
    pub(super) leaving: bool,
}

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Duration = Duration::from_millis(1);

impl<L: Link> RemoteHandle<L> {
    /// The session of a `place` among those from `number` on.
    pub(super) fn new(
        shared: &Arc<SharedUnit>,
        facts: &Facts,
        (number, place): (u16, u16),
        core: &CoreContext,
        link: L,
    ) -> Self {
        let cache = Arc::clone(&shared.caches[usize::from(place)]);
        Self {
            shared: Arc::clone(shared),
            number: number.wrapping_add(place),
            link,
            client: Client::of(facts.clone(), cache)
                .wishing(shared.settings.wishes)
                .counting(Arc::clone(&shared.retries)),
            pool: core.pool.clone(),
            waiting: VecDeque::new(),
            unaccounted: false,
            group: 0,
            doubts: IndeterminateWrites::default(),
            backoff: Backoff::default(),
            away: false,
            wanted: false,
            why: None,
            leaving: false,
        }
    }

    /// Whether an operation would go where another one may still land. What is in doubt by this
    /// session alone waits for it to come back.
    fn is_in_doubt(&self, op: &MediumOp<BlockLease>) -> bool {
        let there = self.link.is_logged_in();
        let matters = |session| there || session != self.number;
        let doubts = &self.shared.doubts;
        blocks(op).is_some_and(|extent| doubts.touch(extent, matters))
    }

    /// Whether a flush would make its writes stable, or has to tell that some were lost.
    pub(super) fn owes_flush(&self) -> bool {
        self.client.owes_flush()
    }

    /// Carries on as far as it goes, and says when to be called again.
    fn drive(&mut self, cx: &mut Context<'_>) {
        self.drain(cx);
        while !self.execute(cx.now) {
            self.drain(cx);
        }
        self.link.push(cx);
        self.connect(cx);
        let deadlines = [
            self.client.next_deadline(),
            self.link.next_deadline(),
            self.backoff.next,
            self.backoff.limit(self.shared.settings.replacement),
        ];
        if let Some(at) = deadlines.into_iter().flatten().min() {
            cx.call_at(at.max(cx.now + SHORTEST));
        }
    }

    /// Carries what link and client tell to each other, until there is nothing more.
    fn drain(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(event) = self.link.poll(cx) {
                self.link_event(cx.now, event);
            } else if let Some(output) = self.client.poll() {
                self.client_output(cx, output);
            } else {
                return;
            }
        }
    }

    /// Gives the link commands as long as it has room. Returns whether it took each of them: one
    /// that it did not is repeated after a while.
    fn execute(&mut self, now: Now) -> bool {
        if !self.link.is_logged_in() {
            self.waiting.clear();
        }
        while self.link.has_room()
            && let Some(request) = self.waiting.pop_front()
        {
            let id = request.id;
            if !self.link.execute(now, self.shared.settings.lun, request) {
                let busy = CommandStatus::bare(Status::Busy);
                self.client.answered(now, id, &busy);
                return false;
            }
            self.client.sent(id);
        }
        true
    }

    fn client_output(&mut self, cx: &mut Context<'_>, output: ClientOutput<BlockLease>) {
        let place = self.link.name();
        match output {
            ClientOutput::Execute(request) => self.waiting.push_back(request),
            ClientOutput::Done(id, result) => cx.done(id, result),
            ClientOutput::Ready => self.is_back(),
            ClientOutput::Changed => {
                let facts = self.client.facts();
                facts.iter().for_each(|facts| self.shared.is_now(facts));
            }
            ClientOutput::CacheLost => tracing::error!(
                "{place}: the target was reset with writes in its cache that had not been flushed: \
                 the next flush fails"
            ),
            ClientOutput::Conflict => tracing::error!(
                "{place}: RESERVATION CONFLICT: another initiator has reserved the unit, and \
                 commands that the reservation excludes fail; register with a key of its \
                 registrants, as in ?key=1f00d, or release the reservation there"
            ),
            ClientOutput::Fenced => tracing::error!(
                "{place}: another initiator removed this one's registration (fencing): commands \
                 that the reservation excludes fail until the volume is opened again"
            ),
            ClientOutput::Departed => {
                self.link.log_out(cx.now);
            }
            ClientOutput::Refused(refusal) => {
                tracing::error!("{place}: the volume is gone: {refusal}");
                self.wanted = false;
            }
            ClientOutput::NotNow(refusal) => {
                tracing::warn!("{place}: {refusal}");
                self.link.give_up(cx.now);
            }
        }
    }
}

impl<L: Link> Handle for RemoteHandle<L> {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        if self.is_in_doubt(&op) {
            return cx.done(id, Err(MediumError::Gone));
        }
        let pool = &self.pool;
        let mut memory = |len| pool.buffer(len).map(BlockLease::from);
        self.client.submit(id, op, &mut memory);
        // What comes together is sent together.
        cx.call_at(cx.now);
    }

    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        self.client.cancel(ids);
        let client = &self.client;
        self.waiting.retain(|request| client.wants(request.id));
        self.drive(cx);
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        if let Err(cause) = self.link.event(cx, slot, event) {
            self.not_connected(cx.now, &cause);
        }
        self.drive(cx);
    }

    fn resume(&mut self, cx: &mut Context<'_>) {
        self.client.expire(cx.now);
        self.link.expire(cx.now);
        self.check_limit(cx.now);
        self.drive(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.leaving = true;
        // A session that rests is taken up before it can log out.
        self.drain(cx);
        if !self.client.depart() && !self.link.log_out(cx.now) {
            self.link.close(cx);
        }
        self.drive(cx);
    }

    fn has_left(&self) -> bool {
        self.link.is_down()
    }
}

/// The blocks whose content matters to an operation.
pub(super) fn blocks(op: &MediumOp<BlockLease>) -> Option<Extent> {
    match op {
        MediumOp::Read { extent, .. }
        | MediumOp::Status { extent }
        | MediumOp::Write { extent, .. }
        | MediumOp::WriteSame { extent, .. }
        | MediumOp::Unmap { extent, .. }
        | MediumOp::Sanitize { extent, .. } => Some(*extent),
        MediumOp::Flush { .. }
        | MediumOp::PrepareWrite { .. }
        | MediumOp::Buffer { .. }
        | MediumOp::Prefetch { .. } => None,
    }
}

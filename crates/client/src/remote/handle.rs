//! A remote unit as one core uses it.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use block::lease::BlockLease;
use block::volume::{Context, CoreContext, Handle, HandleEvent, HandleId};
use scsi::client::{Client, Facts};
use scsi::medium::{Extent, MediumError, MediumOp, Now};

use super::backoff::{Backoff, REDIRECTIONS};
use super::link::LinkEnd;
use super::remote_unit::{RemoteUnit, UnitEvent};
use super::{SharedUnit, lock};

/// A remote unit, its client, and the connection between them.
pub(super) struct RemoteHandle {
    shared: Arc<SharedUnit>,
    /// Of the session, among all with the unit.
    number: u16,
    pub(super) machine: RemoteUnit,
    attempts: Backoff,
    /// Its last session, or attempt at one, has failed.
    away: bool,
    /// It is to come back, even with nothing to do.
    wanted: bool,
    /// What was said last of why it is away.
    why: Option<String>,
    /// Nothing more will be asked for.
    leaving: bool,
}

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Duration = Duration::from_millis(1);

impl RemoteHandle {
    /// The session of a `place` among those from `number` on.
    pub(super) fn new(
        shared: Arc<SharedUnit>,
        facts: &Facts,
        (number, place): (u16, usize),
        core: &CoreContext,
    ) -> Self {
        let client = Client::of(facts.clone(), Arc::clone(&shared.caches[place]));
        let number = number.wrapping_add(place as u16);
        let mut machine = RemoteUnit::new(&shared.settings, client, number, core);
        machine.link.go_to(&shared.found);
        if let Some(resting) = (place == 0).then(|| lock(&shared.resting).take()).flatten() {
            machine.link.take_up(resting);
        }
        Self {
            shared,
            number,
            machine,
            attempts: Backoff::default(),
            away: false,
            wanted: false,
            why: None,
            leaving: false,
        }
    }

    /// Whether it was lost, or could not be made, and has not come back.
    pub(super) fn is_away(&self) -> bool {
        self.away
    }

    /// Comes back if it is away, and can.
    pub(super) fn want(&mut self, cx: &mut Context<'_>) {
        self.wanted = self.away && !self.machine.client.is_refused();
        cx.call_at(cx.now);
    }

    /// Whether it has been told to come back, and may still do so.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether blocks are in doubt by it.
    pub(super) fn has_doubts(&self) -> bool {
        !self.machine.doubts.is_empty()
    }

    /// Tells all cores which blocks are in doubt.
    fn tell_doubts(&self) {
        self.shared.doubts.set(self.number, &self.machine.doubts);
    }

    /// Whether an operation would go where another one may still land. What is in doubt by this
    /// session alone waits for it to come back.
    fn is_in_doubt(&self, op: &MediumOp<BlockLease>) -> bool {
        let there = self.machine.link.is_logged_in();
        let matters = |session| there || session != self.number;
        let doubts = &self.shared.doubts;
        blocks(op).is_some_and(|extent| doubts.touch(extent, matters))
    }

    /// Whether a flush would make its writes stable, or has to tell that some were lost.
    pub(super) fn owes_flush(&self) -> bool {
        self.machine.client.owes_flush()
    }

    /// Hears what happened, and sends nothing yet.
    fn drain_events(&mut self, cx: &mut Context<'_>) {
        while let Some(told) = self.machine.drain(cx) {
            self.unit_event(cx.now, told);
        }
    }

    /// Carries on as far as it goes, and says when to be called again.
    fn drive(&mut self, cx: &mut Context<'_>) {
        while let Some(told) = self.machine.drive(cx) {
            self.unit_event(cx.now, told);
        }
        self.connect(cx);
        let deadlines = [
            self.machine.next_deadline(),
            self.attempts.next,
            self.attempts.limit(self.shared.settings.replacement),
        ];
        if let Some(at) = deadlines.into_iter().flatten().min() {
            cx.call_at(at.max(cx.now + SHORTEST));
        }
    }

    fn unit_event(&mut self, now: Now, told: UnitEvent) {
        let place = self.machine.link.name();
        match told {
            UnitEvent::LoggedIn => self.tell_doubts(),
            UnitEvent::Ready => {
                self.attempts = Backoff::default();
                (self.away, self.wanted) = (false, false);
                if self.why.take().is_some() {
                    tracing::info!("{place}: connected again");
                }
            }
            UnitEvent::Changed => {
                let facts = self.machine.client.facts();
                facts
                    .into_iter()
                    .for_each(|facts| self.shared.is_now(facts));
            }
            UnitEvent::CacheLost => tracing::error!(
                "{place}: the target was reset with writes in its cache that had not been flushed: \
                 the next flush fails"
            ),
            UnitEvent::Conflict => tracing::error!(
                "{place}: RESERVATION CONFLICT: another initiator has reserved the unit, and \
                 commands that the reservation excludes fail; register with a key of its \
                 registrants, as in ?key=1f00d, or release the reservation there"
            ),
            UnitEvent::Fenced => tracing::error!(
                "{place}: another initiator removed this one's registration (fencing): commands \
                 that the reservation excludes fail until the volume is opened again"
            ),
            UnitEvent::Departed => {
                self.machine.link.log_out(now);
            }
            UnitEvent::Refused(refusal) => {
                self.wanted = false;
                tracing::error!("{place}: the volume is gone: {refusal}");
            }
            UnitEvent::Moved => {
                self.tell_doubts();
                tracing::error!(
                    "{place}: the target moved to another portal group while commands were in \
                     flight: those commands fail with unknown outcome; I/O to the same blocks \
                     fails until the target returns to the first group, or the volume is opened \
                     again"
                );
            }
            UnitEvent::Ended(_) if self.leaving => {}
            UnitEvent::Ended(end) => self.ended(now, &end),
        }
    }

    /// Says it once, however often it is tried until the cause is another one. Where it only comes
    /// back for what is in doubt, that was told, and may go on for ever.
    fn warn(&mut self, line: String) {
        let place = self.machine.link.name();
        let was_told = self.why.as_ref() == Some(&line);
        if was_told || self.has_doubts() && self.machine.client.is_idle() {
            tracing::debug!("{place}: {line}");
        } else {
            tracing::warn!("{place}: {line}");
        }
        self.why = Some(line);
    }

    fn ended(&mut self, now: Now, end: &LinkEnd) {
        self.tell_doubts();
        self.away = true;
        let wait = self.machine.link.wait_after(end);
        self.warn(format!("{end}; connecting again"));
        let since = *self.attempts.since.get_or_insert(now);
        if self.machine.link.follow(end) && self.attempts.redirections < REDIRECTIONS {
            self.attempts = Backoff {
                since: Some(since),
                redirections: self.attempts.redirections + 1,
                ..Backoff::default()
            };
        } else {
            self.attempts.redirections = 0;
            let outside = self.shared.settings.outside;
            self.attempts.fail(now, wait, outside);
        }
    }

    /// Connects if an operation needs it, the backoff has passed, and no attempt is in progress.
    fn connect(&mut self, cx: &mut Context<'_>) {
        if !self.machine.link.is_down() {
            return;
        }
        let needed = self.wanted
            || self.machine.link.is_resting()
            || !self.machine.client.is_idle()
            || self.has_doubts();
        if !needed || self.leaving {
            self.attempts = Backoff::default();
            return;
        }
        self.attempts.since.get_or_insert(cx.now);
        if self.attempts.next.is_none_or(|at| at <= cx.now) {
            self.attempts.next = None;
            self.machine.link.connect(cx);
            if self.machine.link.is_up() {
                // A session that was taken up has something to tell.
                cx.call_at(cx.now);
            }
        }
    }

    /// It has taken too long.
    fn check_limit(&mut self, now: Now) {
        let limit = self.attempts.limit(self.shared.settings.replacement);
        if limit.is_some_and(|at| at <= now) {
            let place = self.machine.link.name();
            if !self.machine.client.is_idle() {
                tracing::error!("{place}: no session within ?replacement=; waiting commands fail");
            }
            self.machine.abandon();
            self.tell_doubts();
            self.attempts = if self.has_doubts() {
                Backoff {
                    since: None,
                    ..std::mem::take(&mut self.attempts)
                }
            } else {
                Backoff::default()
            };
            (self.away, self.wanted) = (true, false);
            // It may be there, but not have come far enough to be of use.
            self.machine.link.give_up(now);
        }
    }

    /// What [`Link::connect`] gave to the ring has ended.
    fn connected(&mut self, cx: &mut Context<'_>, slot: u32, result: io::Result<u64>) {
        if let Err(cause) = self.machine.link.connected(cx, slot, result) {
            self.warn(cause.to_string());
            self.machine.link.go_home();
            self.away = true;
            let outside = self.shared.settings.outside;
            self.attempts.fail(cx.now, Duration::ZERO, outside);
        }
    }
}

impl Handle for RemoteHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        if self.is_in_doubt(&op) {
            return cx.done(id, Err(MediumError::Gone));
        }
        let pool = &self.machine.pool;
        let mut memory = |len| pool.buffer(len).map(BlockLease::from);
        self.machine.client.submit(id, op, &mut memory);
        // What comes together is sent together.
        cx.call_at(cx.now);
    }

    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        self.machine.cancel(ids);
        self.drive(cx);
    }

    fn event(&mut self, cx: &mut Context<'_>, _: HandleId, slot: u32, event: HandleEvent<'_>) {
        match event {
            HandleEvent::File { result, .. } => self.connected(cx, slot, result),
            HandleEvent::Received(bytes) => {
                let mut rest = self.machine.link.received(cx.now, slot, &bytes);
                while !rest.is_empty() {
                    self.drain_events(cx);
                    rest = self.machine.link.continue_receive(cx.now, rest);
                }
            }
            HandleEvent::Sent { batch, result } => self.machine.link.sent(slot, batch, &result),
            HandleEvent::Ready => self.machine.link.ready(cx, slot),
        }
        self.drive(cx);
    }

    fn resume(&mut self, cx: &mut Context<'_>) {
        self.machine.expire(cx.now);
        self.check_limit(cx.now);
        self.drive(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.leaving = true;
        if !self.machine.client.depart() && !self.machine.link.log_out(cx.now) {
            self.machine.link.close(cx);
        }
        self.drive(cx);
    }

    fn has_left(&self) -> bool {
        self.machine.link.is_down()
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

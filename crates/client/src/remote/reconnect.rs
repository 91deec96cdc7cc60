//! What a handle does when a session comes, ends, or does not come.
//!
//! Reconnect policy: exponential backoff with jitter, for as long as something waits for a session.

use std::time::Duration;

use block::volume::Context;
use scsi::client::{CommandStatus, Fate};
use scsi::medium::Now;
use scsi::wire::sense::Status;

use super::handle::RemoteHandle;
use super::link::{Link, LinkEnd, LinkEvent};
use super::{RemoteError, SessionEnvironment};

/// When to try again.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Since when there is no session.
    since: Option<Now>,
    /// Not before this.
    pub(super) next: Option<Now>,
    failed: u32,
    /// How often in turn the target has sent us elsewhere.
    redirections: u8,
}

/// How often a target may send us elsewhere in turn.
pub(super) const REDIRECTIONS: u8 = 4;

/// The pause after the first attempt that failed; it doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(4);

impl Backoff {
    /// An attempt or its session has failed, and the target asks for no new one before `wait`.
    fn fail(&mut self, now: Now, wait: Duration, outside: SessionEnvironment) {
        self.since.get_or_insert(now);
        let pause = PAUSE.saturating_mul(1 << self.failed.min(16)).min(LONGEST);
        self.failed += 1;
        let mut chance = [0; 1];
        // Without randomness the pause only has less jitter.
        let _ = (outside.random)(&mut chance);
        let pause = pause.mul_f64(0.5 + f64::from(chance[0]) / 512.0);
        self.next = Some(now + pause.max(wait));
    }

    /// When commands that wait for a session fail.
    pub(super) fn limit(&self, replacement: Duration) -> Option<Now> {
        self.since.map(|since| since.saturating_add(replacement))
    }
}

impl<L: Link> RemoteHandle<L> {
    /// Whether it was lost, or could not be made, and has not come back.
    pub(super) fn is_away(&self) -> bool {
        self.away
    }

    /// Comes back if it is away, and can.
    pub(super) fn want(&mut self, cx: &mut Context<'_>) {
        self.wanted = self.away && !self.client.is_refused();
        cx.call_at(cx.now);
    }

    /// Whether it has been told to come back, and may still do so.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether blocks are in doubt by it.
    pub(super) fn has_doubts(&self) -> bool {
        !self.doubts.is_empty()
    }

    /// Tells all cores which blocks are in doubt.
    fn tell_doubts(&self) {
        self.shared.doubts.set(self.number, &self.doubts);
    }

    pub(super) fn link_event(&mut self, now: Now, event: LinkEvent) {
        match event {
            LinkEvent::LoggedIn { same } => self.logged_in(same),
            LinkEvent::Answered(done) => self.client.answered(now, done.id as u32, &done.answer()),
            LinkEvent::Undone(id) => {
                let aborted = CommandStatus::bare(Status::TaskAborted);
                self.client.answered(now, id, &aborted);
            }
            LinkEvent::Late(id) => self.client.late(now, id),
            LinkEvent::Unanswered { id, fate, open } => {
                self.client.unanswered(id, fate);
                self.unaccounted |= open;
            }
            LinkEvent::Stray { id, open } => {
                self.client.unanswered(id, Fate::Unknown);
                self.unaccounted |= open;
                self.link.give_up(now);
            }
            LinkEvent::Targets(_) => {}
            LinkEvent::Ended { end, wait } => self.ended(now, &end, wait),
        }
    }

    /// Commands of the old nexus may be given out again once it is dead. It is if this login was to
    /// the same portal group, as that reinstates the session (RFC 7143 §6.3.5). If it was to
    /// another one, nothing that we could ask for ends what is on its way to the first: what it was
    /// is told as failed, and not done again here. Nor is what waits for the same blocks.
    fn logged_in(&mut self, same: bool) {
        if self.unaccounted && !same {
            self.abandon();
            tracing::error!(
                "{}: the target moved to another portal group while commands were in flight: those \
                 commands fail with unknown outcome; I/O to the same blocks fails until the target \
                 returns to the first group, or the volume is opened again",
                self.link.name()
            );
        }
        self.unaccounted = false;
        self.group = self.link.group();
        self.doubts.trust(self.group);
        self.client.bar(|extent| self.doubts.touch(extent));
        self.client.begin();
        self.tell_doubts();
    }

    /// The session can be used.
    pub(super) fn is_back(&mut self) {
        self.backoff = Backoff::default();
        (self.away, self.wanted) = (false, false);
        if self.why.take().is_some() {
            tracing::info!("{}: connected again", self.link.name());
        }
    }

    fn ended(&mut self, now: Now, end: &LinkEnd, wait: Duration) {
        self.waiting.clear();
        self.unaccounted |= end.leaves_commands();
        if end.is_stuck() {
            self.client.stuck();
        } else {
            self.client.lost();
        }
        self.doubt();
        if self.leaving {
            return;
        }
        self.tell_doubts();
        self.away = true;
        self.warn(format!("{end}; connecting again"));
        let since = *self.backoff.since.get_or_insert(now);
        if end.is_redirection() && self.backoff.redirections < REDIRECTIONS {
            self.backoff = Backoff {
                since: Some(since),
                redirections: self.backoff.redirections + 1,
                ..Backoff::default()
            };
        } else {
            self.backoff.redirections = 0;
            let outside = self.shared.settings.outside;
            self.backoff.fail(now, wait, outside);
        }
    }

    /// An attempt has failed before there was a session.
    pub(super) fn not_connected(&mut self, now: Now, cause: &RemoteError) {
        self.warn(cause.to_string());
        self.away = true;
        let outside = self.shared.settings.outside;
        self.backoff.fail(now, Duration::ZERO, outside);
    }

    /// Says it once, however often it is tried until the cause is another one. Where it only comes
    /// back for what is in doubt, that was told, and may go on for ever.
    fn warn(&mut self, line: String) {
        let place = self.link.name();
        let was_told = self.why.as_ref() == Some(&line);
        if was_told || self.has_doubts() && self.client.is_idle() {
            tracing::debug!("{place}: {line}");
        } else {
            tracing::warn!("{place}: {line}");
        }
        self.why = Some(line);
    }

    /// Connects if an operation needs it, the backoff has passed, and no attempt is in progress.
    pub(super) fn connect(&mut self, cx: &mut Context<'_>) {
        if !self.link.is_down() {
            return;
        }
        let needed = self.wanted || !self.client.is_idle() || self.has_doubts();
        if !needed || self.leaving {
            self.backoff = Backoff::default();
            return;
        }
        self.backoff.since.get_or_insert(cx.now);
        if self.backoff.next.is_none_or(|at| at <= cx.now) {
            self.backoff.next = None;
            self.link.connect(cx);
        }
    }

    /// It has taken too long.
    pub(super) fn check_limit(&mut self, now: Now) {
        let limit = self.backoff.limit(self.shared.settings.replacement);
        if limit.is_none_or(|at| at > now) {
            return;
        }
        let place = self.link.name();
        if !self.client.is_idle() {
            tracing::error!("{place}: no session within ?replacement=; waiting commands fail");
        }
        self.abandon();
        self.tell_doubts();
        let backoff = std::mem::take(&mut self.backoff);
        if self.has_doubts() {
            self.backoff = Backoff {
                since: None,
                ..backoff
            };
        }
        (self.away, self.wanted) = (true, false);
        // It may be there, but not have come far enough to be of use.
        self.link.give_up(now);
    }

    /// Ends all operations; there is nothing then that would be done again.
    fn abandon(&mut self) {
        self.client.abandon();
        self.doubt();
        self.unaccounted = false;
    }

    /// Takes note of writes that were given up, and may be on their way.
    fn doubt(&mut self) {
        let given_up = self.client.take_doubts();
        if self.unaccounted {
            self.doubts.add(self.group, given_up);
        }
    }
}

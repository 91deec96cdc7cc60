//! A remote unit as one core uses it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ::io::memory::{Buffer, Pool};
use ::io::ring::SendBatch;
use block::lease::Lease;
use block::volume::{Context, CoreContext, Handle, Node};
use iscsi::initiator::error::End;
use iscsi::initiator::{
    Command, Data, Done, Event, Failed, Fate, Initiator, Notice, Refusal as NotTaken, Why,
};
use iscsi::wire::scsi_response::Residual;
use scsi::client::{self, Answer, Client, Facts, Output, Refusal, Request};
use scsi::medium::{MediumOp, Now};
use scsi::task::Attribute;
use scsi::wire::lun::Lun;
use scsi::wire::status::Status;

use super::link::Link;
use super::{Outside, Settings, Shared};

/// A remote unit, its client, and the connection between them.
pub(super) struct RemoteHandle {
    shared: Arc<Shared>,
    pub(super) machine: Machine,
    attempts: Attempts,
    /// Its last session, or attempt at one, has failed.
    away: bool,
    /// Nobody will ask for anything any more.
    leaving: bool,
}

/// Client and connection, without what decides when to connect.
pub(super) struct Machine {
    lun: Lun,
    pub(super) client: Client<Lease>,
    pub(super) link: Link,
    pool: Pool,
    /// Commands for which the session has no room now.
    waiting: VecDeque<Request<Lease>>,
    /// Commands of the session before may still have an effect, if it was not ended by this one.
    unaccounted: bool,
}

/// What a machine tells whoever decides.
#[derive(Debug)]
pub(super) enum Told {
    Ready,
    Changed,
    CacheLost,
    Refused(Refusal),
    /// What was under way on another portal was given up.
    Moved,
    Ended(End),
}

/// When to try again.
#[derive(Debug, Default)]
struct Attempts {
    /// Since when there is no session.
    since: Option<Now>,
    /// Not before this.
    next: Option<Now>,
    failed: u32,
    /// How often in turn the target has sent us elsewhere.
    redirections: u8,
}

/// A deadline in the past is looked at again after this long, so that none can spin.
const SHORTEST: Duration = Duration::from_millis(1);

/// The pause after the first attempt that failed; it doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_millis(50);
/// How often a target may send us elsewhere in turn.
pub(super) const REDIRECTIONS: u8 = 4;
const LONGEST: Duration = Duration::from_secs(4);

impl RemoteHandle {
    /// The session of a `place` among those from `number` on.
    pub(super) fn new(
        shared: Arc<Shared>,
        facts: &Facts,
        (number, place): (u16, usize),
        core: &CoreContext,
    ) -> Self {
        let client = Client::of(facts.clone(), Arc::clone(&shared.caches[place]));
        let number = number.wrapping_add(place as u16);
        let mut machine = Machine::new(&shared.settings, client, number, core);
        (machine.link.host, machine.link.port) = shared.found.clone();
        Self {
            shared,
            machine,
            attempts: Attempts::default(),
            away: false,
            leaving: false,
        }
    }

    /// Whether it was lost, or could not be made, and has not come back.
    pub(super) fn is_away(&self) -> bool {
        self.away
    }

    /// Whether it is logged in, so that every nexus of before is dead.
    pub(super) fn has_nexus(&self) -> bool {
        self.machine.link.is_logged_in()
    }

    /// Whether a flush would make its writes stable, or has to tell that some were lost.
    pub(super) fn owes_flush(&self) -> bool {
        self.machine.client.owes_flush()
    }

    /// Hears what happened, and sends nothing yet.
    fn settle(&mut self, cx: &mut Context<'_>) {
        while let Some(told) = self.machine.settle(cx) {
            self.told(cx.now, told);
        }
    }

    /// Carries on as far as it goes, and says when to be called again.
    fn drive(&mut self, cx: &mut Context<'_>) {
        while let Some(told) = self.machine.drive(cx) {
            self.told(cx.now, told);
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

    fn told(&mut self, now: Now, told: Told) {
        let place = &self.shared.settings.host;
        match told {
            Told::Ready => {
                self.attempts = Attempts::default();
                self.away = false;
            }
            Told::Changed => self.changed(),
            Told::CacheLost => tracing::error!(
                "{place}: the target was reset with writes in its cache that had not been \
                 flushed; the next flush fails"
            ),
            Told::Refused(refusal) => tracing::error!("{place}: the volume is gone: {refusal}"),
            Told::Moved => tracing::error!(
                "{place}: the target is in another portal group now, and commands to the one \
                 before had no answer: what waits fails, and its outcome is unknown"
            ),
            Told::Ended(_) if self.leaving => {}
            Told::Ended(end) => self.ended(now, &end),
        }
    }

    fn changed(&self) {
        if let Some(facts) = self.machine.client.facts() {
            let mut now = self
                .shared
                .now
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            now.clone_from(&facts.traits);
        }
    }

    fn ended(&mut self, now: Now, end: &End) {
        self.away = true;
        tracing::warn!("{}: {end}; connecting again", self.shared.settings.host);
        let since = *self.attempts.since.get_or_insert(now);
        if self.machine.link.follow(end) && self.attempts.redirections < REDIRECTIONS {
            self.attempts = Attempts {
                since: Some(since),
                redirections: self.attempts.redirections + 1,
                ..Attempts::default()
            };
        } else {
            self.attempts.redirections = 0;
            self.attempts.fail(now, self.shared.settings.outside);
        }
    }

    /// Connects if somebody needs it, it is time, and nobody does it already.
    fn connect(&mut self, cx: &mut Context<'_>) {
        if !self.machine.link.is_down() {
            return;
        }
        if self.machine.client.is_idle() || self.leaving {
            self.attempts = Attempts::default();
            return;
        }
        self.attempts.since.get_or_insert(cx.now);
        if self.attempts.next.is_none_or(|at| at <= cx.now) {
            self.attempts.next = None;
            self.machine.link.connect(cx);
        }
    }

    /// It has taken too long.
    fn check_limit(&mut self, now: Now) {
        let limit = self.attempts.limit(self.shared.settings.replacement);
        if limit.is_some_and(|at| at <= now) {
            let place = &self.shared.settings.host;
            tracing::error!("{place}: no session in time; what waits for it fails");
            self.machine.abandon();
            self.attempts = Attempts::default();
            self.away = true;
            // It may be there, but not have come far enough to be of use.
            let _ = self.machine.link.session().map(Initiator::give_up);
        }
    }
}

impl Machine {
    pub(super) fn new(
        settings: &Settings,
        client: Client<Lease>,
        number: u16,
        core: &CoreContext,
    ) -> Self {
        Self {
            lun: settings.lun,
            client,
            link: Link::new(core.node(), settings, number),
            pool: core.pool.clone(),
            waiting: VecDeque::new(),
            unaccounted: false,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        let deadlines = [self.client.next_deadline(), self.link.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    pub(super) fn expire(&mut self, now: Now) {
        self.client.expire(now);
        if let Some(session) = self.link.session()
            && session.next_deadline().is_some_and(|at| at <= now)
        {
            session.expire(now);
        }
    }

    /// Carries outputs of each to the other, until there is none or something to tell.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> Option<Told> {
        if let Some(told) = self.settle(cx) {
            return Some(told);
        }
        self.execute(cx.now);
        self.link.push(cx);
        None
    }

    fn settle(&mut self, cx: &mut Context<'_>) -> Option<Told> {
        loop {
            if let Some(event) = self.link.poll(cx) {
                if let Some(told) = self.event(cx.now, event) {
                    return Some(told);
                }
            } else if let Some(output) = self.client.poll() {
                match output {
                    Output::Execute(request) => self.waiting.push_back(request),
                    Output::Done(id, result) => cx.done(id, result),
                    Output::Ready => return Some(Told::Ready),
                    Output::Changed => return Some(Told::Changed),
                    Output::CacheLost => return Some(Told::CacheLost),
                    Output::Refused(refusal) => return Some(Told::Refused(refusal)),
                    Output::NotNow(refusal) => self.not_now(refusal),
                }
            } else {
                return None;
            }
        }
    }

    /// Gives the session commands as long as it takes them.
    fn execute(&mut self, now: Now) {
        let Some(session) = self.link.session() else {
            self.waiting.clear();
            return;
        };
        while session.room() > 0
            && let Some(request) = self.waiting.pop_front()
        {
            let command = Command {
                id: u64::from(request.id),
                lun: self.lun,
                cdb: request.cdb,
                attribute: Attribute::Simple,
                data: match request.data {
                    client::Data::None => Data::None,
                    client::Data::In(into) => Data::In { into },
                    client::Data::Out(from) => Data::Out { from },
                },
                deadline: None,
            };
            // What is refused now is over with the session, and asked for again on the next.
            if session.execute(now, command).is_err() {
                return;
            }
        }
    }

    fn event(&mut self, now: Now, event: Event<Lease>) -> Option<Told> {
        match event {
            Event::LoggedIn => return self.logged_in(),
            Event::Done(done) => self.done(now, &done),
            Event::Failed(failed) => self.failed(now, &failed),
            Event::Ended(end) => {
                self.waiting.clear();
                match end {
                    End::Stuck => self.client.stuck(),
                    _ => self.client.lost(),
                }
                return Some(Told::Ended(end));
            }
            Event::Notice(Notice::LogoutWanted(_)) => {
                // Refused only when it is leaving already.
                let _ = self.link.session().map(|session| session.logout(now));
            }
            Event::Managed { .. }
            | Event::Targets(_)
            | Event::TargetsRefused(_)
            | Event::Notice(_) => {}
        }
        None
    }

    /// Commands of the old nexus may be given out again once it is dead. It is if this login was to
    /// the same portal group, as that reinstates the session (RFC 7143 §6.3.5). If it was to
    /// another one, nothing that we could ask for ends what is on its way to the first: what it was
    /// is told as failed, and not done again here.
    fn logged_in(&mut self) -> Option<Told> {
        let same = self.link.reinstates();
        let moved = std::mem::take(&mut self.unaccounted) && !same;
        if moved {
            self.abandon();
        }
        self.client.begin();
        moved.then_some(Told::Moved)
    }

    /// Ends all operations; there is nothing then that would be done again.
    fn abandon(&mut self) {
        self.client.abandon();
        self.unaccounted = false;
    }

    /// The unit cannot be used, but may be when it is asked again.
    fn not_now(&mut self, refusal: Refusal) {
        tracing::warn!("{}: {refusal}", self.link.host);
        let _ = self.link.session().map(Initiator::give_up);
    }

    fn done(&mut self, now: Now, done: &Done<Lease>) {
        // What the target says it did not use is not done, though it was sent.
        let unused = match (&done.data, done.residual) {
            (Data::Out { .. }, Residual::Underflow(left)) => left,
            _ => 0,
        };
        let answer = Answer {
            status: done.status,
            sense: done.sense.as_slice(),
            moved: done.moved.saturating_sub(unused) as usize,
        };
        self.client.answered(now, done.id as u32, &answer);
    }

    /// A command has no status. With the session goes everything; else only this one is over, at
    /// the target too, and is asked for again.
    fn failed(&mut self, now: Now, failed: &Failed<Lease>) {
        match failed.why {
            Why::Ended => {
                let reads = matches!(failed.data, Data::In { .. });
                self.unaccounted |= failed.fate == Fate::Unknown && !reads;
                return;
            }
            Why::Late => return self.client.late(now, failed.id as u32),
            _ => {}
        }
        let answer = Answer {
            status: Status::TaskAborted as u8,
            sense: &[],
            moved: 0,
        };
        self.client.answered(now, failed.id as u32, &answer);
    }
}

impl Handle for RemoteHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        let pool = &self.machine.pool;
        let mut memory = |len| pool.buffer(len).map(Lease::from);
        self.machine.client.submit(id, op, &mut memory);
        // What comes together is sent together.
        cx.call_at(cx.now);
    }

    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        _: Node,
        slot: u32,
        result: io::Result<u64>,
        _: Option<Buffer>,
    ) {
        if let Err(cause) = self.machine.link.connected(cx, slot, result) {
            tracing::warn!("{}: {cause}", self.machine.link.host);
            self.machine.link.go_home();
            self.away = true;
            self.attempts.fail(cx.now, self.shared.settings.outside);
        }
        self.drive(cx);
    }

    fn received(&mut self, cx: &mut Context<'_>, _: Node, slot: u32, octets: io::Result<&[u8]>) {
        let mut rest = self.machine.link.received(cx.now, slot, &octets);
        while !rest.is_empty() {
            self.settle(cx);
            rest = self.machine.link.go_on(cx.now, rest);
        }
        self.drive(cx);
    }

    fn sent(
        &mut self,
        cx: &mut Context<'_>,
        _: Node,
        slot: u32,
        batch: Box<SendBatch>,
        result: io::Result<()>,
    ) {
        self.machine.link.sent(slot, batch, &result);
        self.drive(cx);
    }

    fn expire(&mut self, cx: &mut Context<'_>) {
        self.machine.expire(cx.now);
        self.check_limit(cx.now);
        self.drive(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        self.leaving = true;
        let session = self.machine.link.session();
        let asked = session.map(|session| session.logout(cx.now));
        if matches!(asked, None | Some(Err(NotTaken::NotYet))) {
            self.machine.link.close(cx);
        }
        self.drive(cx);
    }

    fn has_left(&self) -> bool {
        self.machine.link.is_down()
    }
}

impl Attempts {
    /// An attempt has failed, or what it led to has ended.
    fn fail(&mut self, now: Now, outside: Outside) {
        self.since.get_or_insert(now);
        let pause = PAUSE.saturating_mul(1 << self.failed.min(16)).min(LONGEST);
        self.failed += 1;
        let mut chance = [0; 1];
        // Without it the pause is only less spread.
        let _ = (outside.random)(&mut chance);
        self.next = Some(now + pause.mul_f64(0.5 + f64::from(chance[0]) / 512.0));
    }

    /// When what waits fails.
    fn limit(&self, replacement: Duration) -> Option<Now> {
        self.since.map(|since| since.saturating_add(replacement))
    }
}

//! What a client wants done goes to its connection, and what that tells to the client.

use std::collections::VecDeque;

use ::io::memory::Pool;
use block::lease::Lease;
use block::volume::{Context, CoreContext};
use iscsi::initiator::error::End;
use iscsi::initiator::{Command, Data, Done, Event, Failed, Fate, Initiator, Notice, Why};
use iscsi::wire::scsi_response::Residual;
use scsi::client::{self, Answer, Client, Output, Refusal, Request};
use scsi::medium::Now;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;
use scsi::wire::status::Status;

use super::Settings;
use super::link::Link;

/// Client and connection, without what decides when to connect.
pub(super) struct Machine {
    lun: Lun,
    pub(super) client: Client<Lease>,
    pub(super) link: Link,
    pub(super) pool: Pool,
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
    Conflict,
    Fenced,
    Departed,
    Refused(Refusal),
    /// What was under way on another portal was given up.
    Moved,
    Ended(End),
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
            client: client.wishing(settings.wishes),
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

    pub(super) fn settle(&mut self, cx: &mut Context<'_>) -> Option<Told> {
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
                    Output::Conflict => return Some(Told::Conflict),
                    Output::Fenced => return Some(Told::Fenced),
                    Output::Departed => return Some(Told::Departed),
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
        let same = self.link.logged_in();
        let moved = std::mem::take(&mut self.unaccounted) && !same;
        if moved {
            self.abandon();
        }
        self.client.begin();
        moved.then_some(Told::Moved)
    }

    /// Ends all operations; there is nothing then that would be done again.
    pub(super) fn abandon(&mut self) {
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

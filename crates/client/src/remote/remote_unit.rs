//! What a client wants done goes to its link, and what that tells to the client.

use std::collections::VecDeque;
use std::ops::Range;

use ::io::memory::Pool;
use block::lease::BlockLease;
use block::volume::{Context, CoreContext};
use scsi::client::{Client, ClientOutput, CommandStatus, Fate, UnitRefusal, UnitRequest};
use scsi::medium::Now;
use scsi::wire::lun::Lun;
use scsi::wire::sense::Status;

use super::connection::InitiatorConnection;
use super::fcoe::FcoeLink;
use super::indeterminate_writes::IndeterminateWrites;
use super::link::{Link, LinkEnd, LinkEvent};
use super::{RemoteSettings, TransportAddress};

/// Client and link, without what decides when to connect.
pub(super) struct RemoteUnit {
    lun: Lun,
    pub(super) client: Client<BlockLease>,
    pub(super) link: Box<dyn Link>,
    pub(super) pool: Pool,
    /// Commands for which the session has no room now.
    waiting: VecDeque<UnitRequest<BlockLease>>,
    /// Commands of the session before may still have an effect, if it was not ended by this one.
    unaccounted: bool,
    /// Where the last nexus was.
    group: usize,
    /// What was written there or in another place by commands that were given up.
    pub(super) doubts: IndeterminateWrites,
}

/// An event of a remote unit.
#[derive(Debug)]
pub(super) enum UnitEvent {
    LoggedIn,
    Ready,
    Changed,
    CacheLost,
    Conflict,
    Fenced,
    Departed,
    Refused(UnitRefusal),
    /// What was in flight on another portal was given up.
    Moved,
    Ended(LinkEnd),
}

impl RemoteUnit {
    pub(super) fn new(
        settings: &RemoteSettings,
        client: Client<BlockLease>,
        number: u16,
        core: &CoreContext,
    ) -> Self {
        Self {
            lun: settings.lun,
            client: client.wishing(settings.wishes),
            link: link(core, settings, number),
            pool: core.pool.clone(),
            waiting: VecDeque::new(),
            unaccounted: false,
            group: 0,
            doubts: IndeterminateWrites::default(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        let deadlines = [self.client.next_deadline(), self.link.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    pub(super) fn expire(&mut self, now: Now) {
        self.client.expire(now);
        self.link.expire(now);
    }

    /// Carries outputs of each to the other, until there is none or something to tell.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> Option<UnitEvent> {
        loop {
            if let Some(told) = self.drain(cx) {
                return Some(told);
            }
            if self.execute(cx.now) {
                self.link.push(cx);
                return None;
            }
        }
    }

    pub(super) fn drain(&mut self, cx: &mut Context<'_>) -> Option<UnitEvent> {
        loop {
            if let Some(heard) = self.link.poll(cx) {
                if let Some(told) = self.link_event(cx.now, heard) {
                    return Some(told);
                }
            } else if let Some(output) = self.client.poll() {
                match output {
                    ClientOutput::Execute(request) => self.waiting.push_back(request),
                    ClientOutput::Done(id, result) => cx.done(id, result),
                    ClientOutput::Ready => return Some(UnitEvent::Ready),
                    ClientOutput::Changed => return Some(UnitEvent::Changed),
                    ClientOutput::CacheLost => return Some(UnitEvent::CacheLost),
                    ClientOutput::Conflict => return Some(UnitEvent::Conflict),
                    ClientOutput::Fenced => return Some(UnitEvent::Fenced),
                    ClientOutput::Departed => return Some(UnitEvent::Departed),
                    ClientOutput::Refused(refusal) => return Some(UnitEvent::Refused(refusal)),
                    ClientOutput::NotNow(refusal) => self.not_now(cx.now, refusal),
                }
            } else {
                return None;
            }
        }
    }

    /// Gives the link commands as long as it has room. Returns whether it took each of them: one
    /// that it did not is repeated after a while.
    fn execute(&mut self, now: Now) -> bool {
        if !self.link.is_up() {
            self.waiting.clear();
        }
        while self.link.has_room()
            && let Some(request) = self.waiting.pop_front()
        {
            let id = request.id;
            if !self.link.execute(now, self.lun, request) {
                let busy = CommandStatus::bare(Status::Busy);
                self.client.answered(now, id, &busy);
                return false;
            }
            self.client.sent(id);
        }
        true
    }

    fn link_event(&mut self, now: Now, heard: LinkEvent) -> Option<UnitEvent> {
        match heard {
            LinkEvent::LoggedIn { same } => return self.logged_in(same),
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
            LinkEvent::Ended(end) => {
                self.waiting.clear();
                self.unaccounted |= end.leaves_commands();
                if end.is_stuck() {
                    self.client.stuck();
                } else {
                    self.client.lost();
                }
                self.doubt();
                return Some(UnitEvent::Ended(end));
            }
        }
        None
    }

    /// Commands of the old nexus may be given out again once it is dead. It is if this login was to
    /// the same portal group, as that reinstates the session (RFC 7143 §6.3.5). If it was to
    /// another one, nothing that we could ask for ends what is on its way to the first: what it was
    /// is told as failed, and not done again here. Nor is what waits for the same blocks.
    fn logged_in(&mut self, same: bool) -> Option<UnitEvent> {
        let moved = self.unaccounted && !same;
        if moved {
            self.abandon();
        }
        self.unaccounted = false;
        self.group = self.link.group();
        self.doubts.trust(self.group);
        self.client.bar(|extent| self.doubts.touch(extent));
        self.client.begin();
        Some(if moved {
            UnitEvent::Moved
        } else {
            UnitEvent::LoggedIn
        })
    }

    /// Ends all operations; there is nothing then that would be done again.
    pub(super) fn abandon(&mut self) {
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

    /// Gives up what the link was not given.
    pub(super) fn cancel(&mut self, ids: &Range<u64>) {
        self.client.cancel(ids);
        let client = &self.client;
        self.waiting.retain(|request| client.wants(request.id));
    }

    /// The unit cannot be used, but may be when it is asked again.
    fn not_now(&mut self, now: Now, refusal: UnitRefusal) {
        tracing::warn!("{}: {refusal}", self.link.name());
        self.link.give_up(now);
    }
}

/// The link number `number` to where the settings say, for a handle of this core.
fn link(core: &CoreContext, settings: &RemoteSettings, number: u16) -> Box<dyn Link> {
    let node = core.node();
    match &settings.way {
        TransportAddress::Iscsi(portal) => {
            Box::new(InitiatorConnection::new(node, settings, portal, number))
        }
        TransportAddress::Fcoe(target) => Box::new(FcoeLink::new(node, settings, target, core)),
    }
}

//! An N_Port that several links of one core use.
//!
//! Each is a user with a number, which stands in the upper half of its commands' names; what the
//! port tells is kept for whom it concerns, and who has news is called. Whoever of them acts next
//! has the port receive and send, for all.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use ::io::ether::Place;
use block::lease::BlockLease;
use block::volume::{Calls, Context, HandleId};
use fc::initiator::{self, ClientCommand, FcpInitiator, FcpInitiatorEvent};
use fc::port::{Port, PortEvent};
use fc::remote::{self, RemoteId, RemotePort};
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use scsi::client::UnitRequest;
use scsi::medium::Now;
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

use crate::remote::link::{FcoeLinkEnd, LinkEvent};
use runtime::journal::{Journal, QUIET};
use runtime::n_port::{NPort, PollInterest, PortTerms, UnitStatus};

/// The N_Ports of a core. A port without a user is closed.
#[derive(Debug, Default)]
pub(super) struct SharedPorts(RefCell<Vec<Weak<RefCell<SharedPort>>>>);

/// What links must have in common to use one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedPortKey {
    pub(super) place: Place,
    /// They are part of every login.
    pub(super) terms: PortTerms,
}

/// An N_Port and its users.
#[derive(Debug)]
pub(super) struct SharedPort {
    key: SharedPortKey,
    calls: Calls,
    /// Until it is opened, nothing.
    n_port: Option<Box<NPort<FcpInitiator<BlockLease>>>>,
    is_leaving: bool,
    /// By number; a number is not used again.
    users: Vec<Option<PortUser>>,
    /// The ring tells one of the handles when frames have come.
    is_watched: bool,
    /// A user has found no room.
    is_short: Cell<bool>,
    /// Of rules that others broke.
    journal: Journal,
    /// When its counts were told last.
    swept: Now,
}

#[derive(Debug)]
struct PortUser {
    node: HandleId,
    wwpn: Wwn,
    /// What other programs are told that it uses.
    unit: Option<UnitStatus>,
    /// Its target, while that is logged in.
    there: Option<RemoteId>,
    /// The node that the target was a port of last.
    node_name: Option<Wwn>,
    in_flight: usize,
    /// How its commands ended.
    news: VecDeque<LinkEvent>,
    /// How the login with its target ended last, or why there is no port.
    end: Option<FcoeLinkEnd>,
}

/// The place of a user at a port, until it is dropped.
#[derive(Debug)]
pub(super) struct PortUserHandle {
    pub(super) port: Rc<RefCell<SharedPort>>,
    pub(super) number: usize,
}

/// Commands of one user at once: as many as a session of iSCSI has.
const TASKS: usize = 1024;

/// Users that can have that many at once; with more of them they share.
const BUSY_USERS: usize = 16;

impl SharedPorts {
    /// The port that there is already, or is being opened.
    pub(super) fn find(&self, key: &SharedPortKey) -> Option<Rc<RefCell<SharedPort>>> {
        let mut ports = self.0.borrow_mut();
        ports.retain(|port| port.strong_count() > 0);
        let mut ports = ports.iter().filter_map(Weak::upgrade);
        ports.find(|port| {
            let port = port.borrow();
            port.key == *key && !port.is_leaving
        })
    }

    /// A port that is to be opened.
    pub(super) fn make(&self, key: SharedPortKey, calls: Calls) -> Rc<RefCell<SharedPort>> {
        let port = Rc::new(RefCell::new(SharedPort {
            key,
            calls,
            n_port: None,
            is_leaving: false,
            users: Vec::new(),
            is_watched: false,
            is_short: Cell::new(false),
            journal: Journal::default(),
            swept: Now::ZERO,
        }));
        self.0.borrow_mut().push(Rc::downgrade(&port));
        port
    }
}

impl PortUserHandle {
    /// A place at a port for a handle that wants to use a target, or a unit of it.
    pub(super) fn take(
        port: Rc<RefCell<SharedPort>>,
        node: HandleId,
        (wwpn, unit): (Wwn, Option<UnitStatus>),
        now: Now,
    ) -> Self {
        let mut shared = port.borrow_mut();
        let number = shared.users.len();
        shared.users.push(Some(PortUser {
            node,
            wwpn,
            unit,
            there: None,
            node_name: None,
            in_flight: 0,
            news: VecDeque::new(),
            end: None,
        }));
        shared.look_for(now, number);
        shared.show_units();
        drop(shared);
        Self { port, number }
    }
}

impl Drop for PortUserHandle {
    /// Others may have counted upon the one who goes.
    fn drop(&mut self) {
        let mut port = self.port.borrow_mut();
        port.users[self.number] = None;
        port.show_units();
        port.call_all();
    }
}

impl SharedPort {
    pub(super) fn settings() -> initiator::FcpInitiatorConfig {
        initiator::FcpInitiatorConfig {
            tasks: TASKS * BUSY_USERS,
            ..initiator::FcpInitiatorConfig::default()
        }
    }

    /// It is there.
    pub(super) fn opened(&mut self, now: Now, n_port: NPort<FcpInitiator<BlockLease>>) {
        self.n_port = Some(Box::new(n_port));
        for number in 0..self.users.len() {
            self.look_for(now, number);
        }
        self.show_units();
        self.call_all();
    }

    /// Lets other programs know what is used here.
    fn show_units(&mut self) {
        let users = self.users.iter().flatten();
        let units = users.filter_map(|user| Some((user.wwpn, user.unit.clone()?)));
        if let Some(n_port) = &mut self.n_port {
            n_port.show_units(units.collect());
        }
    }

    /// It cannot be had.
    pub(super) fn failed(&mut self, why: &str) {
        self.is_leaving = true;
        for number in 0..self.users.len() {
            self.end(number, FcoeLinkEnd::NoPort(why.to_owned()));
        }
    }

    pub(super) fn n_port(&self) -> Option<&NPort<FcpInitiator<BlockLease>>> {
        self.n_port.as_deref()
    }

    /// Frames that were lost at the port, by place.
    pub(super) fn lost(&mut self) -> Option<String> {
        self.n_port.as_mut()?.lost()?.told()
    }

    /// The port, once it has no user.
    pub(super) fn give_back(&mut self) -> Option<NPort<FcpInitiator<BlockLease>>> {
        let is_last = self.users.iter().flatten().count() == 1;
        let is_free = |n_port: &mut Box<NPort<FcpInitiator<BlockLease>>>| {
            is_last && n_port.port().fc4().is_at_rest()
        };
        let n_port = self.n_port.take_if(is_free)?;
        self.is_leaving = true;
        Some(*n_port)
    }

    /// Lets the target of a user log in.
    fn look_for(&mut self, now: Now, number: usize) {
        let (Some(n_port), Some(Some(user))) = (&mut self.n_port, self.users.get_mut(number))
        else {
            return;
        };
        let now = n_port.time(now);
        n_port.port_mut().admit(now, user.wwpn);
        user.look_around(n_port.port());
    }

    fn user(&self, number: usize) -> Option<&PortUser> {
        self.users.get(number)?.as_ref()
    }

    /// The node that the target of a user was a port of last. What was in flight at another one of
    /// its name may still be carried out.
    pub(super) fn node_name(&self, number: usize) -> Option<Wwn> {
        self.user(number)?.node_name
    }

    /// The target of a user, while it is logged in.
    pub(super) fn there(&self, number: usize) -> Option<RemoteId> {
        self.user(number)?.there
    }

    /// Whether commands of a user have not ended.
    pub(super) fn has_under_way(&self, number: usize) -> bool {
        self.user(number).is_some_and(|user| user.in_flight > 0)
    }

    /// Whether a user may give a command.
    pub(super) fn has_room(&self, number: usize) -> bool {
        let (Some(n_port), Some(user)) = (&self.n_port, self.user(number)) else {
            return false;
        };
        let has_room = n_port.port().fc4().room() > 0;
        self.is_short.set(self.is_short.get() || !has_room);
        has_room && user.in_flight < TASKS
    }

    /// Gives a command to the target of a user; returns whether it was taken.
    pub(super) fn execute(
        &mut self,
        now: Now,
        number: usize,
        lun: Lun,
        request: UnitRequest<BlockLease>,
    ) -> bool {
        let (Some(n_port), Some(Some(user))) = (&mut self.n_port, self.users.get_mut(number))
        else {
            return false;
        };
        let Some(target) = user.there else {
            return false;
        };
        let command = ClientCommand {
            id: (number as u64) << 32 | u64::from(request.id),
            ..ClientCommand::of(request, lun)
        };
        let now = n_port.time(now);
        let machine = n_port.port_mut().fc4_mut();
        let is_taken = machine.execute(now, target, command).is_ok();
        user.in_flight += usize::from(is_taken);
        is_taken
    }

    /// Ends the commands of a user.
    pub(super) fn abandon(&mut self, now: Now, number: usize) {
        if let Some(n_port) = &mut self.n_port {
            let now = n_port.time(now);
            let machine = n_port.port_mut().fc4_mut();
            machine.abandon(now, |id| owner(id) == number);
        }
    }

    /// The ring has told a handle, which may not be a user any more, that frames have come, or that
    /// there is room to send.
    pub(super) fn ready(&mut self, now: Now, is_user: bool) {
        self.is_watched = false;
        if let Some(n_port) = &mut self.n_port {
            n_port.receive(now);
        }
        if !is_user {
            self.call_all();
        }
    }

    pub(super) fn expire(&mut self, now: Now) {
        if let Some(n_port) = &mut self.n_port
            && n_port.next_deadline().is_some_and(|at| at <= now)
        {
            n_port.expire(now);
        }
    }

    /// What a user is told next of its commands.
    pub(super) fn news(&mut self, now: Now, number: usize) -> Option<LinkEvent> {
        self.hear(now, number);
        self.users.get_mut(number)?.as_mut()?.news.pop_front()
    }

    /// Keeps what the port tells for whom it concerns, and calls those who do not ask now.
    fn hear(&mut self, now: Now, asking: usize) {
        let mut has_room_again = false;
        while let Some(event) = self.n_port.as_mut().and_then(|n_port| n_port.poll()) {
            match event {
                PortEvent::Up(id) => self.up(id),
                PortEvent::Down(id, end) => self.down(id, end),
                PortEvent::Fc4(FcpInitiatorEvent::Done(done)) => {
                    has_room_again = true;
                    self.over(asking, owner(done.id), LinkEvent::Answered(done));
                }
                PortEvent::Fc4(FcpInitiatorEvent::Failed(failed)) => {
                    has_room_again = true;
                    self.over(asking, owner(failed.id), LinkEvent::failed(&failed));
                }
                PortEvent::Remark {
                    from,
                    wwpn,
                    violation,
                } => self.tell_of(now, (from, wwpn), violation),
                // The port has told what of it is news.
                PortEvent::Fc4(_)
                | PortEvent::Online(_)
                | PortEvent::Offline
                | PortEvent::Fabric(_) => {}
            }
        }
        if has_room_again && self.is_short.take() {
            self.call_all();
        }
    }

    /// A station on the Ethernet has broken a rule.
    fn tell_of(&mut self, now: Now, from: (Mac, Option<Wwn>), violation: Violation) {
        if now.saturating_sub(self.swept) >= QUIET {
            self.swept = now;
            let lines = self.journal.sweep(now);
            lines.iter().for_each(|line| tracing::warn!("{line}"));
        }
        if let Some(line) = self.journal.tell(now, from, violation) {
            tracing::warn!("{line}");
        }
    }

    fn up(&mut self, id: RemoteId) {
        let Some(n_port) = &self.n_port else { return };
        let Some(wwpn) = n_port.port().remote(id).map(RemotePort::wwpn) else {
            return;
        };
        let mut users = self.users.iter_mut().flatten();
        if users.any(|user| user.wwpn == wwpn && user.there.is_some_and(|there| there != id)) {
            tracing::warn!(
                "{}: two ports have the WWPN {wwpn}; give one of them another name",
                n_port.place()
            );
        }
        for number in 0..self.users.len() {
            self.find_again(number);
        }
    }

    /// A user without a target may have one now.
    fn find_again(&mut self, number: usize) {
        if let (Some(n_port), Some(Some(user))) = (&self.n_port, self.users.get_mut(number))
            && user.there.is_none()
        {
            user.look_around(n_port.port());
            if user.there.is_some() {
                self.calls.call(user.node);
            }
        }
    }

    fn down(&mut self, id: RemoteId, end: remote::NexusEnd) {
        let end = match end {
            remote::NexusEnd::Stuck => FcoeLinkEnd::Stuck,
            end => FcoeLinkEnd::Lost(end),
        };
        for number in 0..self.users.len() {
            if let Some(Some(user)) = self.users.get_mut(number)
                && user.there.take_if(|there| *there == id).is_some()
            {
                self.end(number, end.clone());
                self.find_again(number);
            }
        }
    }

    /// A command has ended.
    fn over(&mut self, asking: usize, number: usize, news: LinkEvent) {
        let Some(Some(user)) = self.users.get_mut(number) else {
            return;
        };
        user.in_flight -= 1;
        if number != asking && user.news.is_empty() {
            self.calls.call(user.node);
        }
        user.news.push_back(news);
    }

    fn end(&mut self, number: usize, end: FcoeLinkEnd) {
        if let Some(Some(user)) = self.users.get_mut(number) {
            user.end = Some(end);
            self.calls.call(user.node);
        }
    }

    /// How the login of a user ended, if that was not told.
    pub(super) fn take_end(&mut self, number: usize) -> Option<FcoeLinkEnd> {
        self.users.get_mut(number)?.as_mut()?.end.take()
    }

    fn call_all(&self) {
        let users = self.users.iter().flatten();
        users.for_each(|user| self.calls.call(user.node));
    }

    /// Sends, and has the ring tell a user's handle, as `slot`, when frames come. Returns whether
    /// it will.
    pub(super) fn push(&mut self, cx: &mut Context<'_>, number: usize, slot: u32) -> bool {
        let (Some(n_port), Some(Some(user))) = (&mut self.n_port, self.users.get(number)) else {
            return false;
        };
        n_port.transmit();
        if self.is_watched {
            return false;
        }
        let waited = n_port.poll_fd();
        let watched = match n_port.listen() {
            PollInterest::NotYet => return false,
            PollInterest::Later => cx.watch_later(user.node, slot, waited),
            PollInterest::Now => cx.watch(user.node, slot, waited),
        };
        n_port.is_watched(cx.now, &watched);
        self.is_watched = watched.is_ok();
        self.is_watched
    }

    /// A user needs the port no more; returns whether it logs out, as the last one does.
    pub(super) fn leave(&mut self, now: Now) -> bool {
        let is_last = self.users.iter().flatten().count() == 1;
        if let Some(n_port) = self.n_port.as_mut().filter(|_| is_last) {
            self.is_leaving = true;
            n_port.leave(now);
        }
        is_last
    }
}

impl PortUser {
    /// Finds its target among those that are logged in. It stays with the one that it has, even if
    /// another port claims to be called the same.
    fn look_around(&mut self, port: &Port<FcpInitiator<BlockLease>>) {
        let mut found = port.remotes().filter(|one| one.is_up());
        let Some(found) = found.find(|one| one.wwpn() == self.wwpn) else {
            return;
        };
        self.there = Some(found.id());
        self.node_name = Some(found.wwnn());
    }
}

/// The number of the user whose command has this name.
const fn owner(id: u64) -> usize {
    (id >> 32) as usize
}

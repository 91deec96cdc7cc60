//! FCoE: an N_Port of ours, shared by all that a core uses behind one Ethernet port, and the login
//! of a target's with it.
//!
//! The N_Port stays when the login is lost, as it takes over a second to get an address: the target
//! is waited for, and logs in again as soon as it is back. A new login ends at the target what was
//! of the one before (FC-LS-2, PLOGI), so what was in flight may be done again. Who gives up while
//! others use the same target has its own commands aborted, and goes on when they are.

mod look;
mod shared;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ether::Place;
use ::io::ring::{BlockingLane, FileOp};
use address::{FcoeAddress, Time};
use block::identity::DetailGroup;
use block::lease::BlockLease;
use block::volume::{Calls, Context, CoreContext, HandleEvent, HandleId};
use fc::initiator::FcpInitiator;
use fc::remote::{self, Partners};
use fc::wire::names::Wwn;
use scsi::client::UnitRequest;
use scsi::medium::Now;
use scsi::wire::lun::Lun;

use self::look::PortLook;
use self::shared::{PortUserHandle, SharedPort, SharedPortKey, SharedPorts};
use super::indeterminate_writes::SeekHistory;
use super::link::{FcoeLinkEnd, Link, LinkEnd, LinkEvent, SEEK, SEEK_LINK};
use super::{RemoteError, details};
use runtime::n_port::{
    Attachment, IdlePorts, NPort, NoPort, PortNames, PortOwner, PortTerms, UnitStatus,
};

/// Where a target port of Fibre Channel is.
#[derive(Clone, Debug)]
pub struct TargetPortAddress {
    /// By which Ethernet port of ours.
    pub place: Place,
    /// Its WWPN.
    pub port_name: Wwn,
    /// How ours finds it, and what is proposed to it.
    pub terms: PortTerms,
    /// N_Ports that may be used, and where ours is left.
    pub ports: IdlePorts,
}

impl TargetPortAddress {
    /// What an address says of the way, by these ports.
    pub(crate) fn new(unit: &FcoeAddress, ports: &IdlePorts) -> Self {
        let options = &unit.options;
        Self {
            place: unit.place.clone(),
            port_name: unit.port_name,
            terms: PortTerms {
                mode: options.mode.port_mode(),
                tag: options.mode.tag(),
                e_d_tov: options.e_d_tov.map(|Time(time)| time),
                further: options.mode.npiv().places(),
                dcb: options.mode.dcb(),
            },
            ports: ports.clone(),
        }
    }
}

/// A use of an N_Port, or what is to become of it.
pub(crate) struct FcoeLink {
    node: HandleId,
    target: TargetPortAddress,
    name: String,
    /// What other programs are told that it uses.
    unit: Option<UnitStatus>,
    /// The N_Ports of this core.
    ports: Rc<SharedPorts>,
    calls: Calls,
    user: Option<PortUserHandle>,
    /// A thread opens the Ethernet port, for all that wait.
    opening: Option<(Rc<RefCell<SharedPort>>, OpenedAttachment)>,
    /// The ring will tell us that frames have come there, by the generation of that use.
    watched: Vec<(u32, Weak<RefCell<SharedPort>>)>,
    /// Ours, for as long as this lives.
    names: Option<Arc<PortNames>>,
    stage: PortStage,
    /// The nodes that the target was a port of.
    nodes: SeekHistory<Wwn>,
    /// The outcome of commands that are still in flight is of no interest any more.
    is_given_up: bool,
    /// Tells the events of this use from those of earlier ones.
    generation: u32,
    /// The login has ended, which is told after all that came of it.
    ended: Option<FcoeLinkEnd>,
}

/// Where a thread leaves what it has opened.
type OpenedAttachment = Arc<Mutex<Option<Result<Attachment, NoPort>>>>;

/// What is made of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortStage {
    /// Nothing.
    Idle,
    /// The target is waited for, since then.
    Seeking { since: Now, wait: Duration },
    /// Commands go to the target.
    Up,
    /// We have logged out.
    Leaving,
}

impl FcoeLink {
    pub(crate) fn new(core: &CoreContext, target: TargetPortAddress, name: String) -> Self {
        Self {
            node: core.node(),
            target,
            name,
            unit: None,
            ports: core.common(),
            calls: core.calls.clone(),
            user: None,
            opening: None,
            watched: Vec::new(),
            names: None,
            stage: PortStage::Idle,
            nodes: SeekHistory::default(),
            is_given_up: false,
            generation: 0,
            ended: None,
        }
    }

    /// The same for the use of this unit.
    pub(super) fn using(self, unit: UnitStatus) -> Self {
        Self {
            unit: Some(unit),
            ..self
        }
    }

    fn key(&self) -> SharedPortKey {
        SharedPortKey {
            place: self.target.place.clone(),
            terms: self.target.terms,
        }
    }

    /// Does something with the port, as the user that we are.
    fn with<T>(&self, act: impl FnOnce(&mut SharedPort, usize) -> T) -> Option<T> {
        let user = self.user.as_ref()?;
        Some(act(&mut user.port.borrow_mut(), user.number))
    }

    /// Uses the port that the core has, or one that is idle, or has one opened.
    fn sit(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        let key = self.key();
        let port = self.ports.find(&key).unwrap_or_else(|| {
            let port = self.ports.make(key.clone(), self.calls.clone());
            match self.target.ports.take(&key.place, key.terms, cx.now) {
                Some(n_port) => port.borrow_mut().opened(cx.now, n_port),
                None => self.open(cx, &port),
            }
            port
        });
        let uses = (self.target.port_name, self.unit.clone());
        let user = PortUserHandle::take(port, self.node, uses, cx.now);
        self.user = Some(user);
    }

    fn open(&mut self, cx: &mut Context<'_>, port: &Rc<RefCell<SharedPort>>) {
        let opened = OpenedAttachment::default();
        let (left, place) = (opened.clone(), self.target.place.clone());
        let owner = self
            .names
            .clone()
            .map_or(PortOwner::Initiator, PortOwner::Again);
        let (ports, terms) = (self.target.ports.clone(), self.target.terms);
        let open = move || {
            ports.wait_for_ending(&place);
            let site = terms.open(&place, &owner);
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(site);
            Ok(0)
        };
        self.opening = Some((Rc::clone(port), opened));
        let op = FileOp::Apart {
            lane: BlockingLane::Connect,
            call: Box::new(open),
        };
        cx.file(self.node, self.generation, op);
    }

    /// The port that a thread has opened.
    fn begin(
        &self,
        now: Now,
        opened: &OpenedAttachment,
    ) -> Result<NPort<FcpInitiator<BlockLease>>, RemoteError> {
        let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let nothing = || io::Error::from(io::ErrorKind::NotConnected);
        let mut site = opened.ok_or_else(nothing).map_err(RemoteError::Connect)??;
        // Each user adds its own.
        site.config.partners = Partners::Only([].into());
        let machine = FcpInitiator::new(SharedPort::settings());
        Ok(NPort::begin(site, machine, now))
    }

    fn leave_port(&mut self) {
        (self.user, self.stage) = (None, PortStage::Idle);
    }

    /// The login with the target has ended, or there is no port.
    fn lost(&mut self, end: FcoeLinkEnd) {
        let no_port = matches!(end, FcoeLinkEnd::NoPort(_));
        if no_port {
            self.user = None;
        }
        if no_port || self.stage == PortStage::Up {
            self.stage = PortStage::Idle;
            self.ended.get_or_insert(end);
        }
    }

    /// Goes on with a target that is there, once nothing of before is.
    fn log_in(&mut self) -> Option<LinkEvent> {
        let is_there = |port: &mut SharedPort, number| {
            port.there(number).is_some() && !port.has_under_way(number)
        };
        if !matches!(self.stage, PortStage::Seeking { .. }) || self.with(is_there) != Some(true) {
            return None;
        }
        (self.stage, self.is_given_up) = (PortStage::Up, false);
        let names = self.with(|port, _| Some(Arc::clone(port.n_port()?.names())));
        self.names = names.flatten();
        let node = self.with(|port, number| port.node_name(number)).flatten();
        let same = node.is_some_and(|node| self.nodes.come_to(node));
        Some(LinkEvent::LoggedIn { same })
    }

    /// A thread has opened the port, or could not.
    fn opened(&mut self, cx: &mut Context<'_>, result: io::Result<u64>) -> Result<(), RemoteError> {
        let Some((port, opened)) = self.opening.take() else {
            return Ok(());
        };
        let result = result.map_err(RemoteError::Connect);
        match result.and_then(|_| self.begin(cx.now, &opened)) {
            Ok(n_port) => port.borrow_mut().opened(cx.now, n_port),
            Err(cause) => {
                self.leave_port();
                port.borrow_mut().failed(&cause.to_string());
                return Err(cause);
            }
        }
        Ok(())
    }

    /// Frames have come.
    fn ready(&mut self, cx: &mut Context<'_>, generation: u32) {
        let at = self.watched.iter().position(|one| one.0 == generation);
        let port = at.and_then(|at| self.watched.swap_remove(at).1.upgrade());
        if let Some(port) = port {
            let is_ours = |user: &PortUserHandle| Rc::ptr_eq(&user.port, &port);
            let is_user = self.user.as_ref().is_some_and(is_ours);
            port.borrow_mut().ready(cx.now, is_user);
        }
    }

    /// What it says of itself, while it is there.
    pub(super) fn particulars(&self) -> Vec<DetailGroup> {
        let groups = self.with(|port, number| {
            let (target, lost) = (port.there(number), port.lost());
            let port = port.n_port()?.port();
            let target = target.and_then(|id| port.remote(id));
            Some(details::ports(&self.target.place, port, target, lost))
        });
        groups.flatten().unwrap_or_default()
    }
}

impl Link for FcoeLink {
    fn name(&self) -> &str {
        &self.name
    }

    /// With an N_Port that nothing is made of, too.
    fn is_down(&self) -> bool {
        self.stage == PortStage::Idle && self.opening.is_none()
    }

    fn is_logged_in(&self) -> bool {
        self.stage == PortStage::Up
    }

    fn awaited(&self) -> String {
        let TargetPortAddress {
            place, port_name, ..
        } = &self.target;
        match self.stage {
            PortStage::Up => format!("{} to answer", self.name),
            PortStage::Seeking { .. } => format!("{port_name} to log in on fcoe://{place}"),
            PortStage::Idle | PortStage::Leaving => format!("a port on fcoe://{place}"),
        }
    }

    fn group(&self) -> usize {
        self.nodes.last()
    }

    fn has_room(&self) -> bool {
        self.is_logged_in() && self.with(|port, number| port.has_room(number)) == Some(true)
    }

    fn execute(&mut self, now: Now, lun: Lun, request: UnitRequest<BlockLease>) -> bool {
        let execute = |port: &mut SharedPort, number| port.execute(now, number, lun, request);
        self.is_logged_in() && self.with(execute) == Some(true)
    }

    /// A port that has not found its target is logged in to the fabric all the same.
    fn log_out(&mut self, now: Now) -> bool {
        if self.with(|port, _| port.n_port().is_some()) != Some(true) {
            return false;
        }
        if self.with(|port, _| port.leave(now)) == Some(true) {
            self.stage = PortStage::Leaving;
        } else {
            self.stage = PortStage::Idle;
            self.ended = Some(FcoeLinkEnd::Lost(remote::NexusEnd::ByUs));
        }
        true
    }

    fn hand_over(&mut self, now: Now) -> bool {
        let n_port = self.with(|port, _| port.give_back()).flatten();
        let Some(n_port) = n_port else {
            return false;
        };
        self.leave_port();
        self.target.ports.put(n_port, self.target.terms, now);
        true
    }

    fn give_up(&mut self, now: Now) {
        if self.user.is_some() {
            self.with(|port, number| port.abandon(now, number));
            (self.stage, self.is_given_up) = (PortStage::Idle, true);
            self.ended = Some(FcoeLinkEnd::GivenUp);
        }
    }

    fn next_deadline(&self) -> Option<Now> {
        let seeking = match self.stage {
            PortStage::Seeking { since, wait } => Some(since.saturating_add(wait)),
            _ => None,
        };
        let port = self.with(|port, _| port.n_port()?.next_deadline());
        port.flatten().into_iter().chain(seeking).min()
    }

    fn expire(&mut self, now: Now) {
        self.with(|port, _| port.expire(now));
        let target = self.target.port_name;
        let look = |port: &mut SharedPort, _| Some(PortLook::at(port.n_port()?, target));
        let Some(look) = self.with(look).flatten() else {
            return;
        };
        if self.stage == PortStage::Leaving && look.has_left {
            self.stage = PortStage::Idle;
            self.ended = Some(FcoeLinkEnd::Lost(remote::NexusEnd::ByUs));
        }
        let PortStage::Seeking { since, wait } = self.stage else {
            return;
        };
        // One that was there before is waited for.
        if look.is_alone && self.names.is_none() {
            self.stage = PortStage::Idle;
            self.ended = Some(FcoeLinkEnd::Alone(self.target.place.clone()));
        } else if since.saturating_add(wait) <= now {
            if wait < SEEK_LINK && look.is_linking {
                let wait = SEEK_LINK;
                self.stage = PortStage::Seeking { since, wait };
            } else {
                self.stage = PortStage::Idle;
                self.ended = Some(look.end(&self.target, wait));
            }
        }
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        if self.user.is_none() {
            self.sit(cx);
        }
        self.stage = PortStage::Seeking {
            since: cx.now,
            wait: SEEK,
        };
        // It is heard then, if the target is there already.
        cx.call_at(cx.now);
    }

    fn event(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        event: HandleEvent<'_>,
    ) -> Result<(), RemoteError> {
        match event {
            HandleEvent::File { result, .. } => return self.opened(cx, result),
            HandleEvent::Ready => self.ready(cx, generation),
            HandleEvent::Received(_) | HandleEvent::Sent { .. } => {}
        }
        Ok(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Option<LinkEvent> {
        let news = |port: &mut SharedPort, number| port.news(cx.now, number);
        while let Some(event) = self.with(news).flatten() {
            if !self.is_given_up {
                return Some(event);
            }
        }
        if let Some(end) = self.with(SharedPort::take_end).flatten() {
            self.lost(end);
        }
        if let Some(event) = self.log_in() {
            return Some(event);
        }
        let end = self.ended.take()?;
        if end == FcoeLinkEnd::Lost(remote::NexusEnd::ByUs) {
            self.leave_port();
        }
        Some(LinkEvent::Ended {
            end: LinkEnd::Fcoe(end),
            wait: Duration::ZERO,
        })
    }

    fn close(&mut self, _: &mut Context<'_>) {
        self.leave_port();
    }

    fn push(&mut self, cx: &mut Context<'_>) {
        let generation = self.generation;
        if self.with(|port, number| port.push(cx, number, generation)) == Some(true)
            && let Some(user) = &self.user
        {
            self.watched.push((generation, Rc::downgrade(&user.port)));
        }
    }
}

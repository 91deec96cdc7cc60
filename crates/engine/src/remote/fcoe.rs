//! FCoE: an N_Port of ours, shared by all that a core uses behind one Ethernet port, and the login
//! of a target's with it.
//!
//! The N_Port stays when the login is lost, as it takes over a second to get an address: the target
//! is waited for, and logs in again as soon as it is back. A new login ends at the target what was
//! of the one before (FC-LS-2, PLOGI), so what was under way may be done again. Who gives up while
//! others use the same target has its own commands aborted, and goes on when they are.

mod shared;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ether::Place;
use ::io::ring::{FileOp, Lane};
use block::lease::Lease;
use block::particulars::Group;
use block::volume::{Calls, Context, CoreContext, Node};
use fc::initiator::Initiator;
use fc::remote::{self, Partners};
use fc::wire::names::Wwn;
use scsi::client::Request;
use scsi::medium::Now;
use scsi::wire::lun::Lun;

use self::shared::{Key, News, Seat, SharedPort, SharedPorts};
use super::link::{self, Heard, Link};
use super::places::Places;
use super::{RemoteError, Settings, Way, particulars};
use crate::n_port::{IdlePorts, NPort, Names, NoPort, Obstacle, Owner, Site};

/// Where a target port of Fibre Channel is.
#[derive(Clone, Debug)]
pub struct Target {
    /// By which Ethernet port of ours.
    pub place: Place,
    /// Its WWPN.
    pub port_name: Wwn,
    /// E_D_TOV that is proposed to it; `None`: that of the standard.
    pub e_d_tov: Option<Duration>,
    /// N_Ports that may be used, and where ours is left.
    pub ports: IdlePorts,
}

/// Why there is no login with a target port any more, or there was none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Nobody has that name.
    #[error(
        "no target with WWPN {wwpn} logged in within {} s: list the ports with lunar ls \
         fcoe://{place}, and check in the target's log that it admits {ours}",
        SEEK.as_secs()
    )]
    NotFound {
        /// Which.
        wwpn: Wwn,
        /// By which Ethernet port of ours.
        place: String,
        /// Who we are.
        ours: Wwn,
    },
    /// It is not there yet.
    #[error("no server has opened the other end of {0}: start one first")]
    Alone(Place),
    /// No frame passes at our Ethernet port.
    #[error(transparent)]
    Barred(Obstacle),
    /// We have no port, as whoever opened it for us was told too.
    #[error("{0}")]
    NoPort(String),
    /// It was there.
    #[error("{}", ended(*.0))]
    Lost(remote::End),
    /// Commands end neither by themselves nor by an abort.
    #[error("the target answers neither commands nor aborts")]
    Stuck,
    /// By us, without waiting for the target.
    #[error("the login was abandoned")]
    GivenUp,
}

fn ended(end: remote::End) -> &'static str {
    match end {
        remote::End::LoggedOut => "the target logged us out",
        remote::End::Replaced => "the target logged in again, as after a restart",
        remote::End::Lost(_) => "the target no longer responds",
        remote::End::ByUs => "logged out",
        remote::End::Stuck => "the target does not complete exchanges",
    }
}

/// A use of an N_Port, or what is to become of it.
pub(super) struct FcoeLink {
    node: Node,
    target: Target,
    name: String,
    /// The N_Ports of this core.
    ports: Rc<SharedPorts>,
    calls: Calls,
    seat: Option<Seat>,
    /// A thread opens the Ethernet port, for all that wait.
    opening: Option<(Rc<RefCell<SharedPort>>, OpenedSite)>,
    /// The ring will tell us that frames have come there, by the generation of that use.
    watched: Vec<(u32, Weak<RefCell<SharedPort>>)>,
    /// Ours, for as long as this lives.
    names: Option<Arc<Names>>,
    stage: Stage,
    /// The nodes that the target was a port of.
    nodes: Places<Wwn>,
    /// Nobody wants to know what becomes of commands that are still under way.
    is_given_up: bool,
    /// Tells the events of this use from those of earlier ones.
    generation: u32,
    heard: VecDeque<Heard>,
    /// The login has ended, which is told after all that came of it.
    ended: Option<End>,
}

/// Where a thread leaves what it has opened.
type OpenedSite = Arc<Mutex<Option<Result<Site, NoPort>>>>;

/// What is made of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing.
    Idle,
    /// The target is waited for, until then.
    Seeking(Now),
    /// Commands go to the target.
    Up,
    /// We have logged out.
    Leaving,
}

/// How long a target is waited for. To get an address takes VN2VN a second; who has one says so
/// when asked.
const SEEK: Duration = Duration::from_secs(5);

impl FcoeLink {
    pub(super) fn new(
        node: Node,
        settings: &Settings,
        target: &Target,
        core: &CoreContext,
    ) -> Self {
        Self {
            node,
            target: target.clone(),
            name: settings.name(),
            ports: core.common(),
            calls: core.calls.clone(),
            seat: None,
            opening: None,
            watched: Vec::new(),
            names: None,
            stage: Stage::Idle,
            nodes: Places::default(),
            is_given_up: false,
            generation: 0,
            heard: VecDeque::new(),
            ended: None,
        }
    }

    fn key(&self) -> Key {
        Key {
            place: self.target.place.clone(),
            e_d_tov: self.target.e_d_tov,
        }
    }

    /// Does something with the port, as the user that we are.
    fn with<T>(&self, act: impl FnOnce(&mut SharedPort, usize) -> T) -> Option<T> {
        let seat = self.seat.as_ref()?;
        Some(act(&mut seat.port.borrow_mut(), seat.number))
    }

    /// Uses the port that the core has, or one that waits for somebody, or has one opened.
    fn sit(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        let key = self.key();
        let port = self.ports.find(&key).unwrap_or_else(|| {
            let port = self.ports.make(key.clone(), self.calls.clone());
            match self.target.ports.take(&key.place, key.e_d_tov, cx.now) {
                Some(n_port) => port.borrow_mut().opened(cx.now, n_port),
                None => self.open(cx, &port),
            }
            port
        });
        let seat = Seat::take(port, self.node, self.target.port_name, cx.now);
        self.seat = Some(seat);
    }

    fn open(&mut self, cx: &mut Context<'_>, port: &Rc<RefCell<SharedPort>>) {
        let opened = OpenedSite::default();
        let (left, place) = (opened.clone(), self.target.place.clone());
        let owner = self.names.clone().map_or(Owner::Initiator, Owner::Again);
        let ports = self.target.ports.clone();
        let open = move || {
            ports.wait_for_ending(&place);
            let site = Site::open(&place, &owner);
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(site);
            Ok(0)
        };
        self.opening = Some((Rc::clone(port), opened));
        let op = FileOp::Apart {
            lane: Lane::Connect,
            call: Box::new(open),
        };
        cx.file(self.node, self.generation, op);
    }

    /// The port that a thread has opened.
    fn begin(&self, now: Now, opened: &OpenedSite) -> Result<NPort<Initiator<Lease>>, RemoteError> {
        let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let nothing = || io::Error::from(io::ErrorKind::NotConnected);
        let mut site = opened.ok_or_else(nothing).map_err(RemoteError::Connect)??;
        // Each user adds its own.
        site.config.partners = Partners::Only([].into());
        site.config.e_d_tov = self.target.e_d_tov.unwrap_or(site.config.e_d_tov);
        let machine = Initiator::new(SharedPort::settings());
        Ok(NPort::begin(site, machine, now))
    }

    fn close_seat(&mut self) {
        (self.seat, self.stage) = (None, Stage::Idle);
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Down(end) if self.stage == Stage::Up => {
                self.stage = Stage::Idle;
                self.ended.get_or_insert(match end {
                    remote::End::Stuck => End::Stuck,
                    end => End::Lost(end),
                });
            }
            News::Up | News::Down(_) => {}
            News::NoPort(why) => {
                (self.seat, self.stage) = (None, Stage::Idle);
                self.ended = Some(End::NoPort(why));
            }
            News::Done(_) | News::Failed(_) if self.is_given_up => {}
            News::Done(done) => self.heard.push_back(Heard::Answered(done)),
            News::Failed(failed) => self.heard.push_back(Heard::failed(&failed)),
        }
        self.log_in();
    }

    /// Goes on with a target that is there, once nothing of before is.
    fn log_in(&mut self) {
        let is_there = |port: &mut SharedPort, number| {
            port.there(number).is_some() && !port.has_under_way(number)
        };
        if matches!(self.stage, Stage::Seeking(_)) && self.with(is_there) == Some(true) {
            (self.stage, self.is_given_up) = (Stage::Up, false);
            if let Some(seat) = &self.seat {
                let port = seat.port.borrow();
                self.names = port.n_port().map(|n_port| Arc::clone(n_port.names()));
            }
            let node = self.with(|port, number| port.node_name(number)).flatten();
            let same = node.is_some_and(|node| self.nodes.come_to(node));
            self.heard.push_back(Heard::LoggedIn { same });
        }
    }
}

impl Link for FcoeLink {
    fn name(&self) -> &str {
        &self.name
    }

    /// With an N_Port that nothing is made of, too.
    fn is_down(&self) -> bool {
        self.stage == Stage::Idle && self.opening.is_none()
    }

    fn is_up(&self) -> bool {
        self.stage == Stage::Up
    }

    fn is_logged_in(&self) -> bool {
        self.is_up()
    }

    fn awaited(&self) -> String {
        let Target {
            place, port_name, ..
        } = &self.target;
        match self.stage {
            Stage::Up => format!("{} to answer", self.name),
            Stage::Seeking(_) => format!("{port_name} to log in on fcoe://{place}"),
            Stage::Idle | Stage::Leaving => format!("a port on fcoe://{place}"),
        }
    }

    fn group(&self) -> usize {
        self.nodes.last()
    }

    fn has_room(&self) -> bool {
        self.is_up() && self.with(|port, number| port.has_room(number)) == Some(true)
    }

    fn execute(&mut self, now: Now, lun: Lun, request: Request<Lease>) -> bool {
        let execute = |port: &mut SharedPort, number| port.execute(now, number, lun, request);
        self.is_up() && self.with(execute) == Some(true)
    }

    fn log_out(&mut self, now: Now) -> bool {
        if !self.is_up() {
            return false;
        }
        if self.with(|port, _| port.leave(now)) == Some(true) {
            self.stage = Stage::Leaving;
        } else {
            self.stage = Stage::Idle;
            self.ended = Some(End::Lost(remote::End::ByUs));
        }
        true
    }

    fn hand_over(&mut self, now: Now) -> bool {
        let n_port = self.with(|port, _| port.give_back()).flatten();
        let Some(n_port) = n_port else {
            return false;
        };
        self.close_seat();
        self.target.ports.put(n_port, self.target.e_d_tov, now);
        true
    }

    fn give_up(&mut self, now: Now) {
        if self.seat.is_some() {
            self.with(|port, number| port.abandon(now, number));
            (self.stage, self.is_given_up) = (Stage::Idle, true);
            self.ended = Some(End::GivenUp);
        }
    }

    fn next_deadline(&self) -> Option<Now> {
        let seeking = match self.stage {
            Stage::Seeking(until) => Some(until),
            _ => None,
        };
        let port = self.with(|port, _| port.n_port()?.next_deadline());
        port.flatten().into_iter().chain(seeking).min()
    }

    fn expire(&mut self, now: Now) {
        self.with(|port, _| port.expire(now));
        let n_port = |port: &mut SharedPort, _| {
            let n_port = port.n_port()?;
            let ours = n_port.port().wwpn();
            Some((n_port.has_left(), ours, n_port.barrier(), n_port.is_alone()))
        };
        let Some((has_left, ours, barrier, is_alone)) = self.with(n_port).flatten() else {
            return;
        };
        if self.stage == Stage::Leaving && has_left {
            self.stage = Stage::Idle;
            self.ended = Some(End::Lost(remote::End::ByUs));
        }
        let is_seeking = matches!(self.stage, Stage::Seeking(_));
        // One that was there before is waited for.
        if is_seeking && is_alone && self.names.is_none() {
            self.stage = Stage::Idle;
            self.ended = Some(End::Alone(self.target.place.clone()));
        }
        if matches!(self.stage, Stage::Seeking(until) if until <= now) {
            self.stage = Stage::Idle;
            self.ended = Some(match barrier {
                Some(obstacle) => End::Barred(obstacle),
                None => End::NotFound {
                    wwpn: self.target.port_name,
                    place: self.target.place.to_string(),
                    ours,
                },
            });
        }
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        if self.seat.is_none() {
            self.sit(cx);
        }
        self.stage = Stage::Seeking(cx.now + SEEK);
        self.log_in();
        // It is heard then, if the target is there already.
        cx.call_at(cx.now);
    }

    fn connected(
        &mut self,
        cx: &mut Context<'_>,
        _: u32,
        result: io::Result<u64>,
    ) -> Result<(), RemoteError> {
        let Some((port, opened)) = self.opening.take() else {
            return Ok(());
        };
        let result = result.map_err(RemoteError::Connect);
        match result.and_then(|_| self.begin(cx.now, &opened)) {
            Ok(n_port) => port.borrow_mut().opened(cx.now, n_port),
            Err(cause) => {
                self.close_seat();
                port.borrow_mut().failed(&cause.to_string());
                return Err(cause);
            }
        }
        Ok(())
    }

    fn ready(&mut self, cx: &mut Context<'_>, generation: u32) {
        let at = self.watched.iter().position(|one| one.0 == generation);
        let port = at.and_then(|at| self.watched.swap_remove(at).1.upgrade());
        if let Some(port) = port {
            let is_ours = |seat: &Seat| Rc::ptr_eq(&seat.port, &port);
            let is_user = self.seat.as_ref().is_some_and(is_ours);
            port.borrow_mut().ready(cx.now, is_user);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Option<Heard> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Some(heard);
            }
            let news = |port: &mut SharedPort, number| port.news(cx.now, number);
            match self.with(news).flatten() {
                Some(news) => self.hear(news),
                None => break,
            }
        }
        let end = self.ended.take()?;
        if end == End::Lost(remote::End::ByUs) {
            self.close_seat();
        }
        Some(Heard::Ended(link::End::Fcoe(end)))
    }

    fn close(&mut self, _: &mut Context<'_>) {
        self.close_seat();
    }

    fn push(&mut self, cx: &mut Context<'_>) {
        let generation = self.generation;
        if self.with(|port, number| port.push(cx, number, generation)) == Some(true)
            && let Some(seat) = &self.seat
        {
            self.watched.push((generation, Rc::downgrade(&seat.port)));
        }
    }

    fn place(&self) -> Way {
        Way::Fcoe(self.target.clone())
    }

    fn particulars(&self) -> Vec<Group> {
        let groups = self.with(|port, number| {
            let (target, lost) = (port.there(number), port.lost());
            let port = port.n_port()?.port();
            let target = target.and_then(|id| port.remote(id));
            Some(particulars::ports(&self.target.place, port, target, lost))
        });
        groups.flatten().unwrap_or_default()
    }
}

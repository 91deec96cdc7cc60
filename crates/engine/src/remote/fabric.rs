//! FCoE: an N_Port of our own, and the login of a target's with it.
//!
//! The N_Port stays when the login is lost, as it takes over a second to get an address: the target
//! is waited for, and logs in again as soon as it is back. A new login ends at the target what was
//! of the one before (FC-LS-2, PLOGI), so what was under way may be done again.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ether::Place;
use ::io::ring::FileOp;
use block::lease::Lease;
use block::particulars::Group;
use block::volume::{Context, Node};
use fc::initiator::{self, Command, Data, Done, Failed, Fate, Initiator, Why};
use fc::port::Event;
use fc::remote::{self, Partners, RemoteId};
use fc::wire::fcp::Residual;
use fc::wire::names::Wwn;
use scsi::client::{self, Request};
use scsi::medium::Now;
use scsi::task::Attribute;
use scsi::wire::lun::Lun;

use super::link::{self, Answered, Heard, Link};
use super::{RemoteError, Way, particulars};
use crate::fabric::{NPort, Names, NoPort, Site};

/// Where a target port of Fibre Channel is.
#[derive(Clone, Debug)]
pub struct Target {
    /// By which Ethernet port of ours.
    pub place: Place,
    /// Its WWPN.
    pub port_name: Wwn,
    /// E_D_TOV that is proposed to it; `None`: that of the standard.
    pub e_d_tov: Option<Duration>,
}

/// Why there is no login with a target port any more, or there was none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Nobody has that name.
    #[error(
        "no target logs in as {wwpn} within {} s: lunar ls fcoe://{place} tells who is there, and \
         its log whether it lets us in as {ours}",
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
    /// It was there.
    #[error("{}", ended(*.0))]
    Lost(remote::End),
    /// Commands end neither by themselves nor by an abort.
    #[error("the target answers neither commands nor their abort")]
    Stuck,
    /// By us, without waiting for the target.
    #[error("the login was given up")]
    GivenUp,
}

fn ended(end: remote::End) -> &'static str {
    match end {
        remote::End::LoggedOut => "the target logged us out",
        remote::End::Replaced => "the target has begun anew",
        remote::End::Lost(_) => "the target is not heard any more",
        remote::End::ByUs => "logged out",
        remote::End::Stuck => "the target does not end exchanges",
    }
}

/// Our N_Port and the target's, or what is to become of them.
pub(super) struct FabricLink {
    node: Node,
    target: Target,
    name: String,
    /// Ours, for as long as this lives.
    names: Option<Arc<Names>>,
    state: State,
    /// Tells the events of this port from those of earlier ones.
    generation: u32,
    heard: VecDeque<Heard>,
    /// The login has ended, which is told after all that came of it.
    ended: Option<End>,
}

enum State {
    Down,
    /// A thread opens the Ethernet port.
    Opening(Made),
    Open(Box<Open>),
}

/// Where a thread leaves what it has opened.
type Made = Arc<Mutex<Option<Result<Site, NoPort>>>>;

struct Open {
    n_port: NPort<Initiator<Lease>>,
    /// The target, while it is logged in.
    there: Option<RemoteId>,
    stage: Stage,
    /// The ring tells when frames have come.
    watched: bool,
}

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

impl FabricLink {
    pub(super) fn new(node: Node, target: &Target) -> Self {
        Self {
            node,
            target: target.clone(),
            name: target.port_name.to_string(),
            names: None,
            state: State::Down,
            generation: 0,
            heard: VecDeque::new(),
            ended: None,
        }
    }

    fn open(&self) -> Option<&Open> {
        match &self.state {
            State::Open(open) => Some(open),
            _ => None,
        }
    }

    fn open_mut(&mut self) -> Option<&mut Open> {
        match &mut self.state {
            State::Open(open) => Some(open),
            _ => None,
        }
    }

    fn stage(&self) -> Stage {
        self.open().map_or(Stage::Idle, |open| open.stage)
    }

    /// The port that a thread has opened.
    fn begin(&mut self, now: Now, made: &Made) -> Result<(), RemoteError> {
        let made = made.lock().unwrap_or_else(PoisonError::into_inner).take();
        let nothing = || io::Error::from(io::ErrorKind::NotConnected);
        let mut site = made.ok_or_else(nothing).map_err(RemoteError::Connect)??;
        self.names = Some(Arc::clone(&site.names));
        site.config.partners = Partners::Only([self.target.port_name].into());
        site.config.e_d_tov = self.target.e_d_tov.unwrap_or(site.config.e_d_tov);
        let machine = Initiator::new(initiator::Config::default());
        self.state = State::Open(Box::new(Open {
            n_port: NPort::begin(site, machine, now),
            there: None,
            stage: Stage::Seeking(now + SEEK),
            watched: false,
        }));
        Ok(())
    }

    fn event(&mut self, event: Event<initiator::Event<Lease>>) {
        let State::Open(open) = &mut self.state else {
            return;
        };
        match event {
            Event::Up(id) => {
                open.there = Some(id);
                if let Stage::Seeking(_) = open.stage {
                    open.log_in(&mut self.heard);
                }
            }
            Event::Down(id, end) if open.there == Some(id) => {
                open.there = None;
                if open.stage == Stage::Up {
                    open.stage = Stage::Idle;
                    self.ended.get_or_insert(End::Lost(end));
                }
            }
            Event::Fc4(initiator::Event::Done(done)) => {
                self.heard.push_back(Heard::Answered(answered(&done)));
            }
            Event::Fc4(initiator::Event::Failed(failed)) => self.heard.push_back(failure(&failed)),
            Event::Fc4(initiator::Event::Stuck(_)) => self.end(End::Stuck),
            Event::Remark {
                from, violation, ..
            } => tracing::warn!("{from}: {violation}"),
            Event::Fc4(_) | Event::Down(..) | Event::Online(_) | Event::Offline => {}
        }
    }

    /// Without a word: the next login ends at the target what is of this one.
    fn end(&mut self, end: End) {
        self.state = State::Down;
        self.ended = Some(end);
    }
}

impl Open {
    fn log_in(&mut self, heard: &mut VecDeque<Heard>) {
        self.stage = Stage::Up;
        heard.push_back(Heard::LoggedIn { same: true });
    }
}

fn answered(done: &Done<Lease>) -> Answered {
    // What the target says it did not use is not done, though it was sent.
    let unused = match (&done.data, done.residual) {
        (Data::Out { .. }, Residual::Under(left)) => left,
        _ => 0,
    };
    Answered {
        id: done.id as u32,
        status: done.status,
        sense: done.sense.clone(),
        moved: done.moved.saturating_sub(unused) as usize,
    }
}

/// With the login goes everything; else only this command is over, at the target too.
fn failure(failed: &Failed<Lease>) -> Heard {
    match failed.why {
        Why::Ended => {
            let reads = matches!(failed.data, Data::In { .. });
            let open = failed.fate == Fate::Unknown && !reads;
            Heard::Unanswered { open }
        }
        Why::Late => Heard::Late(failed.id as u32),
        _ => Heard::Undone(failed.id as u32),
    }
}

impl Link for FabricLink {
    fn name(&self) -> &str {
        &self.name
    }

    /// With an N_Port that nothing is made of, too.
    fn is_down(&self) -> bool {
        self.stage() == Stage::Idle && !matches!(self.state, State::Opening(_))
    }

    fn is_up(&self) -> bool {
        self.stage() == Stage::Up
    }

    fn is_logged_in(&self) -> bool {
        self.is_up()
    }

    fn group(&self) -> usize {
        0
    }

    fn has_room(&self) -> bool {
        let open = self.open().filter(|open| open.stage == Stage::Up);
        open.is_some_and(|open| open.n_port.port().fc4().room() > 0)
    }

    fn execute(&mut self, now: Now, lun: Lun, request: Request<Lease>) -> bool {
        let Some(open) = self.open_mut() else {
            return false;
        };
        let Some(target) = open.there else {
            return false;
        };
        let command = Command {
            id: u64::from(request.id),
            lun,
            cdb: request.cdb,
            attribute: Attribute::Simple,
            data: match request.data {
                client::Data::None => Data::None,
                client::Data::In(into) => Data::In { into },
                client::Data::Out(from) => Data::Out { from },
            },
            deadline: None,
        };
        let machine = open.n_port.port_mut().fc4_mut();
        machine.execute(now, target, command).is_ok()
    }

    fn log_out(&mut self, now: Now) -> bool {
        if !self.is_up() {
            return false;
        }
        if let Some(open) = self.open_mut() {
            open.n_port.leave(now);
            open.stage = Stage::Leaving;
        }
        true
    }

    fn give_up(&mut self) {
        if self.open().is_some() {
            self.end(End::GivenUp);
        }
    }

    fn next_deadline(&self) -> Option<Now> {
        let open = self.open()?;
        let seeking = match open.stage {
            Stage::Seeking(until) => Some(until),
            _ => None,
        };
        let port = open.n_port.next_deadline();
        port.into_iter().chain(seeking).min()
    }

    fn expire(&mut self, now: Now) {
        let State::Open(open) = &mut self.state else {
            return;
        };
        open.n_port.expire(now);
        if open.stage == Stage::Leaving && open.n_port.has_left() {
            open.stage = Stage::Idle;
            self.ended = Some(End::Lost(remote::End::ByUs));
        }
        if matches!(open.stage, Stage::Seeking(until) if until <= now) {
            open.stage = Stage::Idle;
            self.ended = Some(End::NotFound {
                wwpn: self.target.port_name,
                place: self.target.place.to_string(),
                ours: open.n_port.port().wwpn(),
            });
        }
    }

    fn connect(&mut self, cx: &mut Context<'_>) {
        if let State::Open(open) = &mut self.state {
            match open.there {
                Some(_) => open.log_in(&mut self.heard),
                None => open.stage = Stage::Seeking(cx.now + SEEK),
            }
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let made = Made::default();
        let (left, place, names) = (made.clone(), self.target.place.clone(), self.names.clone());
        let open = move || {
            let site = Site::open(&place, names);
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(site);
            Ok(0)
        };
        self.state = State::Opening(made);
        let op = FileOp::Blocking(Box::new(open));
        cx.file(self.node, self.generation, op);
    }

    fn connected(
        &mut self,
        cx: &mut Context<'_>,
        generation: u32,
        result: io::Result<u64>,
    ) -> Result<(), RemoteError> {
        let State::Opening(made) = &self.state else {
            return Ok(());
        };
        if generation != self.generation {
            return Ok(());
        }
        let made = Arc::clone(made);
        self.state = State::Down;
        result.map_err(RemoteError::Connect)?;
        self.begin(cx.now, &made)
    }

    fn ready(&mut self, cx: &mut Context<'_>, generation: u32) {
        if generation == self.generation
            && let Some(open) = self.open_mut()
        {
            open.watched = false;
            open.n_port.receive(cx.now);
        }
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Option<Heard> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Some(heard);
            }
            match self.open_mut().and_then(|open| open.n_port.poll()) {
                Some(event) => self.event(event),
                None => break,
            }
        }
        let end = self.ended.take()?;
        if end == End::Lost(remote::End::ByUs) {
            self.state = State::Down;
        }
        Some(Heard::Ended(link::End::Fabric(end)))
    }

    fn close(&mut self, _: &mut Context<'_>) {
        self.state = State::Down;
    }

    fn push(&mut self, cx: &mut Context<'_>) {
        let (node, generation) = (self.node, self.generation);
        let Some(open) = self.open_mut() else {
            return;
        };
        open.n_port.transmit();
        if !open.watched {
            let waited = open.n_port.waited();
            let watched = match open.n_port.streams() {
                true => cx.watch_later(node, generation, waited),
                false => cx.watch(node, generation, waited),
            };
            open.watched = watched.is_ok();
            if let Err(cause) = watched {
                tracing::error!("{}: cannot be listened to: {cause}", open.n_port.place());
            }
        }
    }

    fn place(&self) -> Way {
        Way::Fcoe(self.target.clone())
    }

    fn particulars(&self) -> Vec<Group> {
        let Some(open) = self.open() else {
            return Vec::new();
        };
        let port = open.n_port.port();
        let target = open.there.and_then(|id| port.remote(id));
        particulars::ports(&self.target.place, port, target)
    }
}

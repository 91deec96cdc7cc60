//! N_Ports between two uses.
//!
//! To open a unit, it is asked what it is; a moment later it is used, by another thread. To get an
//! address takes VN2VN a second each time, and names that are given back may be another's then, so
//! the port that has asked stays, logged in, for the next user.
//!
//! The next user is a reactor, which may not wait for a logout. So a port without a next user
//! is ended by a thread that was started with its rest.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ::io::cpu;
use ::io::ether::Place;
use ::io::ether::dcb::DcbUse;
use ::io::ring::{AnyRing, Ring, RingKind, SocketRing, Token};
use fc::initiator::{FcpInitiator, IdleInitiator};
use fc::port::{Fc4Layer, PortMode};
use fc::wire::ethernet::VlanTag;
use scsi::medium::Now;

use super::further::FurtherPlaces;
use super::{Attachment, Clock, FrameLosses, LINGER, NPort, NoPort, PollInterest, PortOwner};

/// N_Ports without a user. Those that are not used again log out, after a while or at the
/// end.
#[derive(Clone, Debug, Default)]
pub struct IdlePorts(Arc<IdlePortState>);

#[derive(Debug)]
struct IdlePortState {
    ports: Mutex<IdlePortList>,
    /// Some have logged out.
    ended: Condvar,
    /// How long a port is of use.
    fresh: Duration,
}

/// What uses of an initiator's port must have in common, besides its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTerms {
    /// How it finds others.
    pub mode: PortMode,
    /// The tag that its frames carry.
    pub tag: Option<VlanTag>,
    /// E_D_TOV that its logins propose; `None`: that of the standard.
    pub e_d_tov: Option<Duration>,
    /// WWPNs of which it has one, as a further port of its ENode; none: its own.
    pub further: FurtherPlaces,
    /// What it makes of DCB.
    pub dcb: DcbUse,
}

impl PortTerms {
    /// Opens a port that goes by them.
    ///
    /// # Errors
    ///
    /// See [`Attachment::open_by`](super::Attachment::open_by).
    pub fn open(&self, place: &Place, owner: &PortOwner) -> Result<Attachment, NoPort> {
        let open = |owner: &PortOwner| Attachment::open_by(place, owner, (self.mode, self.tag));
        let mut site = open(owner)?;
        site.config.e_d_tov = self.e_d_tov.unwrap_or(site.config.e_d_tov);
        site.use_dcb(self.dcb)?;
        if self.further != FurtherPlaces::default() {
            site.make_further(self.further, open)?;
        }
        Ok(site)
    }
}

#[derive(Debug, Default)]
struct IdlePortList {
    idle: Vec<IdlePort>,
    /// Where some are logging out.
    ending: Vec<Place>,
}

#[derive(Debug)]
struct IdlePort {
    /// Until it is taken up again.
    n_port: Option<Box<NPort<IdleInitiator>>>,
    place: Place,
    /// What its logins say, and where they go.
    terms: PortTerms,
    /// When its time began.
    epoch: Instant,
    /// When it was put here.
    since: Instant,
}

/// Nothing speaks for an idle port. After a while its neighbours give it up, which it would learn
/// late: they miss it after 20 s.
const FRESH: Duration = Duration::from_secs(5);

/// How long is waited for the logout of another port: ten times what it takes.
const PATIENCE: Duration = Duration::from_secs(1);

impl IdlePorts {
    /// Leaves a port here, with no command in flight.
    pub fn put<L>(&self, n_port: NPort<FcpInitiator<L>>, terms: PortTerms, now: Now)
    where
        FcpInitiator<L>: Fc4Layer,
    {
        let since = Instant::now();
        let idle = IdlePort {
            epoch: since
                .checked_sub(n_port.clock.of_port(now))
                .unwrap_or(since),
            place: n_port.asked().clone(),
            n_port: Some(Box::new(n_port.with_fc4(FcpInitiator::rest))),
            terms,
            since,
        };
        // The thread may look for it as soon as it runs: it finds it, or waits until it is there.
        let mut ports = self.0.lock();
        let Err(cause) = self.end_later() else {
            return ports.idle.push(idle);
        };
        // Without a thread to end it, it ends now.
        drop(ports);
        tracing::warn!(
            "{}: cannot keep the port for its next use, so it logs out: {cause}",
            idle.place
        );
    }

    fn end_later(&self) -> io::Result<()> {
        let (shared, fresh) = (Arc::downgrade(&self.0), self.0.fresh);
        cpu::spawn_helper("idle port", move || {
            thread::sleep(fresh);
            end_stale(&shared);
        })?;
        Ok(())
    }

    /// Takes one up, if there is one at this place whose logins say the same.
    pub fn take<L>(
        &self,
        place: &Place,
        terms: PortTerms,
        now: Now,
    ) -> Option<NPort<FcpInitiator<L>>>
    where
        FcpInitiator<L>: Fc4Layer,
    {
        let mut idle = {
            let idle = &mut self.0.lock().idle;
            let fits = |one: &IdlePort| {
                one.place == *place && one.terms == terms && !one.is_stale(self.0.fresh)
            };
            idle.swap_remove(idle.iter().position(fits)?)
        };
        let mut n_port = idle.n_port.take()?.with_fc4(FcpInitiator::resume);
        n_port.clock = Clock::of(idle.epoch.elapsed(), now);
        n_port.receive(now);
        Some(n_port)
    }

    /// Waits for ports at this place that are ending, as the next port opened gets their names.
    pub fn wait_for_ending(&self, place: &Place) {
        let fresh = self.0.fresh;
        let is_ending = |ports: &mut IdlePortList| {
            let mut idle = ports.idle.iter();
            ports.ending.contains(place)
                || idle.any(|one| one.place == *place && one.is_stale(fresh))
        };
        let ports = self.0.lock();
        drop(self.0.ended.wait_timeout_while(ports, PATIENCE, is_ending));
    }
}

impl Default for IdlePortState {
    fn default() -> Self {
        Self {
            ports: Mutex::default(),
            ended: Condvar::new(),
            fresh: FRESH,
        }
    }
}

impl IdlePortState {
    fn lock(&self) -> MutexGuard<'_, IdlePortList> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes those out that were here for too long.
    fn stale(&self) -> Vec<IdlePort> {
        let mut ports = self.lock();
        let stale = ports.idle.extract_if(.., |idle| idle.is_stale(self.fresh));
        let stale: Vec<_> = stale.collect();
        ports
            .ending
            .extend(stale.iter().map(|idle| idle.place.clone()));
        stale
    }

    fn has_ended(&self, place: &Place) {
        let ending = &mut self.lock().ending;
        if let Some(at) = ending.iter().position(|one| one == place) {
            ending.swap_remove(at);
        }
        self.ended.notify_all();
    }
}

/// Logs out those that were here for too long. No user is locked out meanwhile, and what else is
/// there ends with its owner, not with this.
fn end_stale(shared: &Weak<IdlePortState>) {
    let stale = shared.upgrade().map(|shared| shared.stale());
    for idle in stale.into_iter().flatten() {
        let place = idle.place.clone();
        drop(idle);
        shared.upgrade().inspect(|shared| shared.has_ended(&place));
    }
}

impl IdlePort {
    fn is_stale(&self, fresh: Duration) -> bool {
        self.since.elapsed() >= fresh
    }
}

impl Drop for IdlePort {
    fn drop(&mut self) {
        if let Some(n_port) = self.n_port.take()
            && let Err(cause) = log_out(*n_port, self.epoch)
        {
            tracing::debug!("{}: logout: {cause}", self.place);
        }
    }
}

/// Takes as long as a logout does.
fn log_out(mut n_port: NPort<IdleInitiator>, epoch: Instant) -> io::Result<()> {
    n_port.clock = Clock::default();
    BlockingPort::new(n_port, epoch)?.leave()
}

/// An N_Port that one thread waits for.
pub struct BlockingPort<F: Fc4Layer> {
    ring: AnyRing,
    n_port: NPort<F>,
    /// What the time of its thread counts from.
    epoch: Instant,
    is_watched: bool,
}

impl<F: Fc4Layer> BlockingPort<F> {
    /// A port whose thread counts time from `epoch`.
    ///
    /// # Errors
    ///
    /// When there is no ring to wait with.
    pub fn new(n_port: NPort<F>, epoch: Instant) -> io::Result<Self> {
        let (ring, _) = AnyRing::open(RingKind::Epoll)?;
        Ok(Self {
            ring,
            n_port,
            epoch,
            is_watched: false,
        })
    }

    /// The port.
    pub const fn n_port(&self) -> &NPort<F> {
        &self.n_port
    }

    /// The port, to be told something.
    pub const fn n_port_mut(&mut self) -> &mut NPort<F> {
        &mut self.n_port
    }

    /// What time it is for the port.
    pub fn now(&self) -> Now {
        self.n_port.time(self.epoch.elapsed())
    }

    /// Sends, waits until frames have come or something is due, for `limit` at the most, and does
    /// that. What the port tells is passed over: it is in its state.
    ///
    /// # Errors
    ///
    /// When the ring fails.
    pub fn turn(&mut self, limit: Duration) -> io::Result<()> {
        self.n_port.transmit();
        if !self.is_watched && self.n_port.listen() != PollInterest::NotYet {
            self.ring.watch(self.n_port.poll_fd(), Token(0))?;
            self.is_watched = true;
        }
        let now = self.epoch.elapsed();
        let deadline = self.n_port.next_deadline();
        let left = deadline.map(|at| at.saturating_sub(now).min(limit));
        self.ring.wait(Some(left.unwrap_or(limit)))?;
        while self.ring.next_event().is_some() {
            self.is_watched = false;
            self.n_port.receive(self.epoch.elapsed());
        }
        self.n_port.expire(self.epoch.elapsed());
        while self.n_port.poll().is_some() {}
        Ok(())
    }

    /// Logs out everywhere, and waits until that is done.
    ///
    /// # Errors
    ///
    /// When the ring fails.
    pub fn leave(&mut self) -> io::Result<()> {
        self.n_port.leave(self.epoch.elapsed());
        while !self.n_port.has_left() {
            self.turn(LINGER)?;
        }
        Ok(())
    }

    /// Frames that were lost since the port was opened, if the kernel tells.
    pub fn lost(&mut self) -> Option<FrameLosses> {
        self.n_port.lost()
    }
}

impl<L> BlockingPort<FcpInitiator<L>>
where
    FcpInitiator<L>: Fc4Layer,
{
    /// Leaves the port there for the next user, who has the same terms.
    pub fn put(self, ports: &IdlePorts, terms: PortTerms) {
        ports.put(self.n_port, terms, self.epoch.elapsed());
    }
}

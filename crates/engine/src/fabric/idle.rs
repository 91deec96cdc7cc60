//! N_Ports between two uses.
//!
//! To open a unit, it is asked what it is; a moment later it is used, by another thread. To get an
//! address takes VN2VN a second each time, and names that are given back may be another's then, so
//! the port that has asked stays, logged in, for whoever comes next.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::io::ether::Place;
use ::io::ring::{AnyRing, Kind, Ring, SocketRing, Token};
use fc::initiator::{AtRest, Initiator};
use scsi::medium::Now;

use super::{Clock, NPort};

/// N_Ports that nobody uses now. Those that are not taken up again log out at the end.
#[derive(Clone, Debug, Default)]
pub struct IdlePorts(Arc<Mutex<Vec<Idle>>>);

#[derive(Debug)]
struct Idle {
    /// Until it is taken up again.
    n_port: Option<Box<NPort<AtRest>>>,
    /// How soon a frame is lost, as its logins say.
    e_d_tov: Option<Duration>,
    /// When its time began.
    epoch: Instant,
    /// When it was put here.
    since: Instant,
}

/// Nobody speaks for an idle port. After a while its neighbours give it up, which it would learn
/// late: they miss it after 20 s.
const FRESH: Duration = Duration::from_secs(5);

impl IdlePorts {
    /// Leaves a port here, with no command under way.
    pub(crate) fn put<L>(&self, n_port: NPort<Initiator<L>>, e_d_tov: Option<Duration>, now: Now)
    where
        Initiator<L>: fc::port::Fc4,
    {
        let since = Instant::now();
        let idle = Idle {
            epoch: since
                .checked_sub(n_port.clock.of_port(now))
                .unwrap_or(since),
            n_port: Some(Box::new(n_port.below(Initiator::rest))),
            e_d_tov,
            since,
        };
        let mut idles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idles.push(idle);
    }

    /// Takes one up, if there is one at this place whose logins say the same.
    pub(crate) fn take<L>(
        &self,
        place: &Place,
        e_d_tov: Option<Duration>,
        now: Now,
    ) -> Option<NPort<Initiator<L>>>
    where
        Initiator<L>: fc::port::Fc4,
    {
        let mut idles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |idle: &Idle| {
            let its = idle.n_port.as_ref().map(|n_port| n_port.place());
            its == Some(place) && idle.e_d_tov == e_d_tov
        };
        let at = idles.iter().position(fits)?;
        let mut idle = idles.swap_remove(at);
        if idle.since.elapsed() > FRESH {
            return None;
        }
        let mut n_port = idle.n_port.take()?.below(Initiator::resume);
        n_port.clock = Clock::of(idle.epoch.elapsed(), now);
        n_port.receive(now);
        Some(n_port)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(n_port) = self.n_port.take() {
            let place = n_port.place().clone();
            if let Err(cause) = log_out(*n_port, self.epoch) {
                tracing::debug!("{place}: the logout: {cause}");
            }
        }
    }
}

/// Takes as long as a logout does.
fn log_out(mut n_port: NPort<AtRest>, epoch: Instant) -> std::io::Result<()> {
    let (mut ring, _) = AnyRing::open(Kind::Epoll)?;
    n_port.clock = Clock::default();
    n_port.leave(epoch.elapsed());
    let mut is_watched = false;
    loop {
        n_port.transmit();
        if !std::mem::replace(&mut is_watched, true) {
            ring.watch(n_port.waited(), Token(0))?;
        }
        let left = n_port.next_deadline();
        ring.wait(left.map(|at| at.saturating_sub(epoch.elapsed())))?;
        while ring.next_event().is_some() {
            is_watched = false;
        }
        let now = epoch.elapsed();
        n_port.receive(now);
        while n_port.poll().is_some() {}
        n_port.expire(now);
        if n_port.has_left() {
            return Ok(());
        }
    }
}

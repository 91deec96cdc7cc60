//! Asking a remote unit what it is, before anything serves it.

use std::time::{Duration, Instant};

use ::io::memory::Pool;
use ::io::ring::{AnyRing, Ring, RingEvent, RingKind};
use block::identity::DetailGroup;
use block::volume::{Context, CoreContext};
use scsi::client::{Client, Facts};
use scsi::medium::Now;

use super::backoff::REDIRECTIONS;
use super::remote_unit::{RemoteUnit, UnitEvent};
use super::resting_connection::RestingConnection;
use super::wait_notice::WaitNotice;
use super::{RemoteError, RemoteSettings, TransportAddress};

/// How long all of it may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Memory for parameter data comes from the heap; the pool only has to be there.
const POOL: usize = 1 << 20;

/// What there is to be known of a unit.
pub(super) struct Probed {
    pub(super) facts: Facts,
    /// What the session was like.
    pub(super) session: Vec<DetailGroup>,
    /// Where the target is in the end.
    pub(super) found: TransportAddress,
    /// The session, for the first that uses the unit.
    pub(super) resting: Option<RestingConnection>,
}

/// Asks a unit by the session of this number.
pub(super) fn probe(settings: &RemoteSettings, number: u16) -> Result<Probed, RemoteError> {
    let mut probe = UnitProbe::new(settings, number).map_err(RemoteError::Ring)?;
    let facts = probe.facts();
    probe.depart();
    let facts = facts?;
    let session = probe.machine.link.particulars();
    // Several sessions are asked for together.
    let resting = match settings.sessions {
        1 => probe.rest(),
        _ => None,
    };
    if resting.is_none() {
        probe.log_out();
    }
    Ok(Probed {
        facts,
        session,
        found: probe.machine.link.place(),
        resting,
    })
}

struct UnitProbe {
    ring: AnyRing,
    machine: RemoteUnit,
    lun: String,
    start: Instant,
    patience: WaitNotice,
}

impl UnitProbe {
    fn new(settings: &RemoteSettings, number: u16) -> std::io::Result<Self> {
        let (ring, _) = AnyRing::open(RingKind::Epoll)?;
        let core = CoreContext::new(Pool::new(POOL)?);
        let start = Instant::now();
        Ok(Self {
            ring,
            machine: RemoteUnit::new(settings, Client::default(), number, &core),
            lun: settings.lun.to_string(),
            start,
            patience: WaitNotice::new(start),
        })
    }

    fn facts(&mut self) -> Result<Facts, RemoteError> {
        let mut redirections = 0;
        self.act(|machine, cx| machine.link.connect(cx));
        while self.start.elapsed() < LIMIT {
            match self.turn()? {
                Some(UnitEvent::Ready) => {
                    if let Some(facts) = self.machine.client.facts() {
                        return Ok(facts.clone());
                    }
                }
                Some(UnitEvent::Refused(refusal)) => {
                    let lun = self.lun.clone();
                    return Err(RemoteError::Unit { lun, refusal });
                }
                Some(UnitEvent::Ended(end)) if self.machine.link.follow(&end) => {
                    redirections += 1;
                    if redirections > REDIRECTIONS {
                        return Err(RemoteError::Redirected(redirections));
                    }
                    self.act(|machine, cx| machine.link.connect(cx));
                }
                Some(UnitEvent::Ended(end)) => return Err(RemoteError::Session(end)),
                _ => {}
            }
        }
        Err(RemoteError::Late(LIMIT.as_secs()))
    }

    /// Leaves no registration behind.
    fn depart(&mut self) {
        if !self.machine.client.depart() {
            return;
        }
        while self.start.elapsed() < LIMIT {
            match self.turn() {
                Ok(Some(UnitEvent::Departed | UnitEvent::Ended(_))) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Keeps the session, if nothing is in flight.
    fn rest(&mut self) -> Option<RestingConnection> {
        let (socket, session) = self.machine.link.rest()?;
        Some(RestingConnection::new(self.ring.release(socket), session))
    }

    /// In good order, if the target plays its part.
    fn log_out(&mut self) {
        let now = self.now();
        if self.machine.link.hand_over(now) || !self.machine.link.log_out(now) {
            return;
        }
        while self.start.elapsed() < LIMIT {
            match self.turn() {
                Ok(Some(UnitEvent::Ended(end))) => {
                    if !end.is_wanted() {
                        tracing::debug!("logout after the inquiry: {end}");
                    }
                    return;
                }
                Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Waits, and lets the machine have what came. Returns what it tells.
    fn turn(&mut self) -> Result<Option<UnitEvent>, RemoteError> {
        if let Some(told) = self.act(RemoteUnit::drive) {
            return Ok(Some(told));
        }
        self.patience
            .wait(Instant::now(), self.machine.link.awaited());
        let left = LIMIT.saturating_sub(self.start.elapsed());
        let left = self
            .patience
            .left(Instant::now())
            .map_or(left, |until| until.min(left));
        let deadline = self.machine.next_deadline();
        let wait = deadline.map_or(left, |at| at.saturating_sub(self.now()).min(left));
        self.ring.wait(Some(wait)).map_err(RemoteError::Ring)?;
        while let Some(event) = self.ring.next_event() {
            self.event(event)?;
        }
        let now = self.now();
        self.machine.expire(now);
        Ok(self.act(RemoteUnit::drive))
    }

    fn event(&mut self, event: RingEvent<::io::ring::Received>) -> Result<(), RemoteError> {
        let now = self.now();
        match event {
            RingEvent::File { token, result, .. } => {
                let slot = token.0 as u32;
                self.act(|machine, cx| machine.link.connected(cx, slot, result))?;
            }
            RingEvent::Received { token, bytes } => {
                let bytes = bytes.as_deref().map_err(|error| error.kind().into());
                let rest = self.machine.link.received(now, token.0 as u32, &bytes);
                self.machine.link.keep(rest);
            }
            RingEvent::Sent {
                token,
                batch,
                result,
            } => self.machine.link.sent(token.0 as u32, batch, &result),
            RingEvent::Ready { token } => self.act(|machine, cx| {
                machine.link.ready(cx, token.0 as u32);
            }),
            RingEvent::Accepted { .. } | RingEvent::NotAccepted { .. } | RingEvent::Woken => {}
        }
        Ok(())
    }

    fn now(&self) -> Now {
        self.start.elapsed()
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut RemoteUnit, &mut Context<'_>) -> T) -> T {
        let now = self.now();
        let mut cx = Context {
            ring: &mut self.ring,
            done: &mut Vec::new(),
            now,
            call: &mut None,
        };
        act(&mut self.machine, &mut cx)
    }
}

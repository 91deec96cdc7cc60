//! The thread that carries a switch: it moves frames between Ethernet ports as the machine says.
//!
//! A turn takes what has come in at the ports that are ready, does what is due, has every port
//! send, and sleeps until something happens.
//!
//! All ports are on this one thread. What forwarding a frame takes is in the machine's
//! [`ForwardTable`](fc::fabric::ForwardTable), a value that does not change: with more threads,
//! each has that of the moment for its own ports, and hands on what is for the machine.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ::io::ring::{AnyRing, Ring, RingEvent, SocketRing, Token};
use fc::fabric::zones::Zones;
use fc::fabric::{DropReason, PortNumber, Switch, Verdict};
use fc::wire::ethernet::VlanTag;
use runtime::journal::Journal;
use runtime::n_port::LinkProblem;
use scsi::medium::Now;

use super::egress::EgressOf;
use super::fast_path::SwitchFastPath;
use super::holdback::{BatchCount, Holdback};
use super::ids_keeper::IdsKeeper;
use super::lldp::LldpAgents;
use super::login_log::LoginLog;
use super::options::FastPathChoice;
use super::orders::SwitchOrder;
use super::pfc_watch::PfcWatch;
use super::port::{PassingFrame, Sent, SwitchPort};
use super::status::SwitchTeller;

/// A switch with its ports.
pub(super) struct SwitchCore {
    ring: AnyRing,
    pub(super) switch: Switch,
    pub(super) lldp: LldpAgents,
    /// Those that are active.
    pub(super) zones: Arc<Zones>,
    pub(super) ports: Vec<SwitchPort>,
    epoch: Instant,
    orders: Receiver<SwitchOrder>,
    pub(super) ids: Option<IdsKeeper>,
    holdback: Holdback,
    pub(super) fast_path: SwitchFastPath,
    /// How each port is waited for.
    watches: Vec<Watch>,
    pub(super) logins: LoginLog,
    pub(super) journal: Journal,
    /// What tells other programs of the switch.
    pub(super) teller: Option<SwitchTeller>,
    /// When errors that interfaces count are to be read again.
    pub(super) errors_due: Now,
    /// What tells which interfaces have PFC.
    pub(super) pfc: Option<PfcWatch>,
    /// All ports were logged out. It ends when that has been sent, or then.
    ends: Option<Now>,
}

/// How a port is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    /// It is not, as something has come in.
    No,
    /// The ring tells when something comes in.
    Ring,
    /// The ring cannot, so it is looked for by the clock. The log has told of it.
    Clock,
}

/// For how long a switch that ends waits for its last words to leave.
const LINGER: Duration = Duration::from_secs(1);

/// How often ports are looked at that the ring does not wait for: cables that are held back, and
/// those for which the kernel has no memory.
const LOOK: Duration = Duration::from_millis(1);

impl SwitchCore {
    pub(super) fn new(
        ring: AnyRing,
        (switch, zones, lldp): (Switch, Arc<Zones>, LldpAgents),
        ports: Vec<SwitchPort>,
        epoch: Instant,
        orders: Receiver<SwitchOrder>,
        ids: Option<IdsKeeper>,
    ) -> Self {
        Self {
            ring,
            switch,
            lldp,
            zones,
            epoch,
            orders,
            ids,
            holdback: Holdback::new(ports.len()),
            fast_path: SwitchFastPath::default(),
            watches: vec![Watch::No; ports.len()],
            logins: LoginLog::new(ports.len()),
            journal: Journal::default(),
            teller: None,
            errors_due: Now::ZERO,
            pfc: None,
            ends: None,
            ports,
        }
    }

    /// Has the kernel forward what it can by itself.
    pub(super) fn start_fast_path(&mut self, choice: FastPathChoice) {
        self.fast_path = SwitchFastPath::start(choice, &mut self.ports);
    }

    /// Switches until it is told to stop.
    ///
    /// # Errors
    ///
    /// When the ring fails.
    pub(super) fn run(&mut self) -> io::Result<()> {
        loop {
            self.flush();
            if self.has_ended() {
                return Ok(());
            }
            self.watch();
            self.ring.wait(self.patience())?;
            self.take_events();
            let now = self.now();
            self.look(now);
            if self.switch.next_deadline().is_some_and(|at| at <= now) {
                self.switch.expire(now);
            }
            self.lldp.expire(now);
            self.report(now);
            self.answer(now);
        }
    }

    fn now(&self) -> Now {
        self.epoch.elapsed()
    }

    /// Has every port send what it has.
    fn flush(&mut self) {
        let mut egress = EgressOf {
            now: self.now(),
            switch: &mut self.switch,
            lldp: &mut self.lldp,
            number: number(0),
        };
        for (at, port) in self.ports.iter_mut().enumerate() {
            egress.number = number(at);
            port.flush(&mut egress);
            self.fast_path.has_flushed(at, port);
            self.holdback.waits(at, port.queued());
        }
    }

    fn has_ended(&self) -> bool {
        let has_more = || self.ports.iter().any(SwitchPort::has_more);
        self.ends.is_some_and(|at| at <= self.now() || !has_more())
    }

    /// Has the ring wait for every port that may be read.
    fn watch(&mut self) {
        for (at, port) in self.ports.iter().enumerate() {
            if self.watches[at] == Watch::Ring || self.holdback.is_held(at) {
                continue;
            }
            let watched = self.ring.watch(port.waited(), Token(at as u64));
            let is_new = self.watches[at] != Watch::Clock;
            self.watches[at] = match watched {
                Ok(()) => Watch::Ring,
                Err(_) => Watch::Clock,
            };
            if let Err(cause) = watched
                && is_new
            {
                let place = port.place();
                tracing::error!("{place}: cannot wait for frames, so polling for them: {cause}");
            }
        }
    }

    /// How long there is nothing to do.
    fn patience(&self) -> Option<Duration> {
        let now = self.now();
        let deadlines = [
            self.switch.next_deadline(),
            self.lldp.next_deadline(),
            self.ends,
            self.logins.next_deadline(),
        ];
        let left = deadlines.into_iter().flatten().min();
        let left = left.map(|at| at.saturating_sub(now));
        let is_watched = self.watches.iter().all(|watch| *watch == Watch::Ring);
        left.into_iter().chain((!is_watched).then_some(LOOK)).min()
    }

    fn take_events(&mut self) {
        while let Some(event) = self.ring.next_event() {
            match event {
                RingEvent::Ready { token } => {
                    let at = token.0 as usize;
                    self.watches[at] = Watch::No;
                    self.serve(at);
                }
                RingEvent::Woken => self.obey(),
                _ => {}
            }
        }
    }

    /// Looks at the ports that the ring did not wait for.
    fn look(&mut self, now: Now) {
        for at in 0..self.ports.len() {
            if self.holdback.is_held(at) || self.watches[at] == Watch::Clock {
                self.serve_at(now, at);
            }
        }
    }

    fn serve(&mut self, at: usize) {
        self.serve_at(self.now(), at);
    }

    /// Something has come in at a port, or it has room, or its link has changed.
    fn serve_at(&mut self, now: Now, at: usize) {
        self.ports[at].resume();
        if !self.ports[at].is_cable() || self.holdback.may_read(now, at) {
            self.receive(now, at);
        }
    }

    /// Takes a batch of frames.
    fn receive(&mut self, now: Now, at: usize) {
        let Some(mut attachment) = self.ports[at].take() else {
            return;
        };
        let (begun, mut count) = (self.now(), BatchCount::default());
        attachment.ether.receive(|frame, tci| {
            let is_forwarded = self.forward(now, at, frame, tci);
            count.forwarded += usize::from(is_forwarded);
            count.others += usize::from(!is_forwarded);
        });
        self.ports[at].put_back(attachment);
        if self.ports[at].is_cable() {
            let ended = self.now();
            let spent = ended.saturating_sub(begun);
            self.holdback.was_read(ended, at, count, spent);
        }
        self.look_for_news(now, at);
    }

    /// Has the machine look at a frame, and sends it on if it is to go on: it is copied once, from
    /// where it came in to where it leaves. `false` if it does not go on.
    fn forward(&mut self, now: Now, at: usize, frame: &[u8], tci: Option<u16>) -> bool {
        let tag = tci.map(VlanTag::decode);
        if LldpAgents::takes(frame) {
            self.hear_lldp(now, at, frame, tag);
            return false;
        }
        let verdict = self.switch.receive_tagged(now, number(at), frame, tag);
        let Verdict::Forward(way) = verdict else {
            return false;
        };
        let egress = usize::from(way.egress.0);
        let frame = PassingFrame {
            way,
            since: now,
            ingress: number(at),
            bytes: self.fast_path.learn(number(at), &way, frame),
        };
        self.holdback.feeds(at, egress);
        if self.ports[egress].send(&frame) == Sent::Congested {
            let undelivered = frame.undelivered();
            self.switch
                .count_undelivered(DropReason::Congested, &undelivered);
        }
        self.holdback.waits(egress, self.ports[egress].queued());
        true
    }

    fn hear_lldp(&mut self, now: Now, at: usize, frame: &[u8], tag: Option<VlanTag>) {
        if let Err((from, violation)) = self.lldp.receive(now, at, frame, tag) {
            self.tell_violation(now, self.ports[at].place(), from, violation);
        }
    }

    fn look_for_news(&mut self, now: Now, at: usize) {
        let port = &mut self.ports[at];
        match port.news() {
            Ok(Some((link, obstacle))) => {
                let is_up = link.up && !obstacle.as_ref().is_some_and(LinkProblem::is_barrier);
                match obstacle {
                    Some(obstacle) => tracing::warn!("{obstacle}"),
                    None => {
                        let place = port.place();
                        tracing::info!("{place}: the link is up, with MTU {}", link.mtu);
                    }
                }
                self.switch.resize(now, number(at), link.mtu as usize);
                self.switch.link(now, number(at), is_up);
                self.lldp.link(now, at, is_up);
                self.fast_path.look_at(at, &mut self.ports[at]);
            }
            Ok(None) => {}
            Err(cause) => tracing::error!("{}: cannot read its link: {cause}", port.place()),
        }
    }

    /// Does what other threads have ordered.
    fn obey(&mut self) {
        let now = self.now();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                SwitchOrder::Stop => {
                    self.switch.shut_down(now);
                    self.lldp.shut_down(now);
                    self.ends = Some(now + LINGER);
                }
                SwitchOrder::SetZones(zones) => {
                    self.switch.set_zones(now, Arc::clone(&zones));
                    let table = self.switch.forwarding();
                    self.fast_path
                        .keep(|egress, s_id, d_id| table.allows(egress, (s_id, d_id)).is_ok());
                    self.zones = zones;
                    self.tell_zones();
                }
                SwitchOrder::Tell => self.tell_counters(),
                SwitchOrder::PfcChanged(at) => {
                    self.fast_path.attach_anew(at, &mut self.ports[at]);
                }
                SwitchOrder::RestoreIds(ids) => self.restore_ids(ids),
                // Who asked may have lost patience.
                SwitchOrder::Survey(asker) => drop(asker.send(self.survey())),
            }
        }
    }
}

/// The number of a port in the machine, which counts them as this does.
const fn number(at: usize) -> PortNumber {
    PortNumber(at as u16)
}

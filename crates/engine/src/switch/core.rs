//! A thread that carries a switch: it moves frames between Ethernet ports as the machine says.
//!
//! A turn takes what has come in at the ports that are ready, does what is due, has every port
//! send, and sleeps until something happens.
//!
//! One thread may have all ports, and the machine. With more threads each has some of the ports,
//! forwards what comes in there by a snapshot of the machine's
//! [`ForwardTable`](fc::fabric::ForwardTable), and sends at all ports itself; it gives the first
//! one what is for the machine ([`super::exchange`]).

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};

use ::io::ether::fast_path::FrameNumber;
use ::io::ring::{AnyRing, Ring, RingEvent, SocketRing, Token};
use fc::fabric::{DropReason, Forwarding, PortNumber, Verdict};
use fc::wire::ethernet::VlanTag;
use runtime::n_port::LinkProblem;
use scsi::medium::Now;

use super::backlog::Backlog;
use super::backpressure::{Backpressure, BatchCount};
use super::egress::{EgressOf, EgressSide};
use super::fast_path::SwitchFastPath;
use super::lldp::LldpAgents;
use super::machine::SwitchMachine;
use super::mail::{LateMail, MailItem};
use super::outbox::Outbox;
use super::peer::CorePeer;
use super::port::{PassingFrame, Sent, SwitchPort};
use super::ports::{CorePorts, PortBoard};

/// What a core is made of, beside its ring.
pub(super) struct CoreParts {
    pub(super) epoch: Instant,
    pub(super) ports: CorePorts,
    pub(super) fast_path: SwitchFastPath,
    pub(super) board: PortBoard,
    /// On core 0.
    pub(super) machine: Option<Box<SwitchMachine>>,
    /// Where there are several cores.
    pub(super) peer: Option<CorePeer>,
}

/// A core of a switch, with its ports.
pub(super) struct SwitchCore {
    ring: AnyRing,
    epoch: Instant,
    pub(super) ports: CorePorts,
    board: PortBoard,
    pub(super) machine: Option<Box<SwitchMachine>>,
    pub(super) peer: Option<CorePeer>,
    /// On core 0 of several.
    pub(super) outbox: Option<Outbox>,
    /// The mail that is read, or an empty ring for it.
    pub(super) mail: Backlog<MailItem>,
    pub(super) backpressure: Backpressure,
    pub(super) fast_path: SwitchFastPath,
    /// How each port is waited for.
    watches: Vec<Watch>,
    /// A frame without the number that the kernel gave it.
    scratch: Vec<u8>,
    /// When the machine's core is to be told of its ports.
    facts_due: Option<Now>,
    late: LateMail,
    /// A core without the machine ends when all has left, or then.
    pub(super) ends: Option<Now>,
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

/// How often ports are looked at that the ring does not wait for: ports that are held back, and
/// those for which the kernel has no memory.
const LOOK: Duration = Duration::from_millis(1);

/// What has been due for as long tells that this core did not run.
const AWAY: Duration = Duration::from_millis(10);

/// How long after something came in other cores are told what was lost there.
const FACTS: Duration = Duration::from_secs(1);

impl SwitchCore {
    pub(super) fn new(ring: AnyRing, parts: CoreParts) -> Self {
        let CoreParts {
            epoch,
            ports,
            fast_path,
            board,
            machine,
            peer,
        } = parts;
        let count = ports.count();
        let has_mail = machine.is_some() && peer.is_some();
        let outbox = peer.as_ref().filter(|_| has_mail);
        let outbox = outbox.map(|peer| Outbox::new(Arc::clone(&peer.cores)));
        Self {
            ring,
            epoch,
            ports,
            board,
            machine,
            peer,
            outbox,
            mail: Self::mail_place(has_mail),
            backpressure: Backpressure::new(count),
            fast_path,
            watches: vec![Watch::No; count],
            scratch: Vec::new(),
            facts_due: None,
            late: LateMail::default(),
            ends: None,
        }
    }

    /// Switches until it is told to stop.
    ///
    /// # Errors
    ///
    /// When the ring fails, or another core has ended.
    pub(super) fn run(&mut self) -> io::Result<()> {
        loop {
            self.flush();
            if self.has_ended() {
                return Ok(());
            }
            self.watch();
            self.ring.wait(self.patience())?;
            let ready = self.take_events();
            // After the wakeups are read, so that none is heeded too early, and before the ports
            // are, so that a core that stood still reads nothing more by its old table.
            self.exchange(self.now());
            self.serve(ready);
            let now = self.now();
            self.look(now);
            self.tell_facts(now);
            self.run_machine(now)?;
        }
    }

    pub(super) fn now(&self) -> Now {
        self.epoch.elapsed()
    }

    /// Has the machine do what is due, and tell what has happened.
    fn run_machine(&mut self, now: Now) -> io::Result<()> {
        let Some(machine) = &mut self.machine else {
            return Ok(());
        };
        let peer = self.peer.as_ref();
        let is_any_unread = peer.is_some_and(|peer| peer.cores.unmailed.load(Relaxed) != 0);
        // Where this core did not run, others may not have either: what came in is not mailed yet.
        let due = machine.switch.next_deadline().filter(|_| peer.is_some());
        let was_away = due.is_some_and(|at| now.saturating_sub(at) >= AWAY);
        if !self.late.may_wait(now, is_any_unread || was_away) {
            machine.expire(now);
        }
        machine.report(now, &mut self.ports);
        machine.answer(now, &mut self.ports);
        if peer.is_some_and(|peer| peer.cores.has_failed.load(Acquire)) {
            return Err(io::Error::other("one of its cores has ended"));
        }
        Ok(())
    }

    /// Has every port send what it has.
    fn flush(&mut self) {
        if self.has_newer_table() {
            // As on other cores: what was forwarded by the one before is sent first.
            self.flush_ports();
        }
        self.publish(self.now());
        self.flush_ports();
        if let Some(peer) = &mut self.peer {
            peer.settle();
            peer.wake_mailed();
        }
    }

    pub(super) fn flush_ports(&mut self) {
        let side = match (&mut self.peer, &mut self.machine) {
            (Some(peer), _) => EgressSide::Peer(peer),
            (None, Some(machine)) => EgressSide::Machine(&mut machine.switch, &mut machine.lldp),
            (None, None) => return,
        };
        let mut egress = EgressOf {
            side,
            now: self.epoch.elapsed(),
            number: number(0),
        };
        for (at, port) in self.ports.iter_mut() {
            egress.number = number(at);
            port.flush(&mut egress);
            self.fast_path.has_flushed(at, port);
            self.backpressure.waits(at, port.queued());
        }
    }

    fn has_ended(&self) -> bool {
        let machine = self.machine.as_ref();
        let ends = machine.map_or(self.ends, |machine| machine.ends());
        ends.is_some_and(|at| at <= self.now() || !self.has_more())
    }

    fn has_more(&self) -> bool {
        let outbox = self.outbox.as_ref();
        let peer = self.peer.as_ref();
        self.ports.has_more()
            || peer.is_some_and(|peer| !peer.has_sent_all())
            || outbox.is_some_and(|outbox| !outbox.has_sent_all())
    }

    /// Has the ring wait for every port that may be read.
    fn watch(&mut self) {
        for (at, port) in self.ports.iter() {
            if self.watches[at] == Watch::Ring || self.backpressure.is_held(at) {
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
        let due = self.machine.as_ref().and_then(|one| one.next_deadline());
        // What is late and waits for mail is looked at again soon.
        let is_late = self.late.is_any_unread();
        let due = due.map(|at| if is_late { at.max(now + LOOK) } else { at });
        let control = self.outbox.as_ref().and_then(Outbox::next_deadline);
        let deadlines = [due, control, self.ends, self.facts_due];
        let left = deadlines.into_iter().flatten().min();
        let left = left.map(|at| at.saturating_sub(now));
        let mut own = self.ports.iter();
        let is_watched = own.all(|(at, _)| self.watches[at] == Watch::Ring);
        left.into_iter().chain((!is_watched).then_some(LOOK)).min()
    }

    /// Ports that are ready, a bit each.
    fn take_events(&mut self) -> u64 {
        let mut ready = 0;
        while let Some(event) = self.ring.next_event() {
            match event {
                RingEvent::Ready { token } => {
                    self.watches[token.0 as usize] = Watch::No;
                    ready |= 1 << token.0;
                }
                RingEvent::Woken => self.run_orders(),
                _ => {}
            }
        }
        ready
    }

    /// Looks at the ports that the ring did not wait for.
    fn look(&mut self, now: Now) {
        for at in 0..self.ports.count() {
            if self.backpressure.is_held(at) || self.watches[at] == Watch::Clock {
                self.serve_at(now, at);
            }
        }
    }

    fn serve(&mut self, mut ready: u64) {
        while ready != 0 {
            self.serve_at(self.now(), ready.trailing_zeros() as usize);
            ready &= ready - 1;
        }
    }

    /// Something has come in at a port, or it has room, or its link has changed.
    fn serve_at(&mut self, now: Now, at: usize) {
        let Some(port) = self.ports.get(at) else {
            return;
        };
        port.resume(now);
        let (is_sender, is_cable) = (port.is_sender(), port.is_cable());
        if is_sender {
            self.facts_due.get_or_insert(now + FACTS);
            return self.look_for_news(now, at);
        }
        if self.is_unmailed(at) {
            return;
        }
        if !is_cable || self.backpressure.may_read(now, at) {
            self.receive(now, at);
        }
    }

    /// Takes a batch of frames.
    fn receive(&mut self, now: Now, at: usize) {
        let Some(mut attachment) = self.ports.get(at).and_then(SwitchPort::take) else {
            return;
        };
        let (begun, mut count) = (self.now(), BatchCount::default());
        let read = attachment.ether.receive(|frame, tci| {
            count.forwarded += usize::from(self.forward(now, at, frame, tci));
        });
        // A cable drops frames for other stations by itself, which takes time too.
        count.others = read.saturating_sub(count.forwarded);
        let ended = self.now();
        if let Some(port) = self.ports.get(at) {
            port.put_back(attachment);
            if port.is_cable() {
                let spent = ended.saturating_sub(begun);
                self.backpressure.was_read(ended, at, count, spent);
            }
        }
        if let Some(peer) = &mut self.peer {
            peer.settle();
            peer.wake_mailed();
            self.facts_due.get_or_insert(ended + FACTS);
        }
        self.look_for_news(now, at);
    }

    /// Has the machine or its table look at a frame, and sends it on if it is to go on: it is
    /// copied once, from where it came in to where it leaves. `false` if it does not go on.
    fn forward(&mut self, now: Now, at: usize, frame: &[u8], tci: Option<u16>) -> bool {
        let tag = tci.map(VlanTag::decode);
        if LldpAgents::takes(frame) {
            self.hear_lldp(now, at, frame, tag);
            return false;
        }
        let Some(way) = self.decide(now, at, frame, tag) else {
            return false;
        };
        // The machine's own table is newer than any that others have.
        let peer = self.peer.as_ref().filter(|_| self.machine.is_none());
        let version = peer.map_or(u64::MAX, |peer| peer.version);
        let has_number = self.fast_path.learn(version, number(at), &way, frame);
        let bytes = if has_number {
            self.scratch.clear();
            self.scratch.extend_from_slice(frame);
            FrameNumber::erase(&mut self.scratch, way.start);
            &self.scratch
        } else {
            frame
        };
        let frame = PassingFrame {
            way,
            since: now,
            ingress: number(at),
            bytes,
        };
        let egress = usize::from(way.egress.0);
        self.backpressure.feeds(at, egress);
        let sent = self.ports.get(egress).map_or(Sent::Congested, |port| {
            let sent = port.send(&frame);
            self.backpressure.waits(egress, port.queued());
            sent
        });
        if sent == Sent::Congested {
            let undelivered = frame.undelivered();
            self.count_undelivered(DropReason::Congested, &undelivered);
        }
        true
    }

    fn decide(
        &mut self,
        now: Now,
        at: usize,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Option<Forwarding> {
        let Some(machine) = &mut self.machine else {
            return self.peer.as_mut()?.decide(at, frame, tag);
        };
        let switch = &mut machine.switch;
        match switch.receive_tagged(now, number(at), frame, tag) {
            Verdict::Forward(way) => Some(way),
            Verdict::Taken | Verdict::Dropped(_) => None,
        }
    }

    fn count_undelivered(&mut self, reason: DropReason, frame: &fc::fabric::UndeliveredFrame) {
        match (&mut self.peer, &mut self.machine) {
            (Some(peer), _) => peer.count_undelivered(reason, frame),
            (None, Some(machine)) => machine.switch.count_undelivered(reason, frame),
            (None, None) => {}
        }
    }

    fn hear_lldp(&mut self, now: Now, at: usize, frame: &[u8], tag: Option<VlanTag>) {
        match &mut self.machine {
            Some(machine) => machine.hear_lldp(now, at, frame, tag),
            None => self.mail(at, MailItem::Lldp(tag), frame),
        }
    }

    fn look_for_news(&mut self, now: Now, at: usize) {
        let Some(port) = self.ports.get(at) else {
            return;
        };
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
                self.fast_path.look_at(at, port);
                self.ports.tell(&self.board);
                match &mut self.machine {
                    Some(machine) => machine.hear_link(now, at, (link, is_up)),
                    None => self.mail(at, MailItem::Link(link, is_up), &[]),
                }
            }
            Ok(None) => {}
            Err(cause) => tracing::error!("{}: cannot read its link: {cause}", port.place()),
        }
    }

    /// Tells what was lost at the ports, once in a while.
    fn tell_facts(&mut self, now: Now) {
        if self.facts_due.is_some_and(|at| at <= now) {
            self.facts_due = None;
            self.ports.tell(&self.board);
        }
    }

    /// Carries out the orders of other threads.
    fn run_orders(&mut self) {
        let now = self.now();
        let machine = self.machine.as_mut();
        let anew = machine.map(|machine| machine.run_orders(now, &mut self.ports));
        for at in anew.unwrap_or_default() {
            self.attach_anew(at);
        }
    }

    /// Sets up the kernel's forwarding at a port anew, on the core of the port.
    pub(super) fn attach_anew(&mut self, at: usize) {
        if let Some(port) = self.ports.own(at) {
            return self.fast_path.attach_anew(at, port);
        }
        if let Some(peer) = &self.peer {
            let home = peer.cores.homes[at];
            peer.cores.posts[home].anew.fetch_or(1 << at, Relaxed);
            peer.cores.wakers[home].wake();
        }
    }
}

/// The number of a port in the machine, which counts them as this does.
pub(super) const fn number(at: usize) -> PortNumber {
    PortNumber(at as u16)
}

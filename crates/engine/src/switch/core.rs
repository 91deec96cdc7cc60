//! The thread that carries a switch: it moves frames between Ethernet ports as the machine says.
//!
//! A turn takes what has come in at the ports that are ready, does what is due, has every port
//! send, and sleeps until something happens.
//!
//! All ports are on this one thread. What forwarding a frame takes is in the machine's
//! [`ForwardTable`](fc::fabric::ForwardTable), a value that does not change: with more threads,
//! each has that of the moment for its own ports, and hands on what is for the machine.

use std::io;
use std::time::{Duration, Instant};

use ::io::ether::fast_path::FrameNumber;
use ::io::ring::{AnyRing, Ring, RingEvent, SocketRing, Token};
use fc::fabric::{DropReason, PortNumber, Verdict};
use fc::wire::ethernet::VlanTag;
use runtime::n_port::LinkProblem;
use scsi::medium::Now;

use super::egress::EgressOf;
use super::fast_path::SwitchFastPath;
use super::holdback::{BatchCount, Holdback};
use super::lldp::LldpAgents;
use super::machine::SwitchMachine;
use super::port::{PassingFrame, Sent, SwitchPort};
use super::ports::OwnPorts;

/// A core of a switch, with its ports.
pub(super) struct SwitchCore {
    ring: AnyRing,
    epoch: Instant,
    pub(super) ports: OwnPorts,
    pub(super) machine: SwitchMachine,
    holdback: Holdback,
    fast_path: SwitchFastPath,
    /// How each port is waited for.
    watches: Vec<Watch>,
    /// A frame without the number that the kernel gave it.
    scratch: Vec<u8>,
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

/// How often ports are looked at that the ring does not wait for: cables that are held back, and
/// those for which the kernel has no memory.
const LOOK: Duration = Duration::from_millis(1);

impl SwitchCore {
    pub(super) fn new(
        ring: AnyRing,
        epoch: Instant,
        ports: OwnPorts,
        machine: SwitchMachine,
    ) -> Self {
        let count = ports.count();
        Self {
            ring,
            epoch,
            ports,
            fast_path: machine.fast_path.clone(),
            machine,
            holdback: Holdback::new(count),
            watches: vec![Watch::No; count],
            scratch: Vec::new(),
        }
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
            self.machine.expire(now);
            self.machine.report(now, &mut self.ports);
            self.machine.answer(now, &mut self.ports);
        }
    }

    fn now(&self) -> Now {
        self.epoch.elapsed()
    }

    /// Has every port send what it has.
    fn flush(&mut self) {
        let mut egress = EgressOf {
            now: self.now(),
            switch: &mut self.machine.switch,
            lldp: &mut self.machine.lldp,
            number: number(0),
        };
        for (at, port) in self.ports.iter_mut() {
            egress.number = number(at);
            port.flush(&mut egress);
            self.fast_path.has_flushed(at, port);
            self.holdback.waits(at, port.queued());
        }
    }

    fn has_ended(&self) -> bool {
        let ends = self.machine.ends();
        ends.is_some_and(|at| at <= self.now() || !self.ports.has_more())
    }

    /// Has the ring wait for every port that may be read.
    fn watch(&mut self) {
        for (at, port) in self.ports.iter() {
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
        let left = self.machine.next_deadline();
        let left = left.map(|at| at.saturating_sub(now));
        let mut own = self.ports.iter();
        let is_watched = own.all(|(at, _)| self.watches[at] == Watch::Ring);
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
        for at in 0..self.ports.count() {
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
        let Some(port) = self.ports.get(at) else {
            return;
        };
        port.resume();
        if !port.is_cable() || self.holdback.may_read(now, at) {
            self.receive(now, at);
        }
    }

    /// Takes a batch of frames.
    fn receive(&mut self, now: Now, at: usize) {
        let Some(mut attachment) = self.ports.get(at).and_then(SwitchPort::take) else {
            return;
        };
        let (begun, mut count) = (self.now(), BatchCount::default());
        attachment.ether.receive(|frame, tci| {
            let is_forwarded = self.forward(now, at, frame, tci);
            count.forwarded += usize::from(is_forwarded);
            count.others += usize::from(!is_forwarded);
        });
        let ended = self.now();
        if let Some(port) = self.ports.get(at) {
            port.put_back(attachment);
            if port.is_cable() {
                let spent = ended.saturating_sub(begun);
                self.holdback.was_read(ended, at, count, spent);
            }
        }
        self.look_for_news(now, at);
    }

    /// Has the machine look at a frame, and sends it on if it is to go on: it is copied once, from
    /// where it came in to where it leaves. `false` if it does not go on.
    fn forward(&mut self, now: Now, at: usize, frame: &[u8], tci: Option<u16>) -> bool {
        let tag = tci.map(VlanTag::decode);
        if LldpAgents::takes(frame) {
            self.machine.hear_lldp(now, at, frame, tag);
            return false;
        }
        let switch = &mut self.machine.switch;
        let Verdict::Forward(way) = switch.receive_tagged(now, number(at), frame, tag) else {
            return false;
        };
        let egress = usize::from(way.egress.0);
        let (numbered, has_number) = self.fast_path.learn(number(at), &way, frame);
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
        self.holdback.feeds(at, egress);
        let Some(port) = self.ports.get(egress) else {
            return false;
        };
        self.fast_path.leaves(egress, numbered);
        if port.send(&frame) == Sent::Congested {
            let undelivered = frame.undelivered();
            self.machine
                .switch
                .count_undelivered(DropReason::Congested, &undelivered);
        }
        self.holdback.waits(egress, port.queued());
        true
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
                self.machine.hear_link(now, at, (link, is_up));
            }
            Ok(None) => {}
            Err(cause) => tracing::error!("{}: cannot read its link: {cause}", port.place()),
        }
    }

    /// Does what other threads have ordered.
    fn obey(&mut self) {
        let now = self.now();
        for at in self.machine.obey(now, &mut self.ports) {
            if let Some(port) = self.ports.get(at) {
                self.fast_path.attach_anew(at, port);
            }
        }
    }
}

/// The number of a port in the machine, which counts them as this does.
pub(super) const fn number(at: usize) -> PortNumber {
    PortNumber(at as u16)
}

//! A switch in its box: what was ordered of it, and what outlives its process.

use fc::fabric::{PortNumber, Switch, SwitchConfig, SwitchPortConfig, Verdict};
use fc::tests::{Bytes, HeapFrames};
use fc::wire::ethernet::Mac;
use scsi::medium::Now;
use sim::Rng;

use super::shape;
use super::zoning::Zoning;

/// A switch with a port at each Ethernet.
pub(crate) struct Chassis {
    number: u8,
    pub(super) config: SwitchConfig,
    mtu: usize,
    linked: Vec<bool>,
    /// The process, if it runs.
    pub(super) switch: Option<Switch>,
    /// Zones that it is to take up, and when it comes to that.
    pub(super) order: Option<(Now, Zoning)>,
}

impl Chassis {
    /// One without a process, at so many Ethernets.
    pub(super) fn new(number: u8, config: SwitchConfig, ethernets: usize, mtu: usize) -> Self {
        Self {
            number,
            config,
            mtu,
            linked: vec![true; ethernets],
            switch: None,
            order: None,
        }
    }

    /// The address of a port.
    pub(super) const fn mac(&self, port: usize) -> Mac {
        Mac([2, 0, 0, 0xfc, self.number, port as u8])
    }

    /// Its process is started.
    pub(super) fn start(&mut self, now: Now, rng: &mut Rng) {
        let mut switch = Switch::new(&self.config, now, rng.bytes());
        for (port, is_up) in self.linked.iter().enumerate() {
            let number = switch.add_port(SwitchPortConfig {
                place: place(port).into(),
                mac: self.mac(port),
                mtu: self.mtu,
                tag: self.config.vlan.map(shape::tag),
                hears_partner: true,
            });
            switch.link(now, number, *is_up);
        }
        self.switch = Some(switch);
        self.order = None;
    }

    /// Its process is killed.
    pub(super) fn kill(&mut self) {
        self.switch = None;
        self.order = None;
    }

    /// A cable is taken out or put in.
    pub(super) fn link(&mut self, now: Now, port: usize, up: bool) {
        self.linked[port] = up;
        if let Some(switch) = &mut self.switch {
            switch.link(now, number(port), up);
        }
    }

    pub(super) fn is_linked(&self, port: usize) -> bool {
        self.linked[port]
    }

    /// A frame comes in. Gives what is forwarded, and where it goes out.
    pub(super) fn hear(&mut self, now: Now, port: usize, frame: &[u8]) -> Option<(usize, Bytes)> {
        let switch = self.switch.as_mut().filter(|_| self.linked[port])?;
        let Verdict::Forward(way) = switch.receive(now, number(port), frame) else {
            return None;
        };
        let mut slot = vec![0; way.len(frame.len())];
        way.write(frame, &mut slot);
        Some((usize::from(way.egress.0), slot.into()))
    }

    /// What it has to say itself, at which ports.
    pub(super) fn send(&mut self, room: usize) -> Vec<(usize, Bytes)> {
        let mut sent = Vec::new();
        let Some(switch) = &mut self.switch else {
            return sent;
        };
        for port in 0..self.linked.len() {
            let mut out = HeapFrames::of(room);
            switch.transmit(number(port), &mut out);
            let frames = out.frames.into_iter().map(|frame| (port, frame.into()));
            sent.extend(frames);
        }
        sent
    }

    /// When it wants to be woken.
    pub(super) fn deadline(&self) -> Option<Now> {
        let switch = self.switch.as_ref().and_then(Switch::next_deadline);
        let order = self.order.as_ref().map(|(at, _)| *at);
        switch.into_iter().chain(order).min()
    }

    /// Wakes it if it is time; whether it was.
    pub(super) fn wake(&mut self, now: Now) -> bool {
        let is_due = self.deadline().is_some_and(|at| at <= now);
        let Some(switch) = self.switch.as_mut().filter(|_| is_due) else {
            return false;
        };
        if let Some((_, zoning)) = self.order.take_if(|(at, _)| *at <= now) {
            switch.set_zones(now, zoning.file);
        }
        switch.expire(now);
        true
    }
}

/// The name of a port.
pub(super) fn place(port: usize) -> String {
    format!("eth{port}")
}

/// The number of a port in the machine.
pub(super) const fn number(port: usize) -> PortNumber {
    PortNumber(port as u16)
}

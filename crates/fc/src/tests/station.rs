//! A machine at its place on the Ethernet.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use scsi::medium::Now;

use super::{Bytes, HeapFrames};
use crate::fip::enode::Enode;
use crate::fip::{Fip, FipEvent};
use crate::port::{Fc4Layer, Port};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::names::FcId;

/// What can stand at an Ethernet: an N_Port, or its FIP alone.
pub trait Machine {
    /// Its link came up or went down.
    fn link(&mut self, now: Now, up: bool);
    /// A frame came.
    fn receive(&mut self, now: Now, frame: &[u8]);
    /// Puts what is to be sent into `out`.
    fn transmit(&mut self, out: &mut HeapFrames);
    /// When it wants to be woken.
    fn next_deadline(&self) -> Option<Now>;
    /// The deadline passed.
    fn expire(&mut self, now: Now);
    /// The Ethernet address of its own that it receives frames to, besides its station's.
    fn own_mac(&self) -> Option<Mac>;

    /// Whether an address is one of them, where there may be several.
    fn owns(&self, dst: Mac) -> bool {
        self.own_mac() == Some(dst)
    }
}

impl<F: Fc4Layer> Machine for Port<F> {
    fn link(&mut self, now: Now, up: bool) {
        self.link(now, up);
    }

    fn receive(&mut self, now: Now, frame: &[u8]) {
        self.receive(now, frame, None);
    }

    fn transmit(&mut self, out: &mut HeapFrames) {
        self.transmit(out);
    }

    fn next_deadline(&self) -> Option<Now> {
        self.next_deadline()
    }

    fn expire(&mut self, now: Now) {
        self.expire(now);
    }

    fn own_mac(&self) -> Option<Mac> {
        self.address().map(|address| address.mac)
    }
}

impl Machine for Fip {
    fn link(&mut self, now: Now, up: bool) {
        self.link(now, up);
    }

    /// What is out of place is refused, which changes nothing.
    fn receive(&mut self, now: Now, frame: &[u8]) {
        if let Ok((header, payload)) = EthernetHeader::parse(frame) {
            let _ = self.receive(now, &header, payload);
        }
    }

    fn transmit(&mut self, out: &mut HeapFrames) {
        self.transmit(out);
    }

    fn next_deadline(&self) -> Option<Now> {
        self.next_deadline()
    }

    fn expire(&mut self, now: Now) {
        self.expire(now);
    }

    fn own_mac(&self) -> Option<Mac> {
        self.mac()
    }
}

impl Machine for Enode {
    fn link(&mut self, now: Now, up: bool) {
        self.link(now, up);
    }

    /// What is out of place is refused, which changes nothing.
    fn receive(&mut self, now: Now, frame: &[u8]) {
        if let Ok((header, payload)) = EthernetHeader::parse(frame) {
            let _ = self.receive(now, &header, payload);
        }
    }

    fn transmit(&mut self, out: &mut HeapFrames) {
        self.transmit(out);
    }

    fn next_deadline(&self) -> Option<Now> {
        self.next_deadline()
    }

    fn expire(&mut self, now: Now) {
        self.expire(now);
    }

    fn own_mac(&self) -> Option<Mac> {
        self.mac()
    }
}

/// All that a machine sends now.
pub fn sent(machine: &mut (impl Machine + ?Sized)) -> Vec<Vec<u8>> {
    let mut out = HeapFrames::default();
    machine.transmit(&mut out);
    out.frames
}

/// A machine, its Ethernet port and its clock.
#[derive(Debug)]
pub struct Station<M: ?Sized> {
    /// The address of its Ethernet port.
    mac: Mac,
    /// Whether it is there at all.
    pub is_alive: bool,
    /// Whether its cable is in.
    is_linked: bool,
    /// By how much its clock is ahead.
    ahead: Duration,
    /// The machine.
    pub port: M,
}

/// Whether ports of either kind receive it.
fn is_group(dst: Mac) -> bool {
    Fip::groups().contains(&dst) || Enode::groups().contains(&dst)
}

impl<M: ?Sized> Deref for Station<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.port
    }
}

impl<M: ?Sized> DerefMut for Station<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.port
    }
}

impl<M: Machine> Station<M> {
    /// A machine that is not there yet.
    pub const fn new(mac: Mac, port: M) -> Self {
        Self {
            mac,
            is_alive: false,
            is_linked: false,
            ahead: Duration::ZERO,
            port,
        }
    }

    /// It is started, with a machine that knows nothing of what was before.
    pub fn start(&mut self, now: Now, port: M) {
        self.port = port;
        (self.is_alive, self.is_linked) = (true, true);
        self.port.link(self.clock(now), true);
    }
}

impl<M: Machine + ?Sized> Station<M> {
    /// What its clock shows.
    #[must_use]
    pub fn clock(&self, now: Now) -> Now {
        now + self.ahead
    }

    /// Its clock jumps.
    pub fn jump(&mut self, by: Duration) {
        self.ahead += by;
    }

    /// The cable is taken out or put in.
    pub fn link(&mut self, now: Now, up: bool) {
        if self.is_alive && self.is_linked != up {
            self.is_linked = up;
            self.port.link(self.clock(now), up);
        }
    }

    /// Whether its cable is in.
    #[must_use]
    pub const fn is_linked(&self) -> bool {
        self.is_linked
    }

    /// A frame is on the Ethernet: it is heard if it is for this station.
    pub fn hear(&mut self, now: Now, frame: &[u8]) -> bool {
        let Ok((header, _)) = EthernetHeader::parse(frame) else {
            return false;
        };
        let heard = self.is_alive && self.is_linked && self.listens(header.dst);
        if heard {
            self.port.receive(self.clock(now), frame);
        }
        heard
    }

    /// Whether it receives frames to this address.
    #[must_use]
    pub fn listens(&self, dst: Mac) -> bool {
        dst == self.mac || self.port.owns(dst) || is_group(dst)
    }

    /// What it sends, as far as there is room; and whether there was anything, which goes nowhere
    /// without a cable.
    pub fn send(&mut self, room: usize) -> (Vec<Bytes>, bool) {
        let mut out = HeapFrames::of(room);
        if self.is_alive {
            self.port.transmit(&mut out);
        }
        let any = !out.frames.is_empty();
        let sent = out.frames.into_iter().filter(|_| self.is_linked);
        (sent.map(Bytes::from).collect(), any)
    }

    /// When it wants to be woken.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        let deadline = self.port.next_deadline().filter(|_| self.is_alive)?;
        Some(deadline.saturating_sub(self.ahead))
    }

    /// Wakes it if it is time.
    pub fn wake(&mut self, now: Now) -> bool {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        if due {
            self.port.expire(self.clock(now));
        }
        due
    }
}

/// What a VN2VN port has told, in an order in which it makes sense whatever others do.
#[derive(Clone, Debug, Default)]
pub struct FipView {
    /// The N_Port_ID that it has claimed.
    pub claimed: Option<FcId>,
    /// The ports that there are links to.
    pub linked: BTreeSet<FcId>,
}

impl FipView {
    /// It tells something.
    pub fn told(&mut self, event: &FipEvent) {
        match event {
            FipEvent::Claimed(fc_id) => assert_eq!(self.claimed.replace(*fc_id), None),
            FipEvent::Released(fc_id) => {
                assert_eq!(self.claimed.take(), Some(*fc_id));
                assert!(self.linked.is_empty(), "links that outlive the claim");
            }
            FipEvent::Found(who) => {
                assert!(self.claimed.is_some_and(|ours| ours != who.fc_id));
                assert!((256..=2112).contains(&who.payload_max), "{who:?}");
                assert!(self.linked.insert(who.fc_id), "found twice");
            }
            FipEvent::Lost(fc_id, _) => assert!(self.linked.remove(fc_id), "lost twice"),
        }
    }
}

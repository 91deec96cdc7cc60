//! What targets and hosts have in common: an N_Port at its place on the Ethernet.

use std::rc::Rc;
use std::time::Duration;

use fc::frames::FrameSink;
use fc::port::{Fc4Layer, Port, PortConfig};
use fc::wire::ethernet::{EthernetHeader, Mac};
use scsi::medium::Now;
use sim::Rng;

/// An N_Port, its Ethernet port and its clock.
pub(crate) struct Station<F: Fc4Layer> {
    pub(crate) port: Port<F>,
    pub(crate) config: PortConfig,
    /// Whether it is there at all.
    pub(crate) is_alive: bool,
    /// Whether its cable is in.
    is_linked: bool,
    /// By how much its clock is ahead.
    ahead: Duration,
}

/// A transmit ring with room for so many frames.
struct Ring {
    frames: HeapFrames,
    room: usize,
}

impl FrameSink for Ring {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.room == 0 {
            return None;
        }
        self.frames.slot(len)
    }

    fn commit(&mut self, len: usize) {
        self.room -= 1;
        self.frames.commit(len);
    }
}

impl<F: Fc4Layer> Station<F> {
    /// A port that is not there yet.
    pub(crate) fn new(config: PortConfig, fc4: F, rng: &mut Rng) -> Self {
        Self {
            port: Port::new(&config, fc4, Now::ZERO, rng.bytes()),
            config,
            is_alive: false,
            is_linked: false,
            ahead: Duration::ZERO,
        }
    }

    /// It is started, as a process that knows nothing of what was before.
    pub(crate) fn start(&mut self, now: Now, fc4: F, rng: &mut Rng) {
        self.port = Port::new(&self.config, fc4, self.clock(now), rng.bytes());
        self.is_alive = true;
        self.is_linked = true;
        self.port.link(self.clock(now), true);
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now: Now) -> Now {
        now + self.ahead
    }

    /// Its clock jumps.
    pub(crate) fn jump(&mut self, by: Duration) {
        self.ahead += by;
    }

    /// The cable is taken out or put in.
    pub(crate) fn link(&mut self, now: Now, up: bool) {
        if self.is_alive && self.is_linked != up {
            self.is_linked = up;
            self.port.link(self.clock(now), up);
        }
    }

    /// Whether frames can come to it and leave it.
    pub(crate) const fn is_on(&self) -> bool {
        self.is_alive && self.is_linked
    }

    /// A frame is on the Ethernet: it is heard if it is for this station.
    pub(crate) fn hear(&mut self, now: Now, frame: &[u8]) -> bool {
        let Ok((header, _)) = EthernetHeader::parse(frame) else {
            return false;
        };
        let heard = self.is_on() && self.listens(header.dst);
        if heard {
            self.port.receive(self.clock(now), frame, None);
        }
        heard
    }

    fn listens(&self, dst: Mac) -> bool {
        let own = self.port.address().map(|address| address.mac);
        dst == self.config.mac || Some(dst) == own || Port::<F>::groups().contains(&dst)
    }

    /// Sends what there is, or what there is room for; whether there was anything.
    pub(crate) fn send(&mut self, room: usize, out: &mut Vec<Rc<[u8]>>) -> bool {
        if !self.is_alive {
            return false;
        }
        let mut ring = Ring {
            frames: HeapFrames::default(),
            room,
        };
        self.port.transmit(&mut ring);
        let sent = ring.frames.frames;
        let any = !sent.is_empty();
        if self.is_linked {
            out.extend(sent.into_iter().map(Rc::from));
        }
        any
    }

    /// When it wants to be woken.
    pub(crate) fn deadline(&self) -> Option<Now> {
        let deadline = self.port.next_deadline().filter(|_| self.is_alive)?;
        Some(deadline.saturating_sub(self.ahead))
    }

    /// Wakes it if it is time.
    pub(crate) fn wake(&mut self, now: Now) -> bool {
        let due = self.deadline().is_some_and(|deadline| deadline <= now);
        if due {
            self.port.expire(self.clock(now));
        }
        due
    }
}

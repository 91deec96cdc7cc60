//! A bare relay between two Ethernet ports: the floor under a switch. Frames go from one to the
//! other with new addresses and nothing else is done with them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use ::io::ether::{EtherMac, EtherOpenError, EtherPort, Place};
use rustix::event::{PollFd, PollFlags};

use super::LOOK;
use super::frame::GROUP;
use crate::floor::wait;

/// Two ports, and who is behind each.
pub struct FloorRelay {
    ports: [EtherPort; 2],
    /// Whom a frame was from that came in last.
    peers: [Option<EtherMac>; 2],
    /// Frames for which there was no room.
    lost: u64,
}

impl FloorRelay {
    /// Opens both ports.
    ///
    /// # Errors
    ///
    /// When one of them is not to be had.
    pub fn new(places: [&Place; 2]) -> Result<Self, EtherOpenError> {
        let open = |place: &Place| {
            let mut port = EtherPort::open(place, &<_>::default())?;
            let joined = port.join(GROUP);
            joined.map_err(|cause| EtherOpenError::Io(place.to_string(), cause))?;
            Ok(port)
        };
        Ok(Self {
            ports: [open(places[0])?, open(places[1])?],
            peers: [None; 2],
            lost: 0,
        })
    }

    /// Frames for which there was no room.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Relays until `stop`.
    ///
    /// # Errors
    ///
    /// What is wrong with a port.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Relaxed) {
            let count = self.pass(0)? + self.pass(1)?;
            if count == 0 {
                let fds = self.ports.each_ref();
                let mut list = fds.map(|port| PollFd::new(&**port.waited(), PollFlags::IN));
                wait(&mut list, LOOK)?;
            }
        }
        Ok(())
    }

    /// Takes a batch from one port to the other. Returns how many frames came in.
    fn pass(&mut self, from: usize) -> io::Result<usize> {
        let [one, other] = &mut self.ports;
        let (ingress, egress) = match from {
            0 => (one, other),
            _ => (other, one),
        };
        let (own, to) = (egress.mac(), self.peers[1 - from]);
        let (mut last, mut lost) = (None, 0);
        let count = ingress.receive(|frame, _| {
            let (Some(dst), Some(src)) = (address(frame, 0), address(frame, 6)) else {
                return;
            };
            last = Some(src);
            let dst = if dst == GROUP { Some(GROUP) } else { to };
            match (dst, room(egress, frame.len())) {
                (Some(dst), Some(slot)) => {
                    slot.copy_from_slice(frame);
                    slot[..6].copy_from_slice(&dst);
                    slot[6..12].copy_from_slice(&own);
                    egress.commit(frame.len());
                }
                _ => lost += 1,
            }
        });
        egress.flush()?;
        egress.news()?;
        self.peers[from] = last.or(self.peers[from]);
        self.lost += lost;
        Ok(count)
    }
}

/// Memory for a frame. Waits for it, as a cable takes few frames before they are read.
fn room(egress: &mut EtherPort, len: usize) -> Option<&mut [u8]> {
    let until = Instant::now() + PATIENCE;
    while egress.slot(len).is_none() && Instant::now() < until {
        // What is wrong shows when all have been sent.
        let _ = egress.flush();
        thread::yield_now();
    }
    egress.slot(len)
}

/// How long a relay waits for room.
const PATIENCE: Duration = Duration::from_millis(100);

/// The address that stands there.
fn address(frame: &[u8], at: usize) -> Option<EtherMac> {
    frame.get(at..at + 6)?.try_into().ok()
}

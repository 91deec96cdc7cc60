//! An interface by AF_XDP: frames are taken before the kernel's network stack has seen them, and
//! sent around it.
//!
//! A program at the interface hands FCoE and FIP to the socket of the queue that they came in by;
//! everything else goes its usual way. There is one such program an interface, so one port. Where
//! the driver can, it receives into our memory and sends from there (zero-copy); else the kernel
//! copies. A tag that the interface takes out is lost, and with it which VLAN a frame is of: turn
//! that off (`ethtool -K IFACE rxvlan off`) where VLANs are used.

mod program;
mod queue;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use self::program::XdpProgram;
use self::queue::XdpQueue;
use super::interface_watch::InterfaceWatch;
use super::readiness::EpollSet;
use super::slots::LostFrameMemory;
use super::{BATCH, Drops, EtherMac, EtherOpenError, EtherOptions, LinkStatus, filter, raw};

/// A port at an interface of this machine.
#[derive(Debug)]
pub struct XdpPort {
    station: InterfaceWatch,
    /// Holds the memberships of our addresses; nothing comes in there.
    members: OwnedFd,
    /// Goes before the sockets that it hands frames to.
    program: Option<XdpProgram>,
    /// One for each queue of the interface. The first one also sends. None while the interface is
    /// down or gone, and frames that are to be sent are lost.
    queues: Vec<XdpQueue>,
    /// The queue that is received from first, the next time.
    first: usize,
    /// The interface was ours: the kernel may not be done yet with what we had there.
    was_ours: bool,
    options: EtherOptions,
    lost: LostFrameMemory,
    waited: EpollSet,
    /// Nothing came in last time: there is time to look for news.
    idle: bool,
    drops: Drops,
}

/// The kernel gives queues back a while after their owner is gone, such as this program when it is
/// started again: they are asked for so often, with pauses.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

impl XdpPort {
    /// Opens a port at the interface of this name.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`].
    pub fn open(name: &str, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        for _ in 0..ATTEMPTS {
            match Self::start(InterfaceWatch::open(name)?, options) {
                Err(cause) if cause.raw_os_error() == Some(libc::EBUSY) => thread::sleep(PAUSE),
                // There is a program of another mode, which is not waited for.
                Err(cause) if cause.raw_os_error() == Some(libc::EEXIST) => break,
                result => return result.map_err(|cause| EtherOpenError::of(&name, cause)),
            }
        }
        Err(EtherOpenError::Occupied(name.to_owned()))
    }

    fn start(station: InterfaceWatch, options: &EtherOptions) -> io::Result<Self> {
        let members = raw::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let waited = EpollSet::new()?;
        for news in station.waited() {
            waited.input(news)?;
        }
        let (program, queues) = attach(&station, &members, options, &waited)?;
        Ok(Self {
            station,
            members,
            program: Some(program),
            queues,
            first: 0,
            was_ours: true,
            options: options.clone(),
            lost: LostFrameMemory::new(options.payload_max),
            waited,
            idle: true,
            drops: Drops::default(),
        })
    }

    pub(super) fn mac(&self) -> EtherMac {
        self.station.addresses()[0]
    }

    pub(super) fn interface_name(&self) -> &str {
        self.station.name()
    }

    pub(super) fn is_zero_copy(&self) -> Option<bool> {
        let is = self.queues.iter().all(XdpQueue::is_zero_copy);
        (!self.queues.is_empty()).then_some(is)
    }

    pub(super) fn link(&self) -> LinkStatus {
        self.station.link()
    }

    pub(super) fn tag_priority(&self) -> Option<u32> {
        self.station.tag_priority()
    }

    pub(super) fn news(&mut self) -> io::Result<Option<LinkStatus>> {
        if !self.idle || !self.station.may_have_changed()? {
            return Ok(None);
        }
        self.count_queues()?;
        let Self {
            program,
            queues,
            waited,
            ..
        } = self;
        let (members, options) = (&self.members, &self.options);
        let news = self.station.look(|station, is_anew| {
            if is_anew {
                detach(program, queues, waited);
            }
            if queues.is_empty() && station.link().up {
                let (anew, sockets) = attach(station, members, options, waited)?;
                (*program, *queues) = (Some(anew), sockets);
            }
            Ok(())
        });
        match news {
            Err(cause) if cause.raw_os_error() == Some(libc::EBUSY) && self.was_ours => {
                self.was_ours = false;
                return Ok(None);
            }
            _ => self.was_ours |= !self.queues.is_empty(),
        }
        news
    }

    pub(super) fn join(&mut self, mac: EtherMac) -> io::Result<()> {
        self.station.join(&self.members, mac).map(drop)
    }

    pub(super) fn leave(&mut self, mac: EtherMac) -> io::Result<()> {
        self.station.leave(&self.members, mac).map(drop)
    }

    pub(super) fn receive(&mut self, mut taken: impl FnMut(&[u8], Option<u16>)) -> usize {
        let addresses = self.station.addresses();
        let count = take_turns(&mut self.queues, &mut self.first, |queue, max| {
            queue.receive(max, |frame| {
                if filter::takes(addresses, frame) {
                    taken(frame, None);
                }
            })
        });
        self.idle = count == 0;
        count
    }

    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let is_oversize = self.lost.takes(len, self.link().mtu);
        match self.queues.first_mut() {
            Some(queue) if !is_oversize => queue.slot(len),
            _ => Some(self.lost.slot(len)),
        }
    }

    pub(super) fn commit(&mut self, len: usize) {
        let is_lost = self.lost.commit(len);
        match self.queues.first_mut() {
            None => self.drops.unsent += 1,
            Some(_) if is_lost => self.drops.oversize += 1,
            Some(queue) => queue.commit(len),
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<bool> {
        let Some(queue) = self.queues.first_mut() else {
            return Ok(true);
        };
        let cause = match queue.flush(&mut self.drops.unsent) {
            Ok(left) => {
                self.waited.room(queue.socket(), !left)?;
                return Ok(left);
            }
            Err(cause) => cause,
        };
        self.count_queues()?;
        detach(&mut self.program, &mut self.queues, &mut self.waited);
        self.station.look_later()?;
        match cause.raw_os_error() {
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Ok(true),
            _ => Err(cause),
        }
    }

    pub(super) fn more_to_send(&mut self) -> io::Result<()> {
        match self.queues.first() {
            Some(queue) => self.waited.room(queue.socket(), true),
            None => Ok(()),
        }
    }

    pub(super) fn wait_for(&self, other: BorrowedFd<'_>) -> io::Result<()> {
        self.waited.input(other)
    }

    pub(super) fn waited(&self) -> &Arc<OwnedFd> {
        self.waited.fd()
    }

    pub(super) fn recent_drops(&mut self) -> io::Result<Drops> {
        self.count_queues()?;
        self.station.count_later(&mut self.drops);
        Ok(self.drops)
    }

    pub(super) fn drops(&mut self) -> io::Result<Drops> {
        self.count_queues()?;
        self.station.count(&mut self.drops);
        Ok(self.drops)
    }

    fn count_queues(&mut self) -> io::Result<()> {
        for queue in &mut self.queues {
            self.drops.ring_full += queue.dropped()?;
        }
        Ok(())
    }
}

/// Receives a batch from all queues together. The next time it begins with the next one, so that
/// those behind one that always has a batch are not left until they overflow.
pub(super) fn take_turns<Q>(
    queues: &mut [Q],
    first: &mut usize,
    mut receive: impl FnMut(&mut Q, usize) -> usize,
) -> usize {
    let len = queues.len();
    let begin = std::mem::replace(first, (*first + 1) % len.max(1));
    (begin..begin + len).fold(0, |count, at| {
        count + receive(&mut queues[at % len], BATCH - count)
    })
}

/// Lets go of the interface, and of what has not left.
fn detach(program: &mut Option<XdpProgram>, queues: &mut Vec<XdpQueue>, waited: &mut EpollSet) {
    *program = None;
    queues.clear();
    waited.forget_room();
}

/// Has a program at the interface, and sockets behind it.
fn attach(
    station: &InterfaceWatch,
    members: &OwnedFd,
    options: &EtherOptions,
    waited: &EpollSet,
) -> io::Result<(XdpProgram, Vec<XdpQueue>)> {
    let count = raw::receive_queues(members, station.name())?;
    let program = XdpProgram::new(station.index(), count)?;
    let queue = |number| {
        let sends = number == 0;
        // They share what one would have.
        let size = options.ring / count as usize;
        let queue = XdpQueue::new(station.index(), number, sends, options.payload_max, size)?;
        program.hand_to(number, queue.socket())?;
        waited.input(queue.socket())?;
        Ok(queue)
    };
    let queues = (0..count).map(queue).collect::<io::Result<_>>()?;
    station.join_all(members)?;
    Ok((program, queues))
}

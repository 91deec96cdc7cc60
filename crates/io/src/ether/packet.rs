//! An interface by AF_PACKET: a ring of frames that have come in, and batches of those to be sent.
//!
//! The ring is of TPACKET_V2. V3 packs frames of any length into blocks, and hands a block over
//! when it is full or a timer of at least 1 ms has run out, which every request that waits for one
//! answer would wait for: a frame there and back took 1 to 2 ms on veth, in place of 30 to 80 us.
//!
//! The socket takes all protocols, which a filter narrows down: only then does the kernel show
//! frames whose VLAN has no interface, and their tags. Frames to be sent take the way of the
//! queueing discipline. Without it (PACKET_QDISC_BYPASS) priorities would mean nothing, and what
//! the interface has no room for would be lost in place of waiting here.

mod fanout;
mod ring;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use self::fanout::Fanout;
use self::ring::FrameRing;
use super::interface_watch::InterfaceWatch;
use super::readiness::{EpollSet, Retry, SHORT_PAUSE};
use super::slots::FrameSlots;
use super::slots::LostFrameMemory;
use super::{
    BATCH, Drops, EtherMac, EtherOpenError, EtherOptions, HEADER_MAX, LinkStatus, PRIORITY, filter,
    raw,
};

/// A port at an interface of this machine.
#[derive(Debug)]
pub struct PacketPort {
    station: InterfaceWatch,
    duty: SocketDuty,
    /// Which frames other sockets get that share what comes in.
    fanout: Option<Fanout>,
    options: EtherOptions,
    socket: OwnedFd,
    /// None for a socket that only sends.
    ring: Option<FrameRing>,
    slots: FrameSlots,
    /// The queue of the interface was full. The kernel does not tell when it has room: the socket
    /// has, so it is ready to send all the time.
    is_queue_full: bool,
    retry: Retry,
    refusals: Refusals,
    lost: LostFrameMemory,
    waited: EpollSet,
    /// Nothing came in last time: there is time to look for news.
    idle: bool,
    drops: Drops,
}

/// What a socket is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketDuty {
    /// To receive what was joined, and to send.
    Both,
    /// To send, and to receive what is steered to it once it shares what comes in, by
    /// [`PacketPort::share`].
    Share,
    /// To send.
    Send,
}

impl SocketDuty {
    /// The protocol that the socket is bound to: all, or none, by which nothing comes in.
    const fn protocol(self) -> u16 {
        match self {
            Self::Both => ALL,
            Self::Share | Self::Send => 0,
        }
    }

    /// What it is for when it shares no more.
    const fn alone(self) -> Self {
        match self {
            Self::Both => Self::Both,
            Self::Share | Self::Send => Self::Send,
        }
    }

    fn program(self, station: &InterfaceWatch) -> Vec<libc::sock_filter> {
        match self {
            Self::Both | Self::Send => filter::program(station.addresses()),
            Self::Share => filter::fcoe_program(),
        }
    }
}

/// All protocols, as sockets are bound to them.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

impl PacketPort {
    /// Opens a port at the interface of this name.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`].
    pub fn open(name: &str, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        Self::open_for(SocketDuty::Both, name, options)
    }

    /// The same for a part of what a port does.
    pub(super) fn open_for(
        duty: SocketDuty,
        name: &str,
        options: &EtherOptions,
    ) -> Result<Self, EtherOpenError> {
        let failed = |cause| EtherOpenError::of(&name, cause);
        Self::start(InterfaceWatch::open(name)?, duty, options).map_err(failed)
    }

    /// Has others of the same interface share what comes in, as [`Self::steer`] says.
    pub(super) fn share(&mut self, others: &[&Self]) -> io::Result<()> {
        // It stays in the group if another one fails to join, and gets all then.
        let fanout = self.fanout.insert(Fanout::begin(&self.socket)?);
        for other in others {
            Self::bind(&other.station, ALL, &other.socket)?;
            fanout.join(&other.socket)?;
        }
        Ok(())
    }

    /// Frames of FCP with these low bits of the S_ID go to that one of the others, from 1 on; 0 is
    /// this one. Returns whether they do.
    pub(super) fn steer(&mut self, s_id: u16, to: u32) -> io::Result<bool> {
        match &self.fanout {
            Some(fanout) => fanout.steer(s_id, to).map(|()| true),
            None => Ok(false),
        }
    }

    fn start(
        station: InterfaceWatch,
        duty: SocketDuty,
        options: &EtherOptions,
    ) -> io::Result<Self> {
        let (socket, ring) = Self::open_socket(duty, options)?;
        let waited = EpollSet::new()?;
        for news in station.waited() {
            waited.input(news)?;
        }
        waited.input(&socket)?;
        let retry = Retry::new()?;
        waited.input(retry.timer())?;
        let port = Self {
            station,
            duty,
            fanout: None,
            options: options.clone(),
            socket,
            ring,
            slots: FrameSlots::new(options.payload_max + HEADER_MAX),
            is_queue_full: false,
            retry,
            refusals: Refusals::default(),
            lost: LostFrameMemory::new(options.payload_max),
            waited,
            idle: true,
            drops: Drops::default(),
        };
        Self::attach(&port.station, duty, &port.socket)?;
        Ok(port)
    }

    /// A socket that is bound to no interface yet, and its ring.
    fn open_socket(
        duty: SocketDuty,
        options: &EtherOptions,
    ) -> io::Result<(OwnedFd, Option<FrameRing>)> {
        // Of no protocol, so that nothing comes in before it is bound.
        let socket = raw::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        for (name, value) in [
            (libc::PACKET_VERSION, version),
            (libc::PACKET_IGNORE_OUTGOING, 1),
        ] {
            raw::set(&socket, raw::SOL_PACKET, name, &value)?;
        }
        raw::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &PRIORITY)?;
        sockopt::set_socket_send_buffer_size(&socket, options.ring)?;
        let ring = match duty {
            SocketDuty::Both | SocketDuty::Share => {
                let frame_max = options.payload_max + HEADER_MAX;
                Some(FrameRing::new(&socket, frame_max, options.ring)?)
            }
            SocketDuty::Send => None,
        };
        Ok((socket, ring))
    }

    /// Binds the socket to the interface, or to another one that has its name now.
    fn attach(station: &InterfaceWatch, duty: SocketDuty, socket: &OwnedFd) -> io::Result<()> {
        raw::filter(socket, &duty.program(station))?;
        station.join_all(socket)?;
        Self::bind(station, duty.protocol(), socket)
    }

    fn bind(station: &InterfaceWatch, protocol: u16, socket: &OwnedFd) -> io::Result<()> {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: protocol,
            sll_ifindex: station.index(),
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        raw::bind(socket, &address)?;
        Self::rest(socket);
        Ok(())
    }

    /// Where the interface is down, the socket stays ready until it was asked why it fails,
    /// which the link tells.
    fn rest(socket: &OwnedFd) {
        let _ = sockopt::socket_error(socket);
    }

    pub(super) fn mac(&self) -> EtherMac {
        self.station.addresses()[0]
    }

    /// Name and number of the interface.
    pub(super) fn interface(&self) -> (&str, i32) {
        (self.station.name(), self.station.index())
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Whether the interface has sent all that it was given.
    pub(super) fn has_sent_all(&self) -> bool {
        self.slots.is_empty() && raw::unsent(&self.socket).is_ok_and(|bytes| bytes == 0)
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
        // What shares cannot be bound to another interface: it goes on alone.
        let is_shared = self.fanout.is_some() || self.duty == SocketDuty::Share;
        let (duty, socket, options) = (self.duty.alone(), &self.socket, &self.options);
        let mut instead = None;
        let news = self
            .station
            .look(|station, is_anew| match (is_anew, is_shared) {
                (false, _) => Ok(()),
                (true, false) => Self::attach(station, duty, socket),
                (true, true) => {
                    let (socket, ring) = Self::open_socket(duty, options)?;
                    Self::attach(station, duty, &socket)?;
                    instead = Some((socket, ring));
                    Ok(())
                }
            });
        Self::rest(socket);
        if let Some((socket, ring)) = instead {
            self.waited.input(&socket)?;
            (self.socket, self.ring) = (socket, ring);
            (self.duty, self.fanout) = (duty, None);
        }
        news
    }

    pub(super) fn join(&mut self, mac: EtherMac) -> io::Result<()> {
        if self.station.join(&self.socket, mac)? {
            raw::filter(&self.socket, &filter::program(self.station.addresses()))
        } else {
            Ok(())
        }
    }

    pub(super) fn leave(&mut self, mac: EtherMac) -> io::Result<()> {
        if self.station.leave(&self.socket, mac)? {
            raw::filter(&self.socket, &filter::program(self.station.addresses()))
        } else {
            Ok(())
        }
    }

    pub(super) fn receive(&mut self, mut taken: impl FnMut(&[u8], Option<u16>)) -> usize {
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        let mut count = 0;
        while count < BATCH {
            let too_long = &mut self.drops.too_long;
            let is_there = ring.receive(|frame| match frame {
                Some((bytes, tag)) => taken(bytes, tag),
                None => *too_long += 1,
            });
            if !is_there {
                break;
            }
            count += 1;
        }
        self.idle = count == 0;
        count
    }

    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.lost.takes(len, self.link().mtu) {
            return Some(self.lost.slot(len));
        }
        if self.slots.is_full() {
            // What is wrong is told by `flush`.
            let _ = self.send();
        }
        self.slots.slot(len)
    }

    pub(super) fn commit(&mut self, len: usize) {
        if self.lost.commit(len) {
            self.drops.oversize += 1;
        } else {
            self.slots.commit(len);
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<bool> {
        // What was waited for is over.
        self.retry.is_due();
        self.send()?;
        let left = self.slots.is_empty();
        self.waited
            .room(&self.socket, !left && !self.is_queue_full)?;
        if self.is_queue_full {
            self.retry.set(SHORT_PAUSE)?;
        }
        Ok(left)
    }

    fn send(&mut self) -> io::Result<()> {
        self.is_queue_full = false;
        while let Err(cause) = self.slots.send(&self.socket) {
            match cause.raw_os_error() {
                Some(libc::EINTR) => {}
                // No room in the socket, or in a queue: it was not sent, and can be later.
                Some(libc::EAGAIN) => break,
                Some(libc::ENOBUFS) => {
                    if !self.refusals.gives_up(Instant::now(), self.slots.first()) {
                        self.is_queue_full = true;
                        break;
                    }
                    self.slots.skip();
                    self.drops.refused += 1;
                }
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => {
                    self.drops.unsent += self.slots.clear();
                }
                // The MTU has become less, of which we have not heard.
                Some(libc::EMSGSIZE) => {
                    self.slots.skip();
                    self.drops.oversize += 1;
                }
                _ => {
                    self.drops.unsent += self.slots.clear();
                    return Err(cause);
                }
            }
        }
        Ok(())
    }

    pub(super) fn more_to_send(&mut self) -> io::Result<()> {
        self.waited.room(&self.socket, true)
    }

    pub(super) fn next_unsent(&self) -> Option<u64> {
        self.slots.first().map(|(number, _)| number)
    }

    pub(super) fn give_up(&mut self) {
        self.drops.refused += self.slots.clear();
    }

    pub(super) fn wait_for(&self, other: BorrowedFd<'_>) -> io::Result<()> {
        self.waited.input(other)
    }

    pub(super) fn waited(&self) -> &Arc<OwnedFd> {
        self.waited.fd()
    }

    pub(super) fn recent_drops(&mut self) -> io::Result<Drops> {
        // The port that receives there counts what the interface has lost.
        if self.duty == SocketDuty::Send {
            return Ok(self.drops);
        }
        self.drops.ring_full += u64::from(raw::statistics(&self.socket)?.tp_drops);
        self.station.count_later(&mut self.drops);
        Ok(self.drops)
    }

    pub(super) fn drops(&mut self) -> io::Result<Drops> {
        self.drops.ring_full += u64::from(raw::statistics(&self.socket)?.tp_drops);
        self.station.count(&mut self.drops);
        Ok(self.drops)
    }
}

/// Frames that the interface refuses (ENOBUFS). Most often its queue is full, which has room soon;
/// but some frames it refuses for ever, which would hold up all that is behind them.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The number of the frame that is refused now, and since when.
    refused: Option<(u64, Instant)>,
    /// The length of one that was given up, and when that was: others as long are not waited for.
    given_up: Option<(usize, Instant)>,
}

impl Refusals {
    /// Whether to give up the first frame, with its number and length, that is refused now.
    pub(super) fn gives_up(&mut self, now: Instant, first: Option<(u64, usize)>) -> bool {
        let Some((number, len)) = first else {
            return false;
        };
        let is_recent = |at: Instant| now.duration_since(at) < REFUSAL_KEPT;
        if matches!(self.given_up, Some((least, at)) if len >= least && is_recent(at)) {
            return true;
        }
        match self.refused {
            Some((refused, since)) if refused == number => {
                let is_over = now.duration_since(since) >= REFUSED_MAX;
                if is_over {
                    self.given_up = Some((len, now));
                }
                is_over
            }
            _ => {
                self.refused = Some((number, now));
                false
            }
        }
    }
}

/// How long a frame is tried again that the interface refuses. At 1 Gb/s the 1,000 longest frames
/// of a usual queue leave in 18 ms.
const REFUSED_MAX: Duration = Duration::from_millis(100);

/// How long others of its length are given up at once.
const REFUSAL_KEPT: Duration = Duration::from_secs(2);

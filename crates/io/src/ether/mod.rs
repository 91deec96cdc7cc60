//! Ethernet ports: whole frames, in batches both ways.
//!
//! A port is an interface of this machine, by rings of memory that it shares with the kernel, or
//! one end of a cable of Unix datagram sockets, which takes no privilege and may have a virtual
//! machine at its other end. Frames are read where the kernel has put them and written where it
//! takes them from; only FCoE, FIP and LLDP (EtherTypes 8906h, 8914h and 88CCh) to addresses that
//! were joined come in. By AF_XDP there is no LLDP: the kernel keeps it, for its own agents.
//!
//! Class 3 Fibre Channel has no flow control, so nothing here waits for a peer, and whatever is
//! lost is counted in the place where it was lost ([`Drops`]).

mod bpf;
mod cable;
pub mod dcb;
pub mod fast_path;
mod filter;
mod interface_watch;
pub mod interfaces;
mod link;
mod link_query;
mod netlink;
mod packet;
mod place;
mod raw;
mod readiness;
mod shared;
mod slots;
pub mod survey;
#[cfg(test)]
mod tests;
mod xdp;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

pub use cable::CablePort;
use cable::PATH_MAX;

use crate::memory::drain_stores;
pub use packet::PacketPort;
use packet::SocketDuty;
pub use place::Place;
pub use xdp::XdpPort;

/// A MAC address, as it stands in a frame.
pub type EtherMac = [u8; 6];

/// How a port is to be had.
#[derive(Clone, Debug)]
pub struct EtherOptions {
    /// The most bytes of a frame that follow its Ethernet header (and 802.1Q tag). Longer frames
    /// are dropped both ways, and counted.
    pub payload_max: usize,
    /// Bytes for frames that have come in and were not looked at.
    pub ring: usize,
}

impl Default for EtherOptions {
    /// For frames of an MTU of 2500, and all that an initiator may ask for with 32 READs of 256
    /// KiB, as class 3 has no backpressure.
    fn default() -> Self {
        Self {
            payload_max: 2500,
            ring: 16 << 20,
        }
    }
}

/// Why a port cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum EtherOpenError {
    /// No such interface.
    #[error("no interface {0:?}: see ip link")]
    Missing(String),
    /// It is not Ethernet.
    #[error("{0} is not Ethernet, which FCoE needs")]
    NotEthernet(String),
    /// No right to.
    #[error(
        "{0}: lunar serve, switch, ls, dcb, doctor and whatever else is at an Ethernet interface \
         need {PRIVILEGES}: run as root, or grant it with setcap"
    )]
    Forbidden(String),
    /// There is another program of XDP at the interface.
    #[error(
        "{0}: another program takes its frames by XDP, as lunar switch does unless it has \
         --fast-path off (see ip link show {0}): stop it, or omit xdp: to share the interface"
    )]
    Occupied(String),
    /// Both ends of a cable are in use.
    #[error("cable:{0}: both of its ends are in use")]
    Taken(String),
    /// No right to make sockets where a cable is to be.
    #[error("cable:{0}: this user cannot write to its directory: name another one")]
    Closed(String),
    /// More than the address of a Unix socket has room for.
    #[error("cable:{0}: the path has {1} bytes, but the limit is {PATH_MAX}: name a shorter one")]
    LongPath(String, usize),
    /// No place for a cable.
    #[error("cable:{0}: its directory does not exist: create it, or name another one")]
    NoFolder(String),
    /// This process has no descriptor left.
    #[error("{0}: too many files are open: raise the limit (ulimit -n, or LimitNOFILE=)")]
    Descriptors(String),
    /// Anything else.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
}

impl EtherOpenError {
    fn of(place: &impl fmt::Display, cause: io::Error) -> Self {
        let place = place.to_string();
        match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden(place),
            Some(libc::EMFILE) => Self::Descriptors(place),
            _ => Self::Io(place, cause),
        }
    }
}

/// What has become of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStatus {
    /// Frames can go both ways. An interface that is removed is down, and up again when another
    /// one of its name has come up.
    pub up: bool,
    /// No interface has the name any more.
    pub is_gone: bool,
    /// Bytes that may follow a frame's Ethernet header (and tag).
    pub mtu: u32,
}

/// Frames that were lost, by place, since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// That came in while our ring was full.
    pub ring_full: u64,
    /// That came in longer than [`EtherOptions::payload_max`] allows.
    pub too_long: u64,
    /// That were to be sent while the link was down, or found the cable's other end gone.
    pub unsent: u64,
    /// That the interface has refused for 100 ms (ENOBUFS), or that were given up
    /// ([`EtherPort::give_up`]).
    pub refused: u64,
    /// That were to be sent, and are longer than the MTU or [`EtherOptions::payload_max`] allows.
    pub oversize: u64,
    /// That the interface had no memory for (its `rx_missed` and `rx_fifo`).
    pub missed: u64,
    /// That the interface, or what lies between it and us, has dropped otherwise (`rx_dropped`),
    /// among them those of protocols that are not spoken here.
    pub received: u64,
    /// That the interface has not sent (`tx_dropped`).
    pub transmitted: u64,
    /// That came in with a wrong check sequence, as the interface counts them (`rx_crc_errors`).
    pub fcs: u64,
    /// That came in with other errors of framing (`rx_frame_errors`).
    pub framing: u64,
}

/// A port of whichever kind.
///
/// Its user waits for [`Self::waited`] by [`Ring::watch`](crate::ring::Ring::watch), then
/// calls [`Self::receive`], asks [`Self::news`], fills slots, and ends the turn with
/// [`Self::flush`].
#[derive(Debug)]
pub enum EtherPort {
    /// An interface, by rings of AF_PACKET.
    Packet(PacketPort),
    /// An interface, by AF_XDP.
    Xdp(XdpPort),
    /// One end of a cable.
    Cable(CablePort),
}

macro_rules! each {
    ($self:ident, $port:ident => $call:expr) => {
        match $self {
            Self::Packet($port) => $call,
            Self::Xdp($port) => $call,
            Self::Cable($port) => $call,
        }
    };
}

impl EtherPort {
    /// Opens a port.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`].
    pub fn open(place: &Place, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        match place {
            Place::Interface(name) => PacketPort::open(name, options).map(Self::Packet),
            Place::Xdp(name) => XdpPort::open(name, options).map(Self::Xdp),
            Place::Cable(path) => CablePort::open(path, options).map(Self::Cable),
        }
    }

    /// Another port at the same place, as [`Self::sender`], that is to share what comes in.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`]; only interfaces by AF_PACKET are shared.
    pub fn sharer(&self, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        match self {
            Self::Packet(port) => {
                let (name, _) = port.interface();
                PacketPort::open_for(SocketDuty::Share, name, options).map(Self::Packet)
            }
            Self::Xdp(_) | Self::Cable(_) => Err(unshared()),
        }
    }

    /// Has such ports share what comes in, as [`Self::steer`] says.
    ///
    /// # Errors
    ///
    /// The kernel does not: it takes CAP_BPF, and an interface that is up. All of them are to be
    /// closed then but this one.
    pub fn share(&mut self, others: &[&Self]) -> io::Result<()> {
        let Self::Packet(port) = self else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let packet = |other: &&Self| match other {
            Self::Packet(_) => true,
            Self::Xdp(_) | Self::Cable(_) => false,
        };
        if !others.iter().all(packet) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let others = others.iter().filter_map(|other| match other {
            Self::Packet(port) => Some(port),
            Self::Xdp(_) | Self::Cable(_) => None,
        });
        port.share(&others.collect::<Vec<_>>())
    }

    /// From now on frames of FCP whose S_ID has these low bits go to that one of the ports that
    /// share what comes in, by number from 1 on, or to this one, 0. Returns whether they do: ports
    /// that do not share get all.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn steer(&mut self, s_id: u16, to: u32) -> io::Result<bool> {
        match self {
            Self::Packet(port) => port.steer(s_id, to),
            Self::Xdp(_) | Self::Cable(_) => Ok(false),
        }
    }

    /// Another port at the same place, by a socket of its own, which only sends: for another core,
    /// on which a part of what this port is for is done.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`].
    pub fn sender(&self, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        let name = match self {
            Self::Packet(port) => port.interface().0,
            Self::Xdp(port) => port.interface_name(),
            Self::Cable(port) => return port.sender(options).map(Self::Cable),
        };
        PacketPort::open_for(SocketDuty::Send, name, options).map(Self::Packet)
    }

    /// The address of the interface; of a cable, one that its path and end make up.
    #[must_use]
    pub fn mac(&self) -> EtherMac {
        each!(self, port => port.mac())
    }

    /// How the link is, as far as [`Self::news`] was asked.
    #[must_use]
    pub fn link(&self) -> LinkStatus {
        each!(self, port => port.link())
    }

    /// Of AF_XDP, whether the driver receives into our memory and sends from there, at all queues
    /// of the interface; else the kernel copies. `None` of other ports, and while there are no
    /// queues, as the link is down.
    #[must_use]
    pub fn is_zero_copy(&self) -> Option<bool> {
        match self {
            Self::Xdp(port) => port.is_zero_copy(),
            Self::Packet(_) | Self::Cable(_) => None,
        }
    }

    /// The priority in the tags that the interface of a VLAN gave our frames when it was looked at
    /// last; [`PRIORITY`] where its egress map has been told. `None` for other interfaces.
    #[must_use]
    pub fn tag_priority(&self) -> Option<u32> {
        match self {
            Self::Packet(port) => port.tag_priority(),
            Self::Xdp(port) => port.tag_priority(),
            Self::Cable(_) => None,
        }
    }

    /// How the link is, if it has changed, or if another interface has the name now, whose link may
    /// be equal. Costs no system call while frames come in.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn news(&mut self) -> io::Result<Option<LinkStatus>> {
        match self {
            Self::Packet(port) => port.news(),
            Self::Xdp(port) => port.news(),
            Self::Cable(_) => Ok(None),
        }
    }

    /// Has frames to this address come in, besides those to [`Self::mac`]: of a group, or one more
    /// of our own.
    ///
    /// # Errors
    ///
    /// When the interface can have no more, or the filter ([`ADDRESSES_MAX`] in all).
    pub fn join(&mut self, mac: EtherMac) -> io::Result<()> {
        each!(self, port => port.join(mac))
    }

    /// Has frames to an address that was joined come in no more.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, in which case they may still come.
    pub fn leave(&mut self, mac: EtherMac) -> io::Result<()> {
        each!(self, port => port.leave(mac))
    }

    /// Gives each frame that is there to `taken`, up to [`BATCH`], and returns how many were read:
    /// a cable drops some, for other stations or too long. They have no FCS and no more padding
    /// than their sender gave them; the tag control information of an 802.1Q tag that the kernel
    /// has taken out comes besides, another tag stands in the frame.
    pub fn receive(&mut self, taken: impl FnMut(&[u8], Option<u16>)) -> usize {
        each!(self, port => port.receive(taken))
    }

    /// Memory for one frame of `len` bytes. `None` when no more fits now. What is too long to
    /// leave is taken and lost ([`Drops::oversize`]), so that it holds nothing up.
    pub fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        each!(self, port => port.slot(len))
    }

    /// The slot given last holds a frame of `len` bytes, to be sent by the next `flush`.
    ///
    /// # Panics
    ///
    /// When no slot was given, or it is shorter.
    pub fn commit(&mut self, len: usize) {
        each!(self, port => port.commit(len));
    }

    /// Sends. Returns whether all has left; if not, or if there was no slot, the port also becomes
    /// ready when more can leave.
    ///
    /// # Errors
    ///
    /// What is wrong with the port itself; that its link is down is none.
    pub fn flush(&mut self) -> io::Result<bool> {
        // A frame may say that a write has ended, and the interface may take it without a system
        // call.
        drain_stores();
        each!(self, port => port.flush())
    }

    /// Whether all frames of [`Self::flush`] have left the interface too, as far as the kernel
    /// tells; those at a cable wait at its other end then. It costs a system call.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        match self {
            Self::Packet(port) => port.has_sent_all(),
            Self::Cable(port) => port.has_sent_all(),
            Self::Xdp(_) => false,
        }
    }

    /// Becomes ready as soon as anything can leave: the user has more to send, and does something
    /// else first. The next `flush` ends that.
    ///
    /// # Errors
    ///
    /// When the kernel does not wait for it.
    pub fn more_to_send(&mut self) -> io::Result<()> {
        each!(self, port => port.more_to_send())
    }

    /// The number of the frame that is to leave next, among all that there ever were. `None` if all
    /// were given to the kernel, as they always are by AF_XDP.
    #[must_use]
    pub fn next_unsent(&self) -> Option<u64> {
        match self {
            Self::Packet(port) => port.next_unsent(),
            Self::Cable(port) => port.next_unsent(),
            Self::Xdp(_) => None,
        }
    }

    /// Gives up the frames that were not given to the kernel, and counts them ([`Drops::refused`]).
    pub fn give_up(&mut self) {
        match self {
            Self::Packet(port) => port.give_up(),
            Self::Cable(port) => port.give_up(),
            Self::Xdp(_) => {}
        }
    }

    /// Whether nothing was at the other end of a cable when something was sent last.
    #[must_use]
    pub const fn is_alone(&self) -> bool {
        match self {
            Self::Packet(_) | Self::Xdp(_) => false,
            Self::Cable(port) => port.is_alone(),
        }
    }

    /// What becomes readable when there is something to receive, to be sent, or news.
    #[must_use]
    pub fn waited(&self) -> &Arc<OwnedFd> {
        each!(self, port => port.waited())
    }

    /// Has [`Self::waited`] become readable when this does, too, until this is closed.
    ///
    /// # Errors
    ///
    /// When the kernel cannot wait for it.
    pub fn wait_for(&self, other: impl AsFd) -> io::Result<()> {
        each!(self, port => port.wait_for(other.as_fd()))
    }

    /// What was lost, as far as it is known without waiting for the kernel: the counts of the
    /// interface itself are those of the time when this was asked before.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn recent_drops(&mut self) -> io::Result<Drops> {
        match self {
            Self::Packet(port) => port.recent_drops(),
            Self::Xdp(port) => port.recent_drops(),
            Self::Cable(port) => Ok(port.drops()),
        }
    }

    /// What was lost. It may have to wait for the kernel.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn drops(&mut self) -> io::Result<Drops> {
        match self {
            Self::Packet(port) => port.drops(),
            Self::Xdp(port) => port.drops(),
            Self::Cable(port) => Ok(port.drops()),
        }
    }
}

fn unshared() -> EtherOpenError {
    EtherOpenError::Io(
        "not by AF_PACKET".to_owned(),
        io::ErrorKind::Unsupported.into(),
    )
}

/// Frames that one `receive` gives at the most, so that their answers leave soon.
pub const BATCH: usize = 256;

/// Addresses that a port can have, its own among them.
pub const ADDRESSES_MAX: usize = 64;

/// Bytes of an Ethernet header with its tag.
const HEADER_MAX: usize = 18;

/// The priority of FCoE and FIP, which DCB keeps free of loss by custom.
pub const PRIORITY: u32 = 3;

/// What a port at an interface takes; all but the first for XDP.
const PRIVILEGES: &str = "CAP_NET_RAW; for xdp: also CAP_NET_ADMIN and CAP_BPF";

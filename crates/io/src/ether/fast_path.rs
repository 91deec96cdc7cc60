//! Frames of FCoE that the kernel itself takes from one interface to another: a program of XDP at
//! each of them repeats what a switch in user space has decided for a pair of N_Ports.
//!
//! | map | what is in it |
//! |---|---|
//! | pairs | (interface, VLAN, D_ID, S_ID) to a number |
//! | routes | by that number: addresses as they come and as they go, longest frame, ports; see [`route`] |
//! | devices | by port of the switch: its interface |
//! | counters | by port, for each CPU: frames that came in there and went on, and their bytes |
//!
//! A frame that the program has any doubt of goes its usual way, to the socket of the port, where
//! the switch looks at it and counts it. The one check that the program cannot make is the CRC: it
//! passes it on as it came, and who receives the frame checks it.
//!
//! **Order.** A frame that went up to the socket must not be overtaken by a later one of its pair.
//! So the program counts the frames of a pair that go up, and writes the count into reserved bytes
//! of the frame; the switch takes it out, and once the frame has left it tells by
//! [`FastPath::has_left`] up to which one all are gone. Only when that is the last one which went
//! up does the next frame go on in the kernel. A frame that is lost on its way up delays that until
//! the next one of its pair.
//!
//! **Removal.** What [`FastPath::remove`] has taken out holds for every frame that comes in later.
//! A program that has found the pair just before may still send that one frame; it was sent before
//! anything could be answered. The number of a pair is given again only after all others that are
//! free, so that it does not change under such a program.

mod program;
mod route;

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use self::route::Routes;
use super::bpf::{self, AttachMode, BpfMap, MapKind, PerCpuMap};
use super::raw::{self, EthtoolQuery};
use super::{EtherMac, EtherPort, dcb};

/// Interfaces among which the kernel forwards.
#[derive(Debug)]
pub struct FastPath {
    /// By port.
    attached: Vec<Option<Attached>>,
    program: OwnedFd,
    devices: BpfMap<u32, u32>,
    pairs: BpfMap<PairKey, u32>,
    routes: Routes,
    counters: PerCpuMap,
    /// Numbers of routes that are free, the one that has been for longest first.
    free: VecDeque<RouteNumber>,
    /// By port: pairs that come in there.
    used: Vec<u32>,
    /// Pairs that may come in at one port.
    share: u32,
}

/// A port with the program.
#[derive(Debug)]
struct Attached {
    interface: i32,
    _link: OwnedFd,
}

/// The number of a pair that was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouteNumber(u32);

/// As the program reads them: interface; VLAN, D_ID and S_ID as they stand in a frame.
type PairKey = [u32; 4];

/// Two N_Ports, and what becomes of frames from one to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardedPair {
    /// The port where they come in.
    pub ingress: u32,
    /// The port where they go out.
    pub egress: u32,
    /// The tag control information of frames that go out, if those of this fabric are tagged. Those
    /// that come in have the same VLAN.
    pub tci: Option<u16>,
    /// N_Port_ID of the sender.
    pub s_id: u32,
    /// N_Port_ID of the receiver.
    pub d_id: u32,
    /// Destination and source address of frames that come in.
    pub arriving: [EtherMac; 2],
    /// Those of frames that go out.
    pub leaving: [EtherMac; 2],
    /// The most bytes that may follow the Ethernet header and tag at the egress.
    pub mtu: u32,
}

/// Frames that the kernel has forwarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastPathCounters {
    /// Frames that came in at a port and went on.
    pub frames: u64,
    /// Bytes of them as they came.
    pub bytes: u64,
}

/// Why frames are not forwarded in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum FastPathError {
    /// No right to.
    #[error(
        "it needs CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON: run as root, or grant them with setcap"
    )]
    Forbidden,
    /// It has a program already.
    #[error("{0} has another XDP program: see ip link show {0}")]
    Occupied(String),
    /// It is no interface that is shared with the kernel's network stack.
    #[error("only interfaces have it, without xdp:")]
    NoInterface,
    /// The priority in the tags of a VLAN's interface comes from the socket.
    #[error("{0} is the interface of a VLAN: the kernel would not give its frames their priority")]
    Vlan(String),
    /// A pause would not stop its frames, as they have no priority in the kernel.
    #[error("{0} has PFC: the kernel would not send its frames by the queue of their priority")]
    Lossless(String),
    /// A tag that was taken out of a frame would be lost.
    #[error(
        "{0} adds no tags to frames, so those of other VLANs could leave without theirs: try \
         ethtool -K {0} txvlan on"
    )]
    Untagged(String),
    /// The kernel does not take the program, with what it says about it.
    #[error("the kernel refuses the program: {0}")]
    Refused(String),
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FastPath {
    /// Loads the program, for this many ports, of which so many are interfaces. Each of these has
    /// the same share of [`PAIRS_MAX`], so that a guest with many N_Ports takes no other port's.
    ///
    /// # Errors
    ///
    /// See [`FastPathError`].
    pub fn new(ports: u32, interfaces: u32) -> Result<Self, FastPathError> {
        let devices = BpfMap::new(MapKind::DEVICES, ports).map_err(of_kernel)?;
        let pairs = BpfMap::new(MapKind::HASH, PAIRS_MAX).map_err(of_kernel)?;
        let routes = Routes::new(PAIRS_MAX).map_err(of_kernel)?;
        let counters = PerCpuMap::new(ports).map_err(of_kernel)?;
        let instructions = program::instructions(&program::Maps {
            pairs: pairs.number(),
            routes: routes.number(),
            devices: devices.number(),
            counters: counters.number(),
        });
        let program = bpf::load(&instructions).map_err(|refusal| match refusal.log {
            // To subtract one address from another takes CAP_PERFMON.
            Some(log) if log.contains("prohibited") => FastPathError::Forbidden,
            Some(log) => FastPathError::Refused(log),
            None => of_kernel(refusal.cause),
        })?;
        Ok(Self {
            attached: (0..ports).map(|_| None).collect(),
            program,
            devices,
            pairs,
            routes,
            counters,
            free: (0..PAIRS_MAX).map(RouteNumber).collect(),
            used: vec![0; ports as usize],
            share: PAIRS_MAX / interfaces.max(1),
        })
    }

    /// Has the program look at what comes in at a port, until it is attached anew or this is
    /// dropped. A port that is refused has it no more. It runs where the network stack begins
    /// (generic XDP), as most drivers send what another interface has received only on conditions
    /// that the kernel does not tell.
    ///
    /// # Errors
    ///
    /// See [`FastPathError`].
    pub fn attach(&mut self, port: u32, ether: &EtherPort) -> Result<(), FastPathError> {
        // Also where it is refused: the interface that the port had may be gone.
        self.detach(port);
        let EtherPort::Packet(packet) = ether else {
            return Err(FastPathError::NoInterface);
        };
        let (name, interface) = packet.interface();
        if packet.tag_priority().is_some() {
            return Err(FastPathError::Vlan(name.to_owned()));
        }
        if dcb::has_pfc(name) {
            return Err(FastPathError::Lossless(name.to_owned()));
        }
        // Else a driver forgets a tag that the network stack keeps beside the frame.
        let [flags, ..] = raw::ethtool(packet.socket(), name, EthtoolQuery::Flags)?;
        if flags & TX_VLAN == 0 {
            return Err(FastPathError::Untagged(name.to_owned()));
        }
        let link = bpf::attach(&self.program, interface, AttachMode::Generic);
        let _link = link.map_err(|cause| match cause.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => FastPathError::Occupied(name.to_owned()),
            _ => of_kernel(cause),
        })?;
        self.devices.insert(&port, &(interface as u32))?;
        let attached = self.attached.get_mut(port as usize);
        *attached.ok_or(FastPathError::NoInterface)? = Some(Attached { interface, _link });
        Ok(())
    }

    /// Has it look there no more.
    pub fn detach(&mut self, port: u32) {
        if let Some(attached) = self.attached.get_mut(port as usize) {
            *attached = None;
        }
    }

    /// Whether a port has the program.
    #[must_use]
    pub fn is_attached(&self, port: u32) -> bool {
        matches!(self.attached.get(port as usize), Some(Some(_)))
    }

    /// The same, at the interface that this port is at now: one that was made anew has none.
    #[must_use]
    pub fn is_attached_to(&self, port: u32, ether: &EtherPort) -> bool {
        let attached = self.attached.get(port as usize).and_then(Option::as_ref);
        match (attached, ether) {
            (Some(attached), EtherPort::Packet(packet)) => {
                attached.interface == packet.interface().1
            }
            _ => false,
        }
    }

    /// Has frames of a pair forwarded, as soon as those that went up have left. `None` if there are
    /// too many pairs of its ingress, or one of the ports has no program.
    ///
    /// # Errors
    ///
    /// When the kernel does not take it.
    pub fn insert(&mut self, pair: &ForwardedPair) -> io::Result<Option<RouteNumber>> {
        let (Some(key), true) = (self.key(pair), self.is_attached(pair.egress)) else {
            return Ok(None);
        };
        if self.used[pair.ingress as usize] >= self.share {
            return Ok(None);
        }
        let Some(number) = self.free.pop_front() else {
            return Ok(None);
        };
        self.routes.set(number.0, pair);
        if let Err(cause) = self.pairs.insert(&key, &number.0) {
            self.routes.clear(number.0);
            self.free.push_back(number);
            return Err(cause);
        }
        self.used[pair.ingress as usize] += 1;
        Ok(Some(number))
    }

    /// Takes a pair out again: its frames go up.
    ///
    /// # Errors
    ///
    /// When the kernel does not know the pair; its frames go up all the same.
    pub fn remove(&mut self, pair: &ForwardedPair, number: RouteNumber) -> io::Result<()> {
        self.routes.clear(number.0);
        self.free.push_back(number);
        if let Some(used) = self.used.get_mut(pair.ingress as usize) {
            *used = used.saturating_sub(1);
        }
        match self.key(pair) {
            Some(key) => self.pairs.remove(&key),
            None => Ok(()),
        }
    }

    /// All frames of the pair up to this one have left, of those that went up.
    pub fn has_left(&self, route: RouteNumber, frame: FrameNumber) {
        self.routes.has_left(route.0, frame.0);
    }

    /// What was forwarded of that which came in at a port.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn counters(&self, port: u32) -> io::Result<FastPathCounters> {
        let [frames, bytes] = self.counters.sum(port)?;
        Ok(FastPathCounters { frames, bytes })
    }

    fn key(&self, pair: &ForwardedPair) -> Option<PairKey> {
        let attached = self.attached.get(pair.ingress as usize)?.as_ref()?;
        let vid = u16::to_be(pair.tci.unwrap_or_default() & 0x0fff);
        let [d_id, s_id] = [pair.d_id, pair.s_id].map(|id| u32::to_be(id & 0x00ff_ffff));
        Some([attached.interface as u32, vid.into(), d_id, s_id])
    }
}

/// The number of a frame of a pair, among those that went up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameNumber(u32);

impl FrameNumber {
    /// That of a frame of FCoE, if it has one. `header` is where FCoE begins.
    #[must_use]
    pub fn of(frame: &[u8], header: usize) -> Option<Self> {
        let at = header + NUMBER_AT;
        let bytes = frame.get(at..at + 4)?.first_chunk()?;
        match u32::from_ne_bytes(*bytes) {
            0 => None,
            number => Some(Self(number)),
        }
    }

    /// Takes the number out of a frame: the bytes are reserved, and sent as zeros.
    pub fn erase(frame: &mut [u8], header: usize) {
        let at = header + NUMBER_AT;
        if let Some(bytes) = frame.get_mut(at..at + 4) {
            bytes.fill(0);
        }
    }
}

/// Pairs at the most, of which each ingress has its share. They take a megabyte of memory.
const PAIRS_MAX: u32 = 16_384;

/// Where the number stands in a header of FCoE.
const NUMBER_AT: usize = 4;

/// `ETH_FLAG_TXVLAN`: the driver adds tags.
const TX_VLAN: u32 = 1 << 7;

fn of_kernel(cause: io::Error) -> FastPathError {
    match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => FastPathError::Forbidden,
        _ => FastPathError::Io(cause),
    }
}

//! What is known of an interface and of the way from it, as plain data.

use fc::path_probe::{FcfPath, PortPath};
use fc::wire::ethernet::Mac;
use fc::wire::names::Wwn;
use io::ether::dcb::DcbPfc;
use io::ether::survey::{LinkReading, PauseReading, QdiscReading, RingSizes};

/// All that the rules go by.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    /// The name of the interface in question.
    pub interface: String,
    /// That interface, and then others of this machine that its frames pass or may pass.
    pub hops: Vec<Hop>,
    /// What holds for all interfaces.
    pub kernel: KernelSettings,
    /// The kernel's own FCoE port there.
    pub kernel_port: Option<KernelPort>,
    /// Frames that were lost in this machine while it was looked at.
    pub losses: LossesByPhase,
    /// What the port found that measures paths; `None` if there was none.
    pub path: Option<PathReadings>,
    /// What came of frames sent in large numbers; `None` if there were none.
    pub blast: Option<BlastReading>,
}

/// An interface of this machine.
#[derive(Clone, Debug, Default)]
pub struct Hop {
    /// The interface.
    pub link: LinkReading,
    /// How it has to do with the one in question.
    pub place: HopPlace,
    /// Its queueing disciplines.
    pub qdiscs: Vec<QdiscReading>,
    /// Its rings, if it tells.
    pub rings: Option<RingSizes>,
    /// Its link flow control, if it tells.
    pub pause: Option<PauseReading>,
    /// Its priority flow control, if it has it.
    pub pfc: Option<DcbPfc>,
}

/// How an interface has to do with the one in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HopPlace {
    /// It is that.
    #[default]
    Own,
    /// All frames pass it: it is below, or the other end of a pair.
    Below,
    /// It is a port of a bond, or what such a port passes frames on to: each frame passes one of
    /// them, and the others take over from one that is down.
    Bonded,
    /// Frames to some stations pass it: it is at the same bridge.
    Bridged,
}

impl HopPlace {
    /// Whether all frames pass it, or may pass it whatever station they are for.
    #[must_use]
    pub const fn is_certain(self) -> bool {
        !matches!(self, Self::Bridged)
    }
}

/// Settings of the kernel for all interfaces (sysctl net.core). `None` in a network namespace other
/// than the first one, which does not show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// Frames that a turn of receiving takes from all interfaces.
    pub budget: Option<u32>,
    /// Frames that wait for a processor, of interfaces without a ring of their own.
    pub max_backlog: Option<u32>,
}

/// An FCoE port of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPort {
    /// The interface that it is on: the one in question, or a VLAN of it.
    pub interface: String,
    /// It has logged in to another port directly, and ignores every FCF.
    pub is_point_to_point: bool,
}

/// Frames lost in this machine, by place, in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The rings of the interface, or of one below it, were full.
    pub missed: u64,
    /// They were longer than the interface takes.
    pub too_long: u64,
    /// They came in damaged.
    pub damaged: u64,
    /// The interface, or what is above it, dropped them on receipt, as it does with those that no
    /// program takes.
    pub received: u64,
    /// The interface did not send them.
    pub transmitted: u64,
    /// A queueing discipline dropped them.
    pub qdisc: u64,
    /// The backlog of a processor was full; of all interfaces.
    pub backlog: u64,
    /// No loss by itself: turns of receiving that ended with more to do; of all interfaces.
    pub squeezed: u64,
    /// The ring of the socket that measured was full.
    pub socket: u64,
}

impl Losses {
    /// Each place with its name and number, whether or not frames were lost there.
    #[must_use]
    pub const fn places(&self) -> [(&'static str, u64); 9] {
        [
            ("missed", self.missed),
            ("too_long", self.too_long),
            ("damaged", self.damaged),
            ("received", self.received),
            ("transmitted", self.transmitted),
            ("qdisc", self.qdisc),
            ("backlog", self.backlog),
            ("squeezed", self.squeezed),
            ("socket", self.socket),
        ]
    }

    /// What has come since then.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            missed: self.missed.saturating_sub(before.missed),
            too_long: self.too_long.saturating_sub(before.too_long),
            damaged: self.damaged.saturating_sub(before.damaged),
            received: self.received.saturating_sub(before.received),
            transmitted: self.transmitted.saturating_sub(before.transmitted),
            qdisc: self.qdisc.saturating_sub(before.qdisc),
            backlog: self.backlog.saturating_sub(before.backlog),
            squeezed: self.squeezed.saturating_sub(before.squeezed),
            socket: self.socket.saturating_sub(before.socket),
        }
    }
}

/// Frames lost before, during and after the blast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossesByPhase {
    /// While the way was measured.
    pub before: Losses,
    /// While as many frames as possible went back and forth.
    pub during: Losses,
    /// In the second after that.
    pub after: Losses,
}

impl LossesByPhase {
    /// One place's number in all phases together.
    #[must_use]
    pub fn all(&self, of: impl Fn(&Losses) -> u64) -> u64 {
        [self.before, self.during, self.after].iter().map(of).sum()
    }
}

/// What the port found that measures paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathReadings {
    /// The MTU of its Ethernet port.
    pub mtu: usize,
    /// Other ports of VN2VN.
    pub ports: Vec<PortPath>,
    /// FCFs.
    pub fcfs: Vec<FcfPath>,
    /// Ports that log in outside of FIP.
    pub outside_fip: Vec<(Mac, Wwn)>,
    /// Neighbours on the link that speak DCBX.
    pub neighbours: Vec<NeighbourReading>,
    /// Why no neighbour could be heard.
    pub unheard: Option<String>,
}

/// A neighbour by LLDP that speaks DCBX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeighbourReading {
    /// Its system and its port.
    pub name: String,
    /// Priorities for which its priority flow control is on, a bit each.
    pub pfc: u8,
}

/// Frames that went back and forth in large numbers, to a `lunar floor` and from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlastReading {
    /// Frames that came.
    pub received: u64,
    /// Frames that the other end sent and that did not come.
    pub lost_in: u64,
    /// Frames that arrived there.
    pub sent: u64,
    /// Frames that did not arrive there.
    pub lost_out: u64,
    /// Of those that did not come, what the ring of our socket had no room for.
    pub ring_full: u64,
}

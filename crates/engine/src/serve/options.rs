//! What `lunar serve` can be told, as plain data, and what it tells back.
//!
//! The command line and, later, the configuration both end here, so whatever holds for both is
//! checked here and not where it was typed.

mod machine;
mod misuse;
mod numbers;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

pub use ::io::cpu::{CpuList, CpuListError};
use ::io::rdma::RdmaError;
pub use ::io::ring::RingKind;
pub use iscsi::auth::Hash as ChapHash;
pub use iscsi::target::{ChapUser, TargetChap, TargetLimits};

use crate::change::ChangeError;
use crate::inventory::InventoryError;
pub use crate::inventory::{FcoePort, NotAPort};
use address::ParseError;
use fc::wire::names::Wwn;
pub use machine::{BUSY_POLL, MachineMisuse};
pub use misuse::{OptionNumber, ServeMisuse};
use runtime::n_port::NoPort;
pub use runtime::polling::PollMode;

/// Everything that `serve` can be told.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The addresses of the volumes, as written; each becomes a LUN, in this order, or the one
    /// whose number stands in front of it: `3=ram:1G`.
    pub volumes: Vec<String>,
    /// A target for each volume (LUN 0 of each) in place of one for all.
    pub target_per_volume: bool,
    /// Where to listen; port 0 picks a free one.
    pub listen: Vec<SocketAddr>,
    /// What carries iSER at every portal, beside iSCSI; `None`: nothing does.
    pub iser: Option<IserProvider>,
    /// Whether software iWARP asks for CRCs.
    pub iser_crc: bool,
    /// Fibre Channel ports over Ethernet that show the same LUNs.
    pub fcoe: Vec<FcoePort>,
    /// What SendTargets answers with in place of the address that a connection came to:
    /// `HOST:PORT` each.
    pub advertise: Vec<String>,
    /// The iSCSI name of the target; with a target for each volume, `:N` is appended.
    pub iqn: String,
    /// Every initiator that reaches a portal may log in (`--open`).
    pub open: bool,
    /// The initiator names and WWPNs that may log in; without names any may do so by iSCSI, without
    /// WWPNs none by Fibre Channel but over a cable.
    pub allow: Vec<String>,
    /// CHAP, which then must be done, as well as being on the list.
    pub chap: Option<TargetChap>,
    /// What every unit says of itself and how it behaves.
    pub units: UnitOptions,
    /// How many reactors; `None`: as many as the process may use cores.
    pub threads: Option<NonZeroUsize>,
    /// The CPUs that they are pinned to, one each; `None`: none is.
    pub pin: Option<CpuList>,
    /// Which ring drives them.
    pub ring: RingKind,
    /// When they spin.
    pub poll: PollMode,
    /// How long the kernel polls network cards before they sleep; `None`: not at all.
    pub busy_poll: Option<Duration>,
    /// Bytes that all RAM volumes may take together; `None`: by what is available at start.
    pub memory_limit: Option<u64>,
    /// Where acknowledged state is kept (APTPL reservations); `None`: nowhere.
    pub state_dir: Option<PathBuf>,
    /// How long units of other targets that cannot be opened are tried again at the start; volumes
    /// that cannot be opened then are absent. Zero: they are an error.
    pub wait: Duration,
    /// Bounds on what a peer can cost.
    pub limits: TargetLimits,
}

/// What carries iSER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IserProvider {
    /// Software iWARP, over the TCP connections of the portals.
    Software,
    /// The RDMA devices that have the addresses of the portals, but those of iWARP.
    Device,
    /// Either of these.
    Both,
}

impl IserProvider {
    /// Whether connections of TCP may be those of software iWARP.
    #[must_use]
    pub const fn is_software(self) -> bool {
        matches!(self, Self::Software | Self::Both)
    }

    /// Whether RDMA devices listen.
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Both)
    }
}

/// What holds for every unit of the command.
#[derive(Clone, Debug, Default)]
pub struct UnitOptions {
    /// Nothing can write.
    pub readonly: bool,
    /// RMB = 1; can be ejected and loaded.
    pub removable: bool,
    /// The units of other targets are used through this server alone.
    pub sole_gateway: bool,
    /// The size of a logical block; `None`: the volume's own.
    pub block_size: Option<BlockSizeOption>,
    /// T10 VENDOR IDENTIFICATION, up to 8 printable characters.
    pub vendor: Option<String>,
    /// PRODUCT IDENTIFICATION, up to 16.
    pub product: Option<String>,
    /// Unit serial numbers, up to 36 characters, each with the number of its volume in front:
    /// `3=DB-0001`; without one, of the only volume.
    pub serials: Vec<String>,
}

/// Bytes in a logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSizeOption {
    /// 512, eight of which make a physical block.
    B512,
    /// 4096.
    B4096,
}

impl BlockSizeOption {
    /// The number.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B512 => 512,
            Self::B4096 => 4096,
        }
    }
}

/// The portal that is used when none is given.
pub const DEFAULT_PORTAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3260);

/// How many cores may serve: more than there are in machines of today, and few enough that their
/// rings and threads fit.
pub const MOST_THREADS: u16 = 1024;

/// A CHAP user as it is written: `USER`, or `USER@IQN` for one initiator alone. What follows the
/// last `@` is a name only if it begins like one, as users may be called like mail addresses.
#[must_use]
pub fn chap_user(spec: &str, secret: Vec<u8>) -> ChapUser {
    let is_name = |text: &str| {
        let kind = text.get(..4).unwrap_or_default().to_ascii_lowercase();
        ["iqn.", "eui.", "naa."].contains(&&*kind)
    };
    let bound = spec.rsplit_once('@').filter(|(_, name)| is_name(name));
    let (name, initiator) = match bound {
        Some((name, initiator)) => (name, Some(initiator.to_owned())),
        None => (spec, None),
    };
    ChapUser {
        name: name.to_owned(),
        initiator,
        secret,
    }
}

impl ServeOptions {
    /// Options that serve `volumes` on the default portal under `iqn`, all else by default.
    #[must_use]
    pub fn new(volumes: Vec<String>, iqn: String, state_dir: Option<PathBuf>) -> Self {
        Self {
            volumes,
            target_per_volume: false,
            listen: vec![DEFAULT_PORTAL],
            iser: None,
            iser_crc: true,
            fcoe: Vec::new(),
            advertise: Vec::new(),
            iqn,
            open: false,
            allow: Vec::new(),
            chap: None,
            units: UnitOptions::default(),
            threads: None,
            pin: None,
            ring: RingKind::default(),
            poll: PollMode::default(),
            busy_poll: None,
            memory_limit: None,
            state_dir,
            wait: Duration::ZERO,
            limits: TargetLimits::default(),
        }
    }

    /// The WWPNs of `--allow`. What begins with `naa.` is an iSCSI name.
    #[must_use]
    pub fn allowed_ports(&self) -> Vec<Wwn> {
        self.allow
            .iter()
            .filter_map(|name| port_name(name))
            .collect()
    }

    /// The iSCSI names of `--allow`.
    #[must_use]
    pub fn allowed_names(&self) -> Vec<&str> {
        let names = self.allow.iter().filter(|name| port_name(name).is_none());
        names.map(String::as_str).collect()
    }
}

fn port_name(name: &str) -> Option<Wwn> {
    let name = (!name.starts_with("naa.")).then_some(name);
    name.and_then(|name| name.parse().ok())
}

/// A LUN that is ready to be used, as told to the user.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReadyLun {
    /// The connect address by the first portal, `iscsi://127.0.0.1:3260/iqn…/0`, or by a Fibre
    /// Channel port, `fcoe://eth0/20:00:…/0`.
    pub address: String,
    /// Every portal, with the ports that were picked: `127.0.0.1:3260`. A wildcard stands for the
    /// addresses of the interfaces. Of Fibre Channel the interface.
    pub portals: Vec<String>,
    /// The target's name, or its WWPN.
    pub target: String,
    /// Its number.
    pub lun: u16,
    /// Capacity in bytes; 0 of a volume that is absent.
    pub size_bytes: u64,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// The volume's address, as it was given.
    pub volume: String,
}

/// Why serving ended, other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The options are wrong; nothing was tried.
    #[error(transparent)]
    Misuse(#[from] ServeMisuse),
    /// A volume's address is malformed; nothing was tried. The cause points at the place.
    #[error(transparent)]
    Malformed(#[from] ParseError),
    /// A name is not an iSCSI name; nothing was tried.
    #[error("{name:?} is not an iSCSI name: {cause}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A volume cannot be opened. Nothing is half-started.
    #[error("cannot open {address}: {cause}")]
    Open {
        /// The address.
        address: String,
        /// Why; where it is about a volume within the address, which one.
        cause: String,
    },
    /// Two volumes are one, or say so. Nothing is half-started.
    #[error(
        "{one} and {other} are the same volume (serial number {serial}): omit one of them or, if \
         they are different, set another serial number with --serial {name}=TEXT"
    )]
    SameVolume {
        /// The address of one.
        one: String,
        /// The address of the other.
        other: String,
        /// What both call themselves.
        serial: String,
        /// The name of the other's unit.
        name: String,
    },
    /// What is to be served contradicts itself; nothing was tried.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The cores could not make the change; what was served stays.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A change was prepared, and what was to remember it could not.
    #[error("{0}")]
    NotKept(String),
    /// A portal cannot be bound.
    #[error("cannot listen on {portal}: {cause}")]
    Listen {
        /// The portal that cannot be opened.
        portal: SocketAddr,
        /// What the kernel says.
        cause: String,
    },
    /// RDMA devices cannot listen on a portal.
    #[error(transparent)]
    Rdma(#[from] RdmaError),
    /// A Fibre Channel port cannot be opened.
    #[error("--fcoe: {0}")]
    Fcoe(#[from] NoPort),
    /// The machine does not give what serving needs (a ring, threads, the state directory).
    #[error("{what}: {cause}")]
    Machine {
        /// What was wanted.
        what: String,
        /// Why it is not to be had.
        cause: std::io::Error,
    },
    /// Flushing these volumes failed, or was cut short by a second order to stop.
    #[error("not flushed: {}", .0.join(", "))]
    NotFlushed(Vec<String>),
    /// Told twice to stop, when there was nothing to flush.
    #[error("stopped by a second signal: sessions were cut off, but all volumes were flushed")]
    CutShort,
}

impl ServeError {
    /// The exit code: 2 where nothing was tried, 1 where something failed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Misuse(_) | Self::Malformed(_) | Self::Name { .. } | Self::Inventory(_) => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests;

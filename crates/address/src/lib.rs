//! Addresses: how every verb names a volume, wherever it is.
//!
//! ```text
//! address = leaf | name[:args](address,…)
//! leaf    = scheme:body[?key=value&…]
//! args    = value | key=value,…
//! ```
//!
//! A comma or `)` ends a leaf only inside parentheses; in a body, `( ) , ? & %` are written `%XX`.
//! Here are the plain data and how they are written; [`Address::from_str`] reads them. Nothing is
//! opened: that is what `client::open` does with an address.
#![forbid(unsafe_code)]

mod error;
mod fabric;
mod faults;
mod fcoe;
mod filter;
mod host;
mod leaf;
mod number;
mod parse;
mod place;
mod session;
mod text_piece;
mod write;

use std::iter;
use std::mem;
use std::path::PathBuf;
use std::slice;
use std::str::FromStr;
use std::time::Duration;

use ::io::ether::Place;
use block::fault::Faults;
pub use error::{ParseError, SyntaxProblem, nearest};
pub use fabric::{FabricOptions, FabricVlan, FcoeMode, FurtherNames, NotAVlan, NotFurtherNames};
pub use faults::FaultError;
use fc::wire::names::Wwn;
pub use fcoe::FcoePortal;
pub use host::{Host, HostPort, PortalAddress};
use iscsi::auth::Hash as ChapHash;
pub use iscsi::names::normalise as normalise_iscsi_name;
pub use number::{ByteRate, ItemCount, Size, Time, exact_size, human_size};
pub use parse::built;

/// The port of iSCSI and iSER where none is given (RFC 7143 §13.8).
pub const ISCSI_PORT: u16 = 3260;

/// The greatest LUN that an address can name: what the flat space addressing method of SAM-5
/// §4.7.7.4 has room for.
pub const LUN_MAX: u16 = 0x3fff;

/// How deep wrappers may be nested: each level costs stack.
const DEPTH_MAX: usize = 16;

/// The most sessions that one core has with one unit: as many as a large target has cores, and few
/// enough for all of them to be looked at when something happens.
pub const SESSIONS_MAX: u16 = 64;

/// Names a volume.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// `ram:1G`, a RAM disk.
    Ram(RamAddress),
    /// `null:1T`, which reads zeros and drops writes.
    Null(Size),
    /// `file:/path`.
    File(FileAddress),
    /// `block:/dev/nvme0n1`, a block device.
    Block(BlockAddress),
    /// `scsi:/dev/sg3`, a real SCSI device.
    Scsi(PathBuf),
    /// `rbd:pool/image@snap`, an image of Ceph.
    Rbd(RbdAddress),
    /// `iscsi://…`, a remote logical unit over TCP.
    Iscsi(UnitAddress),
    /// `iser://…`, the same over RDMA.
    Iser(UnitAddress),
    /// `fcoe://eth0/20:00:ac:de:48:23:45:67/0`, a remote logical unit over Ethernet; a cable,
    /// `cable:/path`, may stand in place of the interface.
    Fcoe(FcoeAddress),
    /// `vol:db`, a volume of the daemon's tree, by the name of its row.
    Row(String),
    /// `stripe:64k(A,B,…)`, RAID-0.
    Stripe {
        /// How much lies on one volume before the next one follows.
        chunk: Size,
        /// Two volumes or more.
        volumes: Vec<Address>,
    },
    /// `concat(A,B)`, one volume after the other.
    Concat(Vec<Address>),
    /// `mirror(A,B)`, RAID-1.
    Mirror(Vec<Address>),
    /// `limit:iops=10k,rate=100M,burst=1s(A)`; one of the two limits at least.
    Limit {
        /// Operations a second.
        iops: Option<ItemCount>,
        /// Bytes a second.
        rate: Option<ByteRate>,
        /// As much as in this time may be done at once after a pause.
        burst: Option<Time>,
        /// What is limited.
        volume: Box<Address>,
    },
    /// `delay:5ms(A)`.
    Delay {
        /// How long, in whole microseconds.
        time: Duration,
        /// What is delayed.
        volume: Box<Address>,
    },
    /// `fault:…(A)`, which fails as its arguments say.
    Fault {
        /// What fails, and how.
        faults: Faults,
        /// Of which volume.
        volume: Box<Address>,
    },
    /// `verify(A)`, which checks what it reads against what was written.
    Verify(Box<Address>),
    /// `stats(A)`, which counts what goes through.
    Stats(Box<Address>),
    /// `readonly(A)`, which cannot be written.
    Readonly(Box<Address>),
}

/// `ram:1G?locked`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamAddress {
    /// In bytes.
    pub size: Size,
    /// All of its memory is taken and locked when it is opened.
    pub locked: bool,
}

impl From<Size> for RamAddress {
    fn from(size: Size) -> Self {
        let locked = false;
        Self { size, locked }
    }
}

/// `file:/path?size=10G&sparse&direct&sync&readonly`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileAddress {
    /// Where; any bytes but NUL.
    pub path: PathBuf,
    /// The file is created, or extended, to this size; never made shorter.
    pub size: Option<Size>,
    /// Room for `size` is not reserved, but taken as blocks are written.
    pub sparse: bool,
    /// Past the page cache (O_DIRECT).
    pub direct: bool,
    /// Every write is on stable storage before it is answered.
    pub sync: bool,
    /// Opened for reading.
    pub read_only: bool,
}

/// `block:/dev/sdb?readonly`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockAddress {
    /// The device node.
    pub device: PathBuf,
    /// Opened for reading.
    pub read_only: bool,
}

/// `rbd:pool/image@snap`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbdAddress {
    /// The pool.
    pub pool: String,
    /// The image.
    pub image: String,
    /// The snapshot, which cannot be written.
    pub snapshot: Option<String>,
}

/// `iscsi://[user@]host[:3260]/iqn.2026-11.org.example:disk0/0?mutual&digests=crc32c&timeout=30s`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitAddress {
    /// The CHAP name. Its secret never stands in an address.
    pub user: Option<String>,
    /// The portal.
    pub portal: HostPort,
    /// The target's iSCSI name.
    pub target: String,
    /// The logical unit; 0 where the address does not say.
    pub lun: u16,
    /// How its sessions are.
    pub session: SessionOptions,
}

/// What an address says of the sessions with a remote unit; `None` is what is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// The file that holds what proves the user.
    pub secret_file: Option<PathBuf>,
    /// The target has to authenticate itself, too (mutual CHAP).
    pub mutual: bool,
    /// The file that holds what the target has to prove.
    pub mutual_secret_file: Option<PathBuf>,
    /// The one hash that is offered for CHAP; all are where this is `None`.
    pub chap_hash: Option<ChapHash>,
    /// Whether PDUs have to have CRC32C digests, or must not; over TCP.
    pub digests: Option<bool>,
    /// What RDMA is done by; where this is `None`, by a device on the way if there is one and the
    /// target answers there, else by software.
    pub via: Option<RdmaProvider>,
    /// Whether CRCs are asked for; over RDMA by software.
    pub crc: Option<bool>,
    /// How long a command may take.
    pub timeout: Option<Time>,
    /// How long a lost session may take to come back.
    pub replacement: Option<Time>,
    /// The key of a registration with the unit, which is not 0.
    pub key: Option<u64>,
    /// Whether the unit has to cache writes, or must not.
    pub write_cache: Option<bool>,
    /// How many sessions each core has.
    pub sessions: Option<u16>,
    /// InitiatorName, by which the target knows the sessions.
    pub initiator: Option<String>,
}

/// What RDMA is done by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RdmaProvider {
    /// `soft`: software iWARP over TCP.
    Software,
    /// `device`: whichever device is on the way.
    Device,
    /// The device of this name, as `rdma link` has it, has to be on the way.
    Named(String),
}

/// `fcoe://eth0/20:00:ac:de:48:23:45:67/0?mode=fabric&vlan=152&e_d_tov=100ms`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FcoeAddress {
    /// The local Ethernet port to go out by.
    pub place: Place,
    /// The WWPN of the target port.
    pub port_name: Wwn,
    /// The logical unit; 0 where the address does not say.
    pub lun: u16,
    /// What it says of the way there; `None` is what is usual.
    pub options: FcoeOptions,
}

/// What an address says of the way to a unit over Ethernet; `None` is what is usual.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FcoeOptions {
    /// How the port is found.
    pub mode: FcoeMode,
    /// E_D_TOV of the exchanges with the port: how soon a frame counts as lost.
    pub e_d_tov: Option<Time>,
    /// How long a lost port may take to come back.
    pub replacement: Option<Time>,
    /// The key of a registration with the unit, which is not 0.
    pub key: Option<u64>,
    /// Whether the unit has to cache writes, or must not.
    pub write_cache: Option<bool>,
}

impl Address {
    /// The volumes inside a wrapper; empty for a leaf.
    #[must_use]
    pub fn inner(&self) -> &[Address] {
        match self {
            Self::Stripe { volumes, .. } | Self::Concat(volumes) | Self::Mirror(volumes) => volumes,
            Self::Limit { volume, .. }
            | Self::Delay { volume, .. }
            | Self::Fault { volume, .. }
            | Self::Verify(volume)
            | Self::Stats(volume)
            | Self::Readonly(volume) => slice::from_ref(volume),
            _ => &[],
        }
    }

    /// The same address with others in place of its leaves.
    ///
    /// # Errors
    ///
    /// The first that `map` has.
    pub fn try_map_leaves<E>(
        self,
        map: &mut impl FnMut(Self) -> Result<Self, E>,
    ) -> Result<Self, E> {
        let mut outer = self;
        let inner: &mut [Self] = match &mut outer {
            Self::Stripe { volumes, .. } | Self::Concat(volumes) | Self::Mirror(volumes) => volumes,
            Self::Limit { volume, .. }
            | Self::Delay { volume, .. }
            | Self::Fault { volume, .. }
            | Self::Verify(volume)
            | Self::Stats(volume)
            | Self::Readonly(volume) => slice::from_mut(volume),
            _ => return map(outer),
        };
        for one in inner {
            // It is put back, or all is dropped.
            let leaf = mem::replace(one, Self::Null(Size(0)));
            *one = leaf.try_map_leaves(map)?;
        }
        Ok(outer)
    }

    /// The volumes within that stand around no other, in the order in which they are written: the
    /// address itself where it is a leaf.
    pub fn leaves(&self) -> impl Iterator<Item = &Self> {
        let mut left = vec![self];
        iter::from_fn(move || {
            loop {
                let next = left.pop()?;
                match next.inner() {
                    [] => return Some(next),
                    inner => left.extend(inner.iter().rev()),
                }
            }
        })
    }
}

impl FromStr for Address {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse::address(text)
    }
}

#[cfg(test)]
mod any;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod tests;

//! What `lunar serve` can be told, as plain data, and what it tells back.
//!
//! The command line and, later, the configuration both end here, so whatever holds for both is
//! checked here and not where it was typed.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

pub use iscsi::auth::Hash as ChapHash;

use crate::address::ParseError;

/// Everything that `serve` can be told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The addresses of the volumes, as written; each becomes a LUN, in this order.
    pub volumes: Vec<String>,
    /// A target for each volume (LUN 0 of each) in place of one for all.
    pub target_per_volume: bool,
    /// Where to listen; port 0 picks a free one.
    pub listen: Vec<SocketAddr>,
    /// What SendTargets answers with in place of the address that a connection came to:
    /// `HOST:PORT` each.
    pub advertise: Vec<String>,
    /// The iSCSI name of the target; with a target for each volume, `:N` is appended.
    pub iqn: String,
    /// Everybody who reaches a portal may log in, in so many words.
    pub open: bool,
    /// The initiator names that may log in; empty: any.
    pub allow: Vec<String>,
    /// CHAP, which then must be done, as well as being on the list.
    pub chap: Option<Chap>,
    /// What every unit says of itself and how it behaves.
    pub units: UnitOptions,
    /// How many reactors; `None`: as many as the process may use cores.
    pub threads: Option<NonZeroUsize>,
    /// Which ring drives them.
    pub ring: RingChoice,
    /// When they spin.
    pub poll: PollMode,
    /// Octets that all RAM volumes may take together; `None`: by what is available at start.
    pub memory_limit: Option<u64>,
    /// Where acknowledged state is kept (APTPL reservations).
    pub state_dir: PathBuf,
    /// Bounds on what a peer can cost.
    pub limits: Limits,
}

/// What holds for every unit of the command.
#[derive(Clone, Debug, Default)]
pub struct UnitOptions {
    /// Nothing can write.
    pub readonly: bool,
    /// RMB = 1; can be ejected and loaded.
    pub removable: bool,
    /// The size of a logical block; `None`: the volume's own.
    pub block_size: Option<BlockSize>,
    /// T10 VENDOR IDENTIFICATION, up to 8 printable characters.
    pub vendor: Option<String>,
    /// PRODUCT IDENTIFICATION, up to 16.
    pub product: Option<String>,
    /// Unit serial number, up to 36, of the only unit.
    pub serial: Option<String>,
}

/// Octets in a logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// 512, eight of which make a physical block.
    B512,
    /// 4096.
    B4096,
}

impl BlockSize {
    /// The number.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B512 => 512,
            Self::B4096 => 4096,
        }
    }
}

/// CHAP credentials. The secrets are never shown.
#[derive(Clone)]
pub struct Chap {
    /// User names and secrets of initiators; at least one.
    pub users: Vec<(String, Vec<u8>)>,
    /// Our own name and secret, for initiators that want us to prove who we are.
    pub mutual: Option<(String, Vec<u8>)>,
    /// The weakest hash that will do.
    pub minimum: ChapHash,
}

impl std::fmt::Debug for Chap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let users: Vec<_> = self.users.iter().map(|(user, _)| user).collect();
        f.debug_struct("Chap")
            .field("users", &users)
            .field("mutual", &self.mutual.as_ref().map(|(user, _)| user))
            .field("minimum", &self.minimum)
            .finish()
    }
}

/// Which ring drives the reactors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingChoice {
    /// io_uring where the kernel has it, else epoll.
    #[default]
    Auto,
    /// io_uring, or fail.
    Uring,
    /// epoll.
    Epoll,
}

/// When a reactor spins in place of sleeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollMode {
    /// Never.
    Never,
    /// For as long as it pays.
    #[default]
    Adaptive,
    /// Always; it takes a whole core each.
    Always,
}

/// Bounds on what a peer can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From accept to full feature phase.
    pub login_timeout: Duration,
    /// Silence after which a NOP-In is sent.
    pub nop_interval: Duration,
    /// Silence after that NOP-In after which the connection is dropped.
    pub nop_timeout: Duration,
    /// Connections that have not logged in, at once.
    pub logins: usize,
    /// Sessions, at once.
    pub sessions: usize,
    /// Octets of data that may be held for one connection before its device server took them.
    pub connection_memory: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(15),
            nop_interval: Duration::from_secs(30),
            nop_timeout: Duration::from_secs(60),
            logins: 256,
            sessions: 16_384,
            connection_memory: 8 << 20,
        }
    }
}

/// The portal that is used when none is given.
pub const DEFAULT_PORTAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 3260);

/// How many LUNs single-level addressing can name (SAM-5 §4.7.10.1).
const MOST_VOLUMES: usize = 16_384;

/// The longest `--serial`.
const SERIAL_CHARS: usize = 36;

/// How many octets a secret may have; the lower bound is that of RFC 7143 §9.2.1, the upper one
/// keeps it in one text key.
pub const SECRET_OCTETS: std::ops::RangeInclusive<usize> = 12..=255;

impl Options {
    /// Options that serve `volumes` on the default portal under `iqn`, all else by default.
    #[must_use]
    pub fn new(volumes: Vec<String>, iqn: String, state_dir: PathBuf) -> Self {
        Self {
            volumes,
            target_per_volume: false,
            listen: vec![DEFAULT_PORTAL],
            advertise: Vec::new(),
            iqn,
            open: false,
            allow: Vec::new(),
            chap: None,
            units: UnitOptions::default(),
            threads: None,
            ring: RingChoice::default(),
            poll: PollMode::default(),
            memory_limit: None,
            state_dir,
            limits: Limits::default(),
        }
    }

    /// Looks for what contradicts itself, before anything is opened.
    pub fn validate(&self) -> Result<(), Misuse> {
        self.validate_access()?;
        self.validate_units()?;
        self.validate_limits()?;
        self.chap.as_ref().map_or(Ok(()), Chap::validate)
    }

    fn validate_access(&self) -> Result<(), Misuse> {
        let guarded = self.chap.is_some() || !self.allow.is_empty();
        if self.open && guarded {
            return Err(Misuse::OpenAndGuarded);
        }
        let exposed = self.listen.iter().find(|portal| !portal.ip().is_loopback());
        match exposed {
            Some(portal) if !self.open && !guarded => Err(Misuse::Exposed(*portal)),
            _ => Ok(()),
        }
    }

    fn validate_units(&self) -> Result<(), Misuse> {
        let units = &self.units;
        if self.volumes.is_empty() {
            return Err(Misuse::NoVolume);
        }
        if self.volumes.len() > MOST_VOLUMES {
            return Err(Misuse::TooManyVolumes(self.volumes.len()));
        }
        if units.serial.is_some() && self.volumes.len() > 1 {
            return Err(Misuse::SharedSerial);
        }
        printable("--vendor", units.vendor.as_deref(), 8)?;
        printable("--product", units.product.as_deref(), 16)?;
        printable("--serial", units.serial.as_deref(), SERIAL_CHARS)
    }

    fn validate_limits(&self) -> Result<(), Misuse> {
        let Limits {
            login_timeout,
            nop_interval,
            nop_timeout,
            logins,
            sessions,
            connection_memory,
        } = self.limits;
        let lows = [
            ("--login-timeout", login_timeout.as_secs(), 1),
            ("--nop-interval", nop_interval.as_secs(), 1),
            ("--nop-timeout", nop_timeout.as_secs(), 1),
            ("--max-logins", logins as u64, 1),
            ("--max-sessions", sessions as u64, 1),
            (
                "--connection-memory",
                u64::from(connection_memory),
                512 << 10,
            ),
        ];
        match lows.into_iter().find(|(_, value, least)| value < least) {
            Some((option, value, least)) => Err(Misuse::TooLow {
                option,
                value,
                least,
            }),
            None => Ok(()),
        }
    }
}

impl Chap {
    fn validate(&self) -> Result<(), Misuse> {
        let mut seen = HashSet::new();
        for (user, secret) in self.users.iter().chain(&self.mutual) {
            if user.is_empty() {
                return Err(Misuse::EmptyUser);
            }
            if !SECRET_OCTETS.contains(&secret.len()) {
                return Err(Misuse::SecretLength {
                    user: user.clone(),
                    octets: secret.len(),
                });
            }
        }
        if let Some((user, _)) = self.users.iter().find(|(user, _)| !seen.insert(user)) {
            return Err(Misuse::DuplicateUser(user.clone()));
        }
        let Some((_, ours)) = &self.mutual else {
            return Ok(());
        };
        // A peer that knew our secret could answer our own challenge with it (RFC 7143 §9.2.1).
        if self.users.iter().any(|(_, theirs)| theirs == ours) {
            return Err(Misuse::SharedSecret);
        }
        Ok(())
    }
}

/// INQUIRY and VPD 80h carry printable ASCII, padded with spaces to their width.
fn printable(option: &'static str, text: Option<&str>, most: usize) -> Result<(), Misuse> {
    let Some(text) = text else { return Ok(()) };
    let fits = (1..=most).contains(&text.len());
    if fits && text.bytes().all(|octet| (0x20..0x7f).contains(&octet)) {
        return Ok(());
    }
    Err(Misuse::Unprintable {
        option,
        text: text.to_owned(),
        most,
    })
}

/// Options that contradict themselves or a rule; nothing was tried. What, why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// No volume.
    #[error("nothing to serve: give at least one volume, such as ram:1G")]
    NoVolume,
    /// `--open` with `--allow` or CHAP.
    #[error("--open lets everybody in, --allow and --chap do not: give one or the other")]
    OpenAndGuarded,
    /// A portal that others reach, and nothing said about who may.
    #[error(
        "portal {0} can be reached by other machines: say who may log in with --allow or --chap, \
         or let everybody in with --open"
    )]
    Exposed(SocketAddr),
    /// More volumes than there are LUNs.
    #[error("{0} volumes are too many: one command serves up to 16384, start several")]
    TooManyVolumes(usize),
    /// `--serial` for several.
    #[error("--serial names one volume, but several are given: serve them by separate commands")]
    SharedSerial,
    /// A text that INQUIRY cannot carry.
    #[error("{option} {text:?} does not fit: 1 to {most} printable ASCII characters")]
    Unprintable {
        /// Of which option.
        option: &'static str,
        /// The text.
        text: String,
        /// How many characters there may be.
        most: usize,
    },
    /// A limit under which nothing works.
    #[error("{option} {value} is too low: at least {least}")]
    TooLow {
        /// Of which option.
        option: &'static str,
        /// What was given.
        value: u64,
        /// What is needed.
        least: u64,
    },
    /// A CHAP user without a name.
    #[error("a CHAP user needs a name")]
    EmptyUser,
    /// One CHAP user twice.
    #[error("CHAP user {0} is given twice: one secret each")]
    DuplicateUser(String),
    /// A secret that is too short or too long.
    #[error(
        "the secret of {user} has {octets} octets: 12 to 255 are needed (RFC 7143 §9.2.1), put \
         them on the first line of its file"
    )]
    SecretLength {
        /// Whose.
        user: String,
        /// How many.
        octets: usize,
    },
    /// Our secret is one of theirs.
    #[error("the mutual secret is also an initiator's: they must differ (RFC 7143 §9.2.1)")]
    SharedSecret,
}

/// A LUN that is ready to be used, as told to the user.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReadyLun {
    /// The connect address by the first portal: `iscsi://127.0.0.1:3260/iqn…/0`.
    pub address: String,
    /// Every portal, with the ports that were picked: `127.0.0.1:3260`.
    pub portals: Vec<String>,
    /// The target's name.
    pub target: String,
    /// Its number.
    pub lun: u16,
    /// Capacity in octets.
    pub size_bytes: u64,
    /// Octets in a logical block.
    pub block_size: u32,
    /// The volume's address, as it was given.
    pub volume: String,
}

/// Why serving ended, other than by being told to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The options are wrong; nothing was tried.
    #[error(transparent)]
    Misuse(#[from] Misuse),
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
    /// A portal cannot be bound.
    #[error("cannot listen on {portal}: {cause}")]
    Listen {
        /// Which.
        portal: SocketAddr,
        /// Why.
        cause: String,
    },
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
    #[error("told twice to stop: sessions were cut off; no volume has anything left to flush")]
    CutShort,
}

impl Error {
    /// The exit code: 2 where nothing was tried, 1 where something failed.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Misuse(_) | Self::Malformed(_) | Self::Name { .. } => 2,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests;

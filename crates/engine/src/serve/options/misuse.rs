//! What is wrong with options, found before anything is opened.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use ::io::ether::Place;
use ::io::memory::GRANULE;
use fc::wire::names::Wwn;
use iscsi::parameters::FIRST_WINDOW;
use iscsi::text::MAX_VALUE;

use super::{ChapUser, MOST_THREADS, MachineMisuse, ServeOptions, TargetChap};
use crate::inventory::FcoePort;
use address::{LUN_MAX, Size, Time};
use runtime::secret::SECRET_BYTES;

/// Options that contradict themselves or a rule; nothing was tried. What, why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServeMisuse {
    /// No volume.
    #[error("nothing to serve: give at least one volume, such as ram:1G")]
    NoVolume,
    /// `--open` with `--allow` or CHAP.
    #[error(
        "--open admits every initiator, --allow and --chap restrict logins: give one or the other"
    )]
    OpenAndGuarded,
    /// A portal that others reach, and nothing said about who may.
    #[error(
        "portal {0} can be reached by other machines: restrict logins with --allow or --chap, or \
         admit every initiator with --open"
    )]
    Exposed(SocketAddr),
    /// An interface that others reach, and nothing said about who may.
    #[error(
        "--fcoe {0}: every machine on its Ethernet can reach it: restrict logins with --allow \
         WWPN, or admit every initiator with --open"
    )]
    ExposedInterface(Place),
    /// A name that no initiator has.
    #[error(
        "--allow {0}: this is neither an iSCSI name, which begins with iqn., eui. or naa., nor a \
         WWPN such as 20:00:52:54:00:78:41:00"
    )]
    NoInitiator(String),
    /// An interface twice.
    #[error("--fcoe {0} is given twice: omit one of them")]
    SameInterface(Place),
    /// A WWPN twice.
    #[error("--fcoe …,wwpn={0}: another port has this name: give each port its own")]
    SameWwpn(Wwn),
    /// `--target-per-volume` with a port that is one target.
    #[error(
        "--target-per-volume makes several targets, but a Fibre Channel port is a single one: \
         omit --target-per-volume or --fcoe"
    )]
    OnePortOneTarget,
    /// A portal to which no TCP connection can be made.
    #[error(
        "--listen {0}: a multicast or broadcast address cannot accept connections: give another \
         one"
    )]
    Unconnectable(SocketAddr),
    /// An address of one link, and nothing said about which.
    #[error("--listen {0}: a link-local address needs its interface, as in [fe80::1%25eth0]")]
    NoInterface(SocketAddr),
    /// A portal twice.
    #[error("--listen {1} is already covered by --listen {0}: omit one of them")]
    SamePortal(SocketAddr, SocketAddr),
    /// iSER where nothing listens.
    #[error("--iser needs a portal, and with --fcoe alone there is none: add --listen HOST:PORT")]
    IserWithoutPortal,
    /// More volumes than there are LUNs.
    #[error("{0} volumes are too many: one server has at most 16384, so start several")]
    TooManyVolumes(usize),
    /// A volume that would have no block.
    #[error("{address} is smaller than a block of --block-size {block_size}: make it larger")]
    NoBlock {
        /// The address.
        address: String,
        /// Bytes in a block.
        block_size: u32,
    },
    /// A number that no LUN has.
    #[error("{0}: a LUN is a number from 0 to {LUN_MAX}")]
    LunTooHigh(String),
    /// Two volumes of one number.
    #[error(
        "LUN {number} is both {one} and {other}: give one of them another number, as in 7=ADDR"
    )]
    SameLun {
        /// The number.
        number: u16,
        /// The address of one.
        one: String,
        /// The address of the other.
        other: String,
    },
    /// `--serial` without a number, for several volumes.
    #[error(
        "--serial {0} does not say which volume it is for: put the LUN in front, as in --serial \
         0={0}"
    )]
    WhoseSerial(String),
    /// `--serial` of a LUN without a volume.
    #[error("--serial {0}: no volume has this LUN: give the LUN of a volume")]
    SerialOfNothing(String),
    /// `--serial` twice for one LUN.
    #[error("--serial {0}=… is given twice: omit one of them")]
    TwoSerials(u16),
    /// One serial number for two LUNs.
    #[error(
        "--serial {serial:?} of LUN {one} is that of LUN {other} too: initiators would treat them \
         as one disk: give each its own"
    )]
    SharedSerial {
        /// The serial number.
        serial: String,
        /// One LUN.
        one: u16,
        /// The other.
        other: u16,
    },
    /// A text that INQUIRY cannot carry.
    #[error(
        "{option} {text:?} does not fit: 1 to {most} printable ASCII characters, not all blank"
    )]
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
        value: OptionNumber,
        /// What is needed.
        least: OptionNumber,
    },
    /// More than there can be.
    #[error("{option} {value} is too high: at most {most}")]
    TooHigh {
        /// Of which option.
        option: &'static str,
        /// What was given.
        value: OptionNumber,
        /// What there may be.
        most: OptionNumber,
    },
    /// Threads or processors that cannot be had together.
    #[error(transparent)]
    Machine(#[from] MachineMisuse),
    /// A CHAP user that no login can name.
    #[error(
        "{option} {name:?} is not a CHAP name: it must have 1 to 255 bytes and no control \
         characters (RFC 7143 §6.1)"
    )]
    UserName {
        /// Of which option.
        option: &'static str,
        /// The name.
        name: String,
    },
    /// One CHAP user twice.
    #[error("CHAP user {0} is given twice: give each USER or USER@IQN once")]
    DuplicateUser(String),
    /// A user whose initiator has no iSCSI name.
    #[error(
        "--chap {0}: what follows the @ is not an iSCSI name: give USER@IQN, where IQN begins with \
         iqn., eui. or naa."
    )]
    BoundToNothing(String),
    /// A secret that is too short or too long.
    #[error(
        "the secret of {user} has {bytes} bytes: put 12 to 255 on the first line of its file \
         (RFC 7143 §9.2.1)"
    )]
    SecretLength {
        /// The CHAP user.
        user: String,
        /// How many.
        bytes: usize,
    },
    /// Our secret is one of theirs.
    #[error("the mutual secret is also an initiator's: they must differ (RFC 7143 §9.2.1)")]
    SharedSecret,
    /// A secret of an initiator is one of a target.
    #[error(
        "the CHAP secrets of {initiator} and of {target} are the same: one proves an initiator, \
         the other a target, so they must differ (RFC 7143 §9.2.1)"
    )]
    SecretOfBothSides {
        /// Whose it is at an initiator.
        initiator: String,
        /// Whose it is at a target.
        target: String,
    },
}

/// A number as its option takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum OptionNumber {
    /// Of things.
    Count(u64),
    /// In bytes.
    Size(u64),
    /// A time.
    Time(Duration),
}

impl fmt::Display for OptionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count(number) => number.fmt(f),
            Self::Size(bytes) => Size(bytes).fmt(f),
            Self::Time(Duration::ZERO) => f.write_str("0s"),
            Self::Time(time) => Time(time).fmt(f),
        }
    }
}

impl ServeOptions {
    /// Looks for what contradicts itself, before anything is opened.
    pub fn validate(&self) -> Result<(), ServeMisuse> {
        self.validate_access()?;
        self.validate_units()?;
        self.validate_limits()?;
        self.validate_machine()?;
        self.chap.as_ref().map_or(Ok(()), validate_chap)
    }

    fn validate_access(&self) -> Result<(), ServeMisuse> {
        let guarded = self.chap.is_some() || !self.allow.is_empty();
        if self.open && guarded {
            return Err(ServeMisuse::OpenAndGuarded);
        }
        let mut names = self.allowed_names().into_iter();
        if let Some(name) = names.find(|name| !is_initiator_name(name)) {
            return Err(ServeMisuse::NoInitiator(name.to_owned()));
        }
        validate_portals(&self.listen)?;
        if self.iser.is_some() && self.listen.is_empty() {
            return Err(ServeMisuse::IserWithoutPortal);
        }
        let exposed = self.listen.iter().find(|portal| !portal.ip().is_loopback());
        let closed = self.chap.is_some() || !self.allowed_names().is_empty();
        match exposed {
            Some(portal) if !self.open && !closed => Err(ServeMisuse::Exposed(*portal)),
            _ => self.validate_fcoe(),
        }
    }

    fn validate_fcoe(&self) -> Result<(), ServeMisuse> {
        if self.fcoe.is_empty() {
            return Ok(());
        }
        if self.target_per_volume {
            return Err(ServeMisuse::OnePortOneTarget);
        }
        for (number, port) in self.fcoe.iter().enumerate() {
            let before = &self.fcoe[..number];
            if before.iter().any(|other| other.place == port.place) {
                return Err(ServeMisuse::SameInterface(port.place.clone()));
            }
            let mut others = before.iter().flat_map(FcoePort::names);
            if let Some(wwpn) = others.find(|other| port.names().any(|name| name == *other)) {
                return Err(ServeMisuse::SameWwpn(wwpn));
            }
        }
        let is_shared = |port: &&FcoePort| !matches!(port.place, Place::Cable(_));
        match self.fcoe.iter().find(is_shared) {
            Some(port) if !self.open && self.allowed_ports().is_empty() => {
                Err(ServeMisuse::ExposedInterface(port.place.clone()))
            }
            _ => Ok(()),
        }
    }

    fn validate_units(&self) -> Result<(), ServeMisuse> {
        let units = &self.units;
        if self.volumes.is_empty() {
            return Err(ServeMisuse::NoVolume);
        }
        if self.volumes.len() > MOST_VOLUMES {
            return Err(ServeMisuse::TooManyVolumes(self.volumes.len()));
        }
        self.numbered()?;
        for serial in self.serials()?.values() {
            printable("--serial", Some(serial), SERIAL_CHARS)?;
        }
        printable("--vendor", units.vendor.as_deref(), 8)?;
        printable("--product", units.product.as_deref(), 16)
    }

    fn validate_limits(&self) -> Result<(), ServeMisuse> {
        let (limits, time) = (&self.limits, OptionNumber::Time);
        let count = |number: usize| OptionNumber::Count(number as u64);
        let (held, held_least) = (u64::from(limits.held_bytes), HELD_LEAST);
        let memory = self.memory_limit.unwrap_or(u64::MAX);
        let second = time(Duration::from_secs(1));
        let lows = [
            ("--login-timeout", time(limits.login_timeout), second),
            ("--nop-interval", time(limits.nop_interval), second),
            ("--nop-timeout", time(limits.nop_timeout), second),
            ("--max-logins", count(limits.logins), count(1)),
            ("--max-sessions", count(limits.sessions), count(1)),
            (
                "--connection-memory",
                OptionNumber::Size(held),
                OptionNumber::Size(held_least),
            ),
            (
                "--memory-limit",
                OptionNumber::Size(memory),
                OptionNumber::Size(GRANULE),
            ),
        ];
        if let Some((option, value, least)) =
            lows.into_iter().find(|(_, value, least)| value < least)
        {
            return Err(ServeMisuse::TooLow {
                option,
                value,
                least,
            });
        }
        let threads = self.threads.map_or(1, NonZeroUsize::get);
        let highs = [
            (
                "--max-sessions",
                count(limits.sessions),
                count(MOST_SESSIONS),
            ),
            ("--threads", count(threads), count(MOST_THREADS.into())),
        ];
        match highs.into_iter().find(|(_, value, most)| value > most) {
            Some((option, value, most)) => Err(ServeMisuse::TooHigh {
                option,
                value,
                most,
            }),
            None => Ok(()),
        }
    }
}

fn validate_portals(listen: &[SocketAddr]) -> Result<(), ServeMisuse> {
    for (number, &portal) in listen.iter().enumerate() {
        let (multicast, no_interface) = match portal {
            SocketAddr::V4(portal) => {
                let ip = portal.ip();
                (ip.is_multicast() || ip.is_broadcast(), false)
            }
            SocketAddr::V6(portal) => {
                let lone = portal.ip().is_unicast_link_local() && portal.scope_id() == 0;
                (portal.ip().is_multicast(), lone)
            }
        };
        if multicast {
            return Err(ServeMisuse::Unconnectable(portal));
        }
        if no_interface {
            return Err(ServeMisuse::NoInterface(portal));
        }
        if let Some(&other) = listen[..number]
            .iter()
            .find(|other| overlap(**other, portal))
        {
            return Err(ServeMisuse::SamePortal(other, portal));
        }
    }
    Ok(())
}

/// Whether two portals cannot be bound at once. Those of port 0 get a port each, and IPv6 ones are
/// for IPv6 alone.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port()
        && one.port() != 0
        && one.is_ipv4() == other.is_ipv4()
        && (everywhere || one == other)
}

/// Whether a login can carry the name of a user (CHAP_N, a text-value of RFC 7143 §6.1).
fn is_user_name(name: &str) -> bool {
    (1..=MAX_VALUE).contains(&name.len()) && !name.contains(char::is_control)
}

/// Whether a user is to be bound to an initiator, of which the name is misspelled. A mail address
/// has a domain behind its `@`, and no colon there.
fn is_bound_to_nothing(user: &str) -> bool {
    let bound = user.rsplit_once('@');
    bound.is_some_and(|(_, name)| name.is_empty() || name.contains(':'))
}

pub(super) fn validate_chap(chap: &TargetChap) -> Result<(), ServeMisuse> {
    let users = chap.users.iter();
    let users = users.map(|user| ("--chap", &user.name, &user.secret));
    let ours = chap.mutual.iter();
    let ours = ours.map(|(user, secret)| ("--mutual-user", user, secret));
    for (option, user, secret) in users.chain(ours) {
        if !is_user_name(user) {
            return Err(ServeMisuse::UserName {
                option,
                name: user.clone(),
            });
        }
        if !SECRET_BYTES.contains(&secret.len()) {
            return Err(ServeMisuse::SecretLength {
                user: user.clone(),
                bytes: secret.len(),
            });
        }
    }
    for (at, user) in chap.users.iter().enumerate() {
        if user.initiator.is_none() && is_bound_to_nothing(&user.name) {
            return Err(ServeMisuse::BoundToNothing(user.name.clone()));
        }
        // Names of initiators do not differ by case (RFC 7143 §4.2.7.1).
        let bound = |user: &ChapUser| user.initiator.as_ref().map(|name| name.to_lowercase());
        let same = |other: &ChapUser| {
            let apart = user.initiator.is_some() && other.initiator.is_some();
            other.name == user.name && !(apart && bound(other) != bound(user))
        };
        if chap.users[..at].iter().any(same) {
            return Err(ServeMisuse::DuplicateUser(user.name.clone()));
        }
    }
    let Some((_, ours)) = &chap.mutual else {
        return Ok(());
    };
    // A peer that knew our secret could answer our own challenge with it (RFC 7143 §9.2.1).
    if chap.users.iter().any(|user| user.secret == *ours) {
        return Err(ServeMisuse::SharedSecret);
    }
    Ok(())
}

/// INQUIRY and VPD 80h carry printable ASCII, padded with spaces to their width.
fn printable(option: &'static str, text: Option<&str>, most: usize) -> Result<(), ServeMisuse> {
    let Some(text) = text else { return Ok(()) };
    let fits = text.len() <= most && !text.trim().is_empty();
    if fits && text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return Ok(());
    }
    Err(ServeMisuse::Unprintable {
        option,
        text: text.to_owned(),
        most,
    })
}

/// Where no initiator offers FirstBurstLength it is 65,536 (RFC 7143 §13.14): that much for each
/// place that a login response opens.
const HELD_LEAST: u64 = 65_536 * FIRST_WINDOW as u64;

/// How many LUNs single-level addressing can name (SAM-5 §4.7.10.1).
const MOST_VOLUMES: usize = 16_384;

/// How many sessions there are handles for: a TSIH has 16 bits and is not 0.
const MOST_SESSIONS: usize = 65_535;

/// The longest `--serial`.
const SERIAL_CHARS: usize = 36;

/// Whether an iSCSI name begins as it has to (RFC 7143 §4.2.7.1), in either case.
fn is_initiator_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["iqn.", "eui.", "naa."]
        .iter()
        .any(|kind| name.starts_with(kind))
}

//! What a switch is told by its command, as plain data, and what is wrong with that.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use ::io::ether::Place;
pub use ::io::ring::RingKind;
use fc::fabric::zones::Zones;
pub use fc::lldp::LldpMode;
use fc::wire::ethernet::Mac;
pub use fc::wire::fip::FKA_PERIODS;
pub use fc::wire::names::Wwn;
use tracing::Span;

pub use super::backpressure::PORTS_MAX;
use crate::inventory::fcoe_port;

/// The options of `lunar switch`.
#[derive(Clone, Debug)]
pub struct SwitchOptions {
    /// What it is called where a process has several: all lines of its log tell it.
    pub name: Option<String>,
    /// Where its ports are, in the order of the command.
    pub places: Vec<Place>,
    /// Its domain: the upper byte of the N_Port_IDs that it gives.
    pub domain: u8,
    /// The VLAN of the fabric. `None`: frames carry no tag, or the interfaces add them.
    pub vlan: Option<u16>,
    /// Its FIP priority; ENodes prefer the FCF with the lowest.
    pub priority: u8,
    /// `FKA_ADV_PERIOD`.
    pub fka: Duration,
    /// The upper half of the addresses that it gives.
    pub fc_map: FcMap,
    /// `None`: derived from the first port's address.
    pub fabric_name: Option<Wwn>,
    /// `None`: derived from the first port's address.
    pub switch_name: Option<Wwn>,
    /// Which N_Ports may communicate.
    pub zoning: Zoning,
    /// The folder in which N_Port_IDs are remembered.
    pub state: Option<PathBuf>,
    /// It waits for another switch of its names to end.
    pub standby: bool,
    /// What it does of LLDP and DCBX.
    pub lldp: LldpMode,
    /// Whether the kernel forwards between interfaces.
    pub fast_path: FastPathChoice,
    /// Which ring to wait with.
    pub ring: RingKind,
    /// On how many cores its ports live, up to one for each, and up to [`THREADS_MAX`]. `None`: as
    /// many as this process may use.
    pub threads: Option<NonZeroUsize>,
}

/// Whether the kernel forwards what the switch has let through before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathChoice {
    /// Where it can.
    Auto,
    /// All frames go through user space.
    Off,
}

/// Which N_Ports of the fabric may communicate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Zoning {
    /// Nothing was said: no port sees another.
    Closed,
    /// All ports see each other.
    Open,
    /// What a file says.
    File(PathBuf),
    /// These zones, until others are given.
    Given(Arc<Zones>),
}

/// What `--domain` may be (FC-SW-6, `Domain_ID` of a switch).
pub const DOMAINS: RangeInclusive<u8> = 1..=239;

/// What `--vlan` may be (IEEE 802.1Q, VID).
pub const VLANS: RangeInclusive<u16> = 1..=4094;

/// What `--threads` may be at the most. Each core has a socket at each port.
pub const THREADS_MAX: usize = 16;

/// Below it, Linux takes FKA_ADV_PERIOD for wrong and uses 8 s.
pub const LINUX_FKA_MIN: Duration = Duration::from_millis(500);

/// Options that contradict themselves or a rule; nothing was tried. What, why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchMisuse {
    /// No port.
    #[error("no port given: name interfaces or cables, as in lunar switch eth1 cable:/run/a.sock")]
    NoPlace,
    /// More ports than a switch has.
    #[error("{0} ports are too many: one switch has at most {PORTS_MAX}")]
    TooManyPlaces(usize),
    /// A port twice.
    #[error("{0} is given twice: omit one of them")]
    SamePlace(String),
    /// A period that no ENode takes.
    #[error("--fka: ENodes refuse periods below 250ms or over 90s: give one between, such as 8s")]
    Fka,
    /// A name that says nothing.
    #[error("{0} {1}: this name is reserved; omit {0} to derive one from the first port's address")]
    Reserved(&'static str, Wwn),
    /// Names of its own for what is to take the place of another.
    #[error(
        "--standby takes over the names of another switch: give both --switch-name and \
         --fabric-name, as that switch prints them"
    )]
    StandbyOfNone,
    /// No port at which another switch could be heard.
    #[error(
        "--standby: the other switch is heard at interfaces, and all ports here are cables: add an \
         interface that both switches have a port on"
    )]
    StandbyAtCables,
}

impl SwitchOptions {
    /// A switch with these ports, all else by default.
    #[must_use]
    pub fn new(places: Vec<Place>) -> Self {
        Self {
            name: None,
            places,
            domain: 1,
            vlan: None,
            priority: 128,
            fka: Duration::from_secs(8),
            fc_map: FcMap::default(),
            fabric_name: None,
            switch_name: None,
            zoning: Zoning::Closed,
            state: None,
            standby: false,
            lldp: LldpMode::Send,
            fast_path: FastPathChoice::Auto,
            ring: RingKind::Auto,
            threads: None,
        }
    }

    /// On how many cores it runs.
    pub(super) fn cores(&self) -> usize {
        let available = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.unwrap_or_else(available).get();
        threads.min(self.places.len()).clamp(1, THREADS_MAX)
    }

    /// What lines of the log stand in: the name of the switch, if it has one.
    pub(super) fn span(&self) -> Span {
        match &self.name {
            // Of this level, it is there whatever is logged.
            Some(name) => tracing::error_span!("switch", %name),
            None => Span::none(),
        }
    }

    /// Checks them. Opens nothing.
    ///
    /// # Errors
    ///
    /// See [`SwitchMisuse`].
    pub fn validate(&self) -> Result<(), SwitchMisuse> {
        match self.places.len() {
            0 => return Err(SwitchMisuse::NoPlace),
            1..=PORTS_MAX => {}
            count => return Err(SwitchMisuse::TooManyPlaces(count)),
        }
        for (at, place) in self.places.iter().enumerate() {
            let is_same = |other: &&Place| same_port(place, other);
            if let Some(other) = self.places[..at].iter().find(is_same) {
                return Err(SwitchMisuse::SamePlace(other.to_string()));
            }
        }
        if !FKA_PERIODS.contains(&self.fka) {
            return Err(SwitchMisuse::Fka);
        }
        for (option, name) in [
            ("--fabric-name", self.fabric_name),
            ("--switch-name", self.switch_name),
        ] {
            if let Some(name @ Wwn(0 | u64::MAX)) = name {
                return Err(SwitchMisuse::Reserved(option, name));
            }
        }
        if self.standby && (self.switch_name.is_none() || self.fabric_name.is_none()) {
            return Err(SwitchMisuse::StandbyOfNone);
        }
        if self.standby && are_cables(&self.places) {
            return Err(SwitchMisuse::StandbyAtCables);
        }
        Ok(())
    }

    /// What is to be said once of options that work, but not as one may expect.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.zoning == Zoning::Closed {
            remarks.push(
                "there are no zones, so no port sees another: give --zones FILE, or --open to let \
                 every port see all others"
                    .to_owned(),
            );
        }
        if self.fka < LINUX_FKA_MIN {
            let period = self.fka.as_millis();
            remarks.push(format!(
                "--fka {period}ms: Linux takes a period below 500ms for 8 s, so it would notice \
                 the loss of this switch after 20 s: give 500ms or more"
            ));
        }
        remarks
    }
}

/// Whether these are cables alone, at which no other switch is heard.
#[must_use]
pub fn are_cables(places: &[Place]) -> bool {
    let is_cable = |place: &Place| matches!(place, Place::Cable(_));
    places.iter().all(is_cable)
}

/// Whether two places are one Ethernet port. A cable has two ends, but a switch that had both would
/// be plugged into itself.
fn same_port(one: &Place, other: &Place) -> bool {
    match (one.interface(), other.interface()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// A place as it is typed.
///
/// # Errors
///
/// The message for what is none.
pub fn place(text: &str) -> Result<Place, String> {
    for scheme in ["fcoe://", "fcoe:"] {
        if let Some(rest) = text.strip_prefix(scheme) {
            let bare = rest.trim_end_matches('/');
            return Err(format!("a port is named without {scheme}, as in {bare}"));
        }
    }
    fcoe_port::place(text).map_err(|cause| cause.to_string())
}

/// FC-MAP: the upper three bytes of a Fabric Provided MAC Address (FC-BB-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcMap(pub [u8; 3]);

impl Default for FcMap {
    fn default() -> Self {
        Self(Mac::FC_MAP)
    }
}

impl fmt::Display for FcMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([a, b, c]) = self;
        write!(f, "{a:02x}:{b:02x}:{c:02x}")
    }
}

/// Why something is no FC-MAP for a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAnFcMap {
    /// Not three bytes.
    #[error("an FC-MAP has 6 hexadecimal digits, as in 0e:fc:00")]
    Malformed,
    /// Zero.
    #[error("ENodes refuse an FC-MAP of 0: give for example 0e:fc:00")]
    Zero,
    /// With the group bit.
    #[error(
        "its addresses would be those of groups, as the lowest bit of the first byte is set: give \
         for example 0e:fc:00"
    )]
    Group,
    /// That of VN2VN.
    #[error("0e:fd:00 is that of ports without a fabric (VN2VN): give for example 0e:fc:00")]
    Vn2Vn,
}

impl FromStr for FcMap {
    type Err = NotAnFcMap;

    /// With colons or without, with or without `0x`.
    fn from_str(text: &str) -> Result<Self, NotAnFcMap> {
        let bare = text.strip_prefix("0x").unwrap_or(text);
        let is_spaced = bare.len() == 8 && bare.split(':').all(|byte| byte.len() == 2);
        let digits: String = bare.split(':').collect();
        let is_hex = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_hex || !(is_spaced || bare.len() == 6) {
            return Err(NotAnFcMap::Malformed);
        }
        let number = u32::from_str_radix(&digits, 16).map_err(|_| NotAnFcMap::Malformed)?;
        let [_, a, b, c] = number.to_be_bytes();
        match [a, b, c] {
            [0, 0, 0] => Err(NotAnFcMap::Zero),
            [a, ..] if a & 1 != 0 => Err(NotAnFcMap::Group),
            Mac::VN2VN_FC_MAP => Err(NotAnFcMap::Vn2Vn),
            map => Ok(Self(map)),
        }
    }
}

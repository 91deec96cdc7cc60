//! The tree: all that is configured, as rows. The file, the verbs, the shell, REST and importers
//! only write a candidate tree; [`crate::plan`] tells what each difference does to whom.
//!
//! ```text
//! [volume.NAME]    a logical unit: its address, and what hosts know it by
//! [group.NAME]     initiators that are treated alike, and their CHAP credentials
//! [target."NAME"]  an IQN or a WWPN: portals, LUNs, and who may log in
//! [switch.NAME]    a Fibre Channel switch: its ports, and who sees whom
//! ```
//!
//! Rows are plain data: [`crate::check`] finds what does not fit together. What is not written is
//! the default, and a default is not written.

mod portal_iser;
mod portals;
mod switch;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use address::{ByteRate, ItemCount, Size, Time};
use itertools::EitherOrBoth::{Both, Left, Right};
use itertools::Itertools;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::{NumberKey, Quantity, TimeSpan};
use crate::secret::SecretSource;
pub use portal_iser::PortalIser;
pub(crate) use portals::{A_LIST, A_PORTAL};
pub use portals::{PortalRow, Portals};
pub use switch::{FastPathUse, LldpUse, SwitchRow};

/// The version of the document that this program writes, and the highest that it reads.
pub const VERSION: u32 = 1;

/// Everything that is configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tree {
    /// The version of the document.
    pub version: u32,
    /// What holds for the process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub daemon: DaemonRow,
    /// How the control plane is reached beside its Unix socket.
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: ApiRow,
    /// Who may ask which targets there are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub discovery: DiscoveryRow,
    /// Logical units, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volume: BTreeMap<String, VolumeRow>,
    /// Groups of initiators, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group: BTreeMap<String, GroupRow>,
    /// Targets, by IQN or WWPN.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub target: BTreeMap<String, TargetRow>,
    /// Switches, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switch: BTreeMap<String, SwitchRow>,
}

/// What holds for the process. A change counts at the next start, if nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct DaemonRow {
    /// How many cores serve; where missing, as many as the process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// The CPUs that they are pinned to, one each: `0,2-5`; where missing, none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// How long the kernel polls network cards before they sleep; where missing, not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_poll: Option<Time>,
    /// Bytes that all RAM volumes may take together; where missing, by what is available at the
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Size>,
    /// The InitiatorName by which this machine opens volumes of other targets; where missing, the
    /// machine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initiator_name: Option<String>,
    /// Whether iSER connections are asked for CRCs (RFC 5044 §4.4); where missing, they are. It
    /// counts from the next connection on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iser_crc: Option<bool>,
}

/// How the control plane is reached beside its Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApiRow {
    /// TCP addresses, `HOST:PORT`. Without TLS only loopback ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listen: Vec<String>,
    /// The certificate and its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsRow>,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct TlsRow {
    /// The path of the certificate chain.
    pub cert: String,
    /// Where the private key is.
    pub key: SecretSource,
}

/// Who may ask which targets there are (SendTargets).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct DiscoveryRow {
    /// What SendTargets answers with in place of the portals: `HOST:PORT` each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advertise: Vec<String>,
}

/// A logical unit, however many targets show it: its identity, reservations, settings and
/// statistics are its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct VolumeRow {
    /// What holds its blocks; may name other rows (`vol:NAME`).
    pub address: String,
    /// The size of a volume of RAM, `null:` or a file that is made; part of the address there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub size: Option<Size>,
    /// UNIT SERIAL NUMBER; where missing, it follows from machine and row name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The NAA designator of VPD page 83h, 16 or 32 hexadecimal digits; where missing, it follows
    /// from the serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naa: Option<String>,
    /// T10 VENDOR IDENTIFICATION, up to 8 printable characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// PRODUCT IDENTIFICATION, up to 16.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Bytes in a logical block, 512 or 4096; where missing, the volume's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<u32>,
    /// No host can write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub readonly: bool,
    /// RMB = 1; can be ejected and loaded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub removable: bool,
    /// What all hosts together may do in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitRow>,
}

/// What all hosts together may do to a volume in a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitRow {
    /// Operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub iops: Option<ItemCount>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub rate: Option<ByteRate>,
    /// As much as in this time may be done at once after a pause; where missing, 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TimeSpan>)]
    pub burst: Option<Time>,
}

/// Initiators that are treated alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct GroupRow {
    /// IQNs and WWPNs; `*` is everybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initiators: Vec<String>,
    /// What they log in with; where missing, CHAP is not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapRow>,
    /// What the target proves itself with, to initiators that ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual: Option<ChapRow>,
    /// The weakest hash that will do; where missing, SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_min: Option<HashName>,
}

/// A name and a secret of CHAP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct ChapRow {
    /// CHAP_N.
    pub user: String,
    /// Where the secret is.
    #[schema(value_type = String)]
    pub secret: SecretSource,
}

/// A hash of CHAP, from the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashName {
    /// MD5, which RFC 7143 §12.1.3 asks for.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA3-256.
    #[serde(rename = "sha3-256")]
    Sha3_256,
}

/// A target: an IQN over TCP, or a WWPN over Fibre Channel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct TargetRow {
    /// TargetAlias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Where it is reached.
    #[serde(default, skip_serializing_if = "is_default")]
    pub portals: Portals,
    /// What initiators see.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<NumberKey, LunRow>)]
    pub luns: LunRows,
    /// The groups and initiators that may log in; empty lets nobody in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// What the initiators of a group see in place of `luns`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, BTreeMap<NumberKey, LunRow>>)]
    pub view: BTreeMap<String, LunRows>,
    /// What it offers at login; where missing, what this program finds best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<LoginRow>,
}

/// LUNs and what stands behind them.
pub type LunRows = BTreeMap<LunNumber, LunRow>;

// The module `login_keys` has which values there are.
/// What a target negotiates at login (RFC 7143 §13), and how many sessions it has. For a key that
/// is missing this program chooses what it finds best. A change counts from the next login on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct LoginRow {
    /// HeaderDigest; where missing, the initiator chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_digest: Option<DigestUse>,
    /// DataDigest, in the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_digest: Option<DigestUse>,
    /// InitialR2T: data comes only when it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_r2t: Option<bool>,
    /// ImmediateData: commands may bring data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immediate_data: Option<bool>,
    /// MaxRecvDataSegmentLength that is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub max_recv_data_segment_length: Option<Size>,
    /// FirstBurstLength that is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub first_burst_length: Option<Size>,
    /// MaxBurstLength that is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Quantity>)]
    pub max_burst_length: Option<Size>,
    /// MaxOutstandingR2T that is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_outstanding_r2t: Option<u16>,
    /// DataPDUInOrder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_pdu_in_order: Option<bool>,
    /// DataSequenceInOrder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sequence_in_order: Option<bool>,
    /// DefaultTime2Wait, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time2wait: Option<u16>,
    /// DefaultTime2Retain, in seconds; always 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_time2retain: Option<u16>,
    /// MaxConnections; always 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u16>,
    /// ErrorRecoveryLevel; always 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_recovery_level: Option<u16>,
    /// Sessions with the target, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<u16>,
}

/// What a target wants of a digest (RFC 7143 §13.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DigestUse {
    /// Every PDU has it.
    Crc32c,
    /// None has it.
    None,
}

/// A LUN's volume, and what may be done with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum LunRow {
    /// The name of a volume, which can be written.
    Volume(String),
    /// The name of a volume, and how it may be used here.
    Limited {
        /// The volume.
        volume: String,
        /// How it may be used.
        #[serde(default)]
        access: Access,
    },
}

impl LunRow {
    /// The name of the volume.
    #[must_use]
    pub fn volume(&self) -> &str {
        match self {
            Self::Volume(volume) | Self::Limited { volume, .. } => volume,
        }
    }

    /// How it may be used.
    #[must_use]
    pub fn access(&self) -> Access {
        match self {
            Self::Volume(_) => Access::ReadWrite,
            Self::Limited { access, .. } => *access,
        }
    }
}

/// How a LUN may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Access {
    /// It can be read and written.
    #[default]
    #[serde(rename = "rw")]
    ReadWrite,
    /// It can be read.
    #[serde(rename = "ro")]
    ReadOnly,
}

macro_rules! number_as_key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(pub u16);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let number = text.parse().ok().filter(|number: &u16| number.to_string() == text);
                number.map(Self).ok_or_else(|| format!("{text:?} is not a number from 0 to 65535"))
            }
        }

        impl From<$name> for String {
            fn from(number: $name) -> Self {
                number.to_string()
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }
    };
}

number_as_key! {
    /// A LUN, as a key.
    LunNumber
}

number_as_key! {
    /// TargetPortalGroupTag, as a key (RFC 7143 §13.9).
    PortalGroupTag
}

impl Default for Tree {
    /// Nothing is configured.
    fn default() -> Self {
        Self {
            version: VERSION,
            daemon: DaemonRow::default(),
            api: ApiRow::default(),
            discovery: DiscoveryRow::default(),
            volume: BTreeMap::new(),
            group: BTreeMap::new(),
            target: BTreeMap::new(),
            switch: BTreeMap::new(),
        }
    }
}

impl VolumeRow {
    /// A volume of this address, all else by default.
    #[must_use]
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            size: None,
            serial: None,
            naa: None,
            vendor: None,
            product: None,
            block_size: None,
            readonly: false,
            removable: false,
            limit: None,
        }
    }
}

/// Rows by name, before and after: each that is in one of them.
pub(crate) fn pairs<'a, T>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a String, Option<&'a T>, Option<&'a T>)> {
    let pairs = old
        .iter()
        .merge_join_by(new, |(old, _), (new, _)| old.cmp(new));
    pairs.map(|pair| match pair {
        Left((name, row)) => (name, Some(row), None),
        Right((name, row)) => (name, None, Some(row)),
        Both((name, before), (_, after)) => (name, Some(before), Some(after)),
    })
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

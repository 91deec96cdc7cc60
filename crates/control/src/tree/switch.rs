//! Rows of switches.

use address::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::is_default;
use crate::schema::TimeSpan;

// What a key may be says `engine::switch::options`; `check` compares.
/// A Fibre Channel switch (FCF) at Ethernet ports of this machine. `zones`, `zone-file` and `open`
/// say who sees whom, one of them; without any, no port sees another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(remote = "Self", rename_all = "kebab-case", deny_unknown_fields)]
pub struct SwitchRow {
    /// Its ports: interfaces and cables, such as `eth1` and `cable:/run/a.sock`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    /// The lines of its zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// The path of a file that has them; it is read again with each change of the row, and at
    /// SIGHUP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_file: Option<String>,
    /// All ports see each other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub open: bool,
    /// The upper byte of its N_Port_IDs, 1 to 239; where missing, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<u8>,
    /// The VLAN of the fabric, 1 to 4094; where missing, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Its FIP priority, the lowest of which ENodes prefer; where missing, 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// FKA_ADV_PERIOD, 250 ms to 90 s; where missing, 8 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TimeSpan>)]
    pub fka: Option<Time>,
    /// FC-MAP; where missing, `0e:fc:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fc_map: Option<String>,
    /// The name of the fabric; where missing, it follows from the first port's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric_name: Option<String>,
    /// The name of the switch; where missing, it follows from the first port's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_name: Option<String>,
    /// The directory in which N_Port_IDs are remembered; where missing, one of the row's own in the
    /// state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// What it does of LLDP and DCBX at interfaces; where missing, it sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lldp: Option<LldpUse>,
    /// Whether the kernel forwards between interfaces what the switch has let through before; where
    /// missing, it does where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<FastPathUse>,
    /// The number of cores that forward, 1 to 16; where missing, as many as the daemon may run on,
    /// but not more than it has ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// It waits until the other switch of its names falls silent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub standby: bool,
}

/// What a switch does of LLDP and DCBX (IEEE 802.1AB, 802.1Q) at its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LldpUse {
    /// It sends and listens.
    Send,
    /// It listens.
    Listen,
    /// Neither.
    Off,
}

/// Whether the kernel forwards frames of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FastPathUse {
    /// Where it can.
    Auto,
    /// All frames go through user space.
    Off,
}

impl SwitchRow {
    /// The text of its own zones: what is in a file is not looked at.
    #[must_use]
    pub fn zone_text(&self) -> String {
        self.zones.join("\n")
    }

    /// All that is not about who sees whom: with the rest alone it can run on.
    #[must_use]
    pub(crate) fn without_zones(&self) -> Self {
        Self {
            zones: Vec::new(),
            zone_file: None,
            open: false,
            ..self.clone()
        }
    }
}

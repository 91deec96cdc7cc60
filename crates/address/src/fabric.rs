//! How an N_Port finds others: by VN2VN, or in a fabric.

use std::fmt;
use std::str::FromStr;

use fc::fip::Mode;
use fc::fip::enode::{FabricConfig, FcfPin};
use fc::port::PortMode;
use fc::wire::ethernet::VlanTag;
use fc::wire::names::Wwn;

/// `mode=vn2vn`, or `mode=fabric` with what goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FcoeMode {
    /// Without a fabric.
    #[default]
    Vn2Vn,
    /// By an FCF.
    Fabric(FabricOptions),
}

/// Which fabric; all is what is usual unless it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FabricOptions {
    /// Its VLAN.
    pub vlan: FabricVlan,
    /// The FCF; `None`: any.
    pub fcf: Option<FcfPin>,
    /// Fabric_Name; `None`: any, if there is one alone.
    pub fabric: Option<Wwn>,
}

/// On which VLAN a fabric is: `none`, `auto` or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FabricVlan {
    /// Frames carry no tag.
    #[default]
    None,
    /// It is asked for by FIP VLAN discovery.
    Auto,
    /// Frames carry the tag of this one, 1 to 4094.
    Id(u16),
}

/// Not a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a VLAN from 1 to 4094, auto or none is expected here")]
pub struct NotAVlan;

impl FromStr for FabricVlan {
    type Err = NotAVlan;

    fn from_str(text: &str) -> Result<Self, NotAVlan> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            _ if !text.bytes().all(|byte| byte.is_ascii_digit()) => Err(NotAVlan),
            _ => match text.parse() {
                Ok(vid @ 1..=4094) => Ok(Self::Id(vid)),
                _ => Err(NotAVlan),
            },
        }
    }
}

impl fmt::Display for FabricVlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::Id(vid) => vid.fmt(f),
        }
    }
}

impl FcoeMode {
    /// As an N_Port takes it.
    #[must_use]
    pub const fn port_mode(&self) -> PortMode {
        match self {
            Self::Vn2Vn => PortMode::Vn2Vn(Mode::Multipoint),
            Self::Fabric(options) => PortMode::Fabric(FabricConfig {
                discovers_vlan: matches!(options.vlan, FabricVlan::Auto),
                fcf: options.fcf,
                fabric: options.fabric,
            }),
        }
    }

    /// The tag that frames carry, as far as it is known before.
    #[must_use]
    pub const fn tag(&self) -> Option<VlanTag> {
        match self {
            Self::Fabric(FabricOptions {
                vlan: FabricVlan::Id(vid),
                ..
            }) => Some(VlanTag {
                priority: PRIORITY,
                dei: false,
                vid: *vid,
            }),
            _ => None,
        }
    }

    /// Key and value of each option that is not what is usual.
    pub(super) fn items(&self) -> Vec<(&'static str, String)> {
        let Self::Fabric(FabricOptions { vlan, fcf, fabric }) = self else {
            return Vec::new();
        };
        let mut items = vec![("mode", "fabric".to_owned())];
        if *vlan != FabricVlan::None {
            items.push(("vlan", vlan.to_string()));
        }
        items.extend(fcf.map(|fcf| ("fcf", fcf.to_string())));
        items.extend(fabric.map(|fabric| ("fabric", fabric.to_string())));
        items
    }
}

/// The priority of FCoE by custom.
const PRIORITY: u8 = 3;

//! How an N_Port finds others: by VN2VN, or in a fabric.

use std::fmt;
use std::str::FromStr;

use ::io::ether::dcb::DcbUse;
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
    /// Of an initiator: by which of these it logs in, in place of its own.
    pub npiv: FurtherNames,
    /// Of an initiator: what it makes of DCB.
    pub dcb: DcbUse,
}

/// WWPNs of further N_Ports of an initiator (NPIV), one for each of its cores: `WWPN+WWPN`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FurtherNames([Option<Wwn>; FurtherNames::MAX]);

impl FurtherNames {
    /// The most that can be given.
    pub const MAX: usize = 8;

    /// All places for names, of which the first ones are taken.
    #[must_use]
    pub const fn places(&self) -> [Option<Wwn>; Self::MAX] {
        self.0
    }

    /// These names, in this order.
    ///
    /// # Errors
    ///
    /// One is 0 or all ones or there twice, or they are too many.
    pub fn new(names: impl IntoIterator<Item = Wwn>) -> Result<Self, NotFurtherNames> {
        let mut all = Self::default();
        for (at, name) in names.into_iter().enumerate() {
            let is_known = all.0.contains(&Some(name));
            let place = all.0.get_mut(at).ok_or(NotFurtherNames)?;
            if is_known || matches!(name, Wwn(0 | u64::MAX)) {
                return Err(NotFurtherNames);
            }
            *place = Some(name);
        }
        Ok(all)
    }
}

/// Not such names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "up to {} different WWPNs with + between them are expected here",
    FurtherNames::MAX
)]
pub struct NotFurtherNames;

impl FromStr for FurtherNames {
    type Err = NotFurtherNames;

    fn from_str(text: &str) -> Result<Self, NotFurtherNames> {
        let names = text.split('+').map(str::parse);
        let names = names.collect::<Result<Vec<Wwn>, _>>();
        Self::new(names.map_err(|_| NotFurtherNames)?)
    }
}

impl fmt::Display for FurtherNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().flatten().enumerate() {
            f.write_str(if at == 0 { "" } else { "+" })?;
            name.fmt(f)?;
        }
        Ok(())
    }
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

    /// The further N_Ports of which an initiator is one.
    #[must_use]
    pub fn npiv(&self) -> FurtherNames {
        match self {
            Self::Vn2Vn => FurtherNames::default(),
            Self::Fabric(options) => options.npiv,
        }
    }

    /// What an initiator makes of DCB.
    #[must_use]
    pub const fn dcb(&self) -> DcbUse {
        match self {
            Self::Vn2Vn => DcbUse::Off,
            Self::Fabric(options) => options.dcb,
        }
    }

    /// Key and value of each option that is not what is usual.
    pub(super) fn items(&self) -> Vec<(&'static str, String)> {
        let Self::Fabric(options) = self else {
            return Vec::new();
        };
        let FabricOptions {
            vlan,
            fcf,
            fabric,
            npiv,
            dcb,
        } = options;
        let mut items = vec![("mode", "fabric".to_owned())];
        if *vlan != FabricVlan::None {
            items.push(("vlan", vlan.to_string()));
        }
        items.extend(fcf.map(|fcf| ("fcf", fcf.to_string())));
        items.extend(fabric.map(|fabric| ("fabric", fabric.to_string())));
        if *npiv != FurtherNames::default() {
            items.push(("npiv", npiv.to_string()));
        }
        if *dcb != DcbUse::Off {
            items.push(("dcb", dcb.to_string()));
        }
        items
    }
}

/// The priority of FCoE by custom.
const PRIORITY: u8 = 3;

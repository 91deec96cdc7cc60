//! The FCFs that were heard, and which of them is chosen.
//!
//! Only an FCF can be used that takes logins (A), and has answered a Solicitation (S). The choice
//! is by these rules, in this order:
//!
//! 1. With `fcf` or `fabric` configured, those alone.
//! 2. Without either, there must be one fabric: one Fabric_Name, VF_ID and FC-MAP. Of several none
//!    is taken, as Linux does.
//! 3. Those that have refused a login, or not answered, come again when all others have.
//! 4. The lowest priority value, then the lowest FCF-MAC.
//!
//! A better FCF that appears later is chosen by the next login only. When that is lost, and another
//! FCF of the same fabric is heard, the choice is made at once: it is known what there is.

use std::fmt;
use std::time::Duration;

use super::FabricConfig;
use crate::wire::ethernet::Mac;
use crate::wire::names::{FcId, Wwn};
use scsi::medium::Now;
use scsi::violation::Violation;

/// The FCF that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FcfPin {
    /// By its FCF-MAC.
    Mac(Mac),
    /// By its Switch_Name.
    Switch(Wwn),
}

impl fmt::Display for FcfPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac(mac) => mac.fmt(f),
            Self::Switch(name) => name.fmt(f),
        }
    }
}

/// `00:0d:ec:6d:8f:00` or `20:98:00:0d:ec:6d:8f:01`.
impl std::str::FromStr for FcfPin {
    type Err = NotAnFcf;

    fn from_str(text: &str) -> Result<Self, NotAnFcf> {
        let mac = text.parse().map(Self::Mac);
        let name = || text.parse().map(Self::Switch);
        mac.or_else(|_| name()).map_err(|_| NotAnFcf)
    }
}

/// A string that names no FCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an FCF is named by its MAC address (12 hexadecimal digits) or its Switch_Name (16), as in \
     00:0d:ec:6d:8f:00"
)]
pub struct NotAnFcf;

/// An FCF, as it advertises itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fcf {
    /// FCF-MAC.
    pub mac: Mac,
    /// The lower, the better.
    pub priority: u8,
    /// Switch_Name.
    pub switch_name: Wwn,
    /// Fabric_Name.
    pub fabric_name: Wwn,
    /// Virtual fabric; 0 for none.
    pub vf_id: u16,
    /// FC-MAP.
    pub fc_map: [u8; 3],
    /// Whether it provides the MAC addresses of VN_Ports (FPMA). Otherwise all VN_Ports of an ENode
    /// have that of the ENode (SPMA).
    pub provides_mac: bool,
    /// FKA_ADV_PERIOD.
    pub period: Duration,
    /// Whether ENodes send keep alives (D bit clear).
    pub wants_keep_alives: bool,
    /// Whether it takes logins (A bit).
    pub is_available: bool,
    /// Whether it has answered a Solicitation (S bit).
    pub is_solicited: bool,
    /// When it was heard last.
    pub(super) heard: Now,
    /// It has refused a login, or not answered.
    pub(super) is_tried: bool,
}

impl Fcf {
    /// Whether an ENode can log in to it.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        self.is_available && self.is_solicited
    }

    /// The MAC address that a VN_Port of the ENode `enode` has at this FCF.
    pub(super) fn mac_of_port(&self, fc_id: FcId, enode: Mac) -> Mac {
        if self.provides_mac {
            Mac::of_port(self.fc_map, fc_id)
        } else {
            enode
        }
    }

    /// When it has been silent for too long.
    fn deadline(&self) -> Now {
        self.heard.saturating_add(self.period * 5 / 2)
    }

    /// Whether it is one of those that are configured.
    pub(super) fn is_wanted(&self, config: &FabricConfig) -> bool {
        let is_fcf = match config.fcf {
            None => true,
            Some(FcfPin::Mac(mac)) => self.mac == mac,
            Some(FcfPin::Switch(name)) => self.switch_name == name,
        };
        is_fcf && config.fabric.is_none_or(|name| self.fabric_name == name)
    }

    pub(super) const fn fabric(&self) -> FabricKey {
        (self.fabric_name, self.vf_id, self.fc_map)
    }
}

/// What FCFs of one fabric have in common: Fabric_Name, VF_ID and FC-MAP.
pub(super) type FabricKey = (Wwn, u16, [u8; 3]);

/// A fabric that was heard, by its best FCF, with what pins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricSeen {
    /// Fabric_Name.
    pub fabric: Wwn,
    /// Virtual fabric.
    pub vf_id: u16,
    /// The FCF-MAC.
    pub fcf: Mac,
}

impl fmt::Display for FabricSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fabric={} or fcf={}", self.fabric, self.fcf)?;
        match self.vf_id {
            0 => Ok(()),
            vf_id => write!(f, " (VF_ID {vf_id})"),
        }
    }
}

/// What comes of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FcfChoice {
    /// There is none.
    None,
    /// There are some, and none that is wanted.
    NotWanted(Vec<FabricSeen>),
    /// They are of several fabrics.
    Several(Vec<FabricSeen>),
    /// All have refused, or not answered.
    AllTried,
    Best(Mac),
}

/// Those that were heard.
#[derive(Debug, Default)]
pub(super) struct Fcfs(Vec<Fcf>);

impl Fcfs {
    pub(super) fn all(&self) -> &[Fcf] {
        &self.0
    }

    pub(super) fn get(&self, mac: Mac) -> Option<&Fcf> {
        self.0.iter().find(|fcf| fcf.mac == mac)
    }

    fn get_mut(&mut self, mac: Mac) -> Option<&mut Fcf> {
        self.0.iter_mut().find(|fcf| fcf.mac == mac)
    }

    /// An FCF has advertised. Whoever answered a Solicitation once has done so, unless it is
    /// another one now.
    pub(super) fn hear(&mut self, heard: &Fcf, config: &FabricConfig) -> Result<&Fcf, Violation> {
        let at = self.0.iter().position(|fcf| fcf.mac == heard.mac);
        let at = match at {
            Some(at) => at,
            None => self.insert(heard, config)?,
        };
        let fcf = &mut self.0[at];
        let is_same = fcf.switch_name == heard.switch_name && fcf.fabric() == heard.fabric();
        *fcf = Fcf {
            is_solicited: heard.is_solicited || is_same && fcf.is_solicited,
            is_tried: is_same && fcf.is_tried,
            ..*heard
        };
        Ok(fcf)
    }

    /// Where there is no room, one that is not wanted makes some for one that is.
    fn insert(&mut self, heard: &Fcf, config: &FabricConfig) -> Result<usize, Violation> {
        if self.0.len() >= MAX_FCFS {
            let unwanted = self.0.iter().position(|fcf| !fcf.is_wanted(config));
            let unwanted = unwanted.filter(|_| heard.is_wanted(config));
            self.0.swap_remove(unwanted.ok_or(TOO_MANY)?);
        }
        self.0.push(*heard);
        Ok(self.0.len() - 1)
    }

    /// It has ended a login: whether it takes another one is to be asked.
    pub(super) fn doubt(&mut self, mac: Mac) {
        if let Some(fcf) = self.get_mut(mac) {
            fcf.is_solicited = false;
        }
    }

    /// It has refused a login, or not answered.
    pub(super) fn tried(&mut self, mac: Mac) {
        if let Some(fcf) = self.get_mut(mac) {
            fcf.is_tried = true;
        }
    }

    pub(super) fn try_all_again(&mut self) {
        for fcf in &mut self.0 {
            fcf.is_tried = false;
        }
    }

    pub(super) fn is_any_usable(&self) -> bool {
        self.0.iter().any(Fcf::is_usable)
    }

    /// Whether another FCF of this fabric is heard, whether it takes logins or not.
    pub(super) fn has_another(&self, mac: Mac, fabric: FabricKey) -> bool {
        let mut others = self.0.iter().filter(|fcf| fcf.mac != mac);
        others.any(|fcf| fcf.fabric() == fabric)
    }

    pub(super) fn next_deadline(&self) -> Option<Now> {
        self.0.iter().map(Fcf::deadline).min()
    }

    /// Forgets those that have been silent for too long, and tells which.
    pub(super) fn expire(&mut self, now: Now) -> Vec<Mac> {
        let is_silent = |fcf: &mut Fcf| fcf.deadline() <= now;
        let silent = self.0.extract_if(.., is_silent);
        silent.map(|fcf| fcf.mac).collect()
    }

    pub(super) fn choose(&self, config: &FabricConfig) -> FcfChoice {
        let usable = || self.0.iter().filter(|fcf| fcf.is_usable());
        let wanted = || usable().filter(|fcf| fcf.is_wanted(config));
        if wanted().next().is_none() {
            return match fabrics(usable()) {
                seen if seen.is_empty() => FcfChoice::None,
                seen => FcfChoice::NotWanted(seen),
            };
        }
        let is_pinned = config.fcf.is_some() || config.fabric.is_some();
        let seen = fabrics(wanted());
        if !is_pinned && seen.len() > 1 {
            return FcfChoice::Several(seen);
        }
        let untried = wanted().filter(|fcf| !fcf.is_tried);
        match untried.min_by_key(|fcf| (fcf.priority, fcf.mac)) {
            Some(best) => FcfChoice::Best(best.mac),
            None => FcfChoice::AllTried,
        }
    }
}

/// Each fabric by its best FCF, in the order of their names.
fn fabrics<'a>(fcfs: impl Iterator<Item = &'a Fcf>) -> Vec<FabricSeen> {
    let mut fcfs: Vec<_> = fcfs.collect();
    fcfs.sort_by_key(|fcf| (fcf.fabric(), fcf.priority, fcf.mac));
    fcfs.dedup_by_key(|fcf| fcf.fabric());
    let seen = fcfs.iter().map(|fcf| FabricSeen {
        fabric: fcf.fabric_name,
        vf_id: fcf.vf_id,
        fcf: fcf.mac,
    });
    seen.collect()
}

/// How many FCFs are known at most; Linux knows 20.
const MAX_FCFS: usize = 32;

const TOO_MANY: Violation = Violation {
    rule: "more than 32 FCFs on one Ethernet",
    clause: "a limit of Lunar",
};

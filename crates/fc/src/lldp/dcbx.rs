//! What both ends come to (IEEE 802.1Q Clause 38; DCBX Base Specification 1.01 for CEE).
//!
//! | | IEEE | CEE |
//! |---|---|---|
//! | told | what is in use | what is wanted |
//! | PFC | the neighbour's if we are willing and it is not; if both are, that of the lower MAC address; else ours | the neighbour's if only we are willing, ours if only it is; else both must be the same |
//! | ETS | its recommendation if we are willing, else ours | as PFC |
//! | priorities of protocols | its entry if we are willing and it has one, else ours | as PFC |

use std::fmt;

use super::LldpConfig;
use super::cee::SequenceNumbers;
use super::neighbour::LldpNeighbour;
use super::settings::{DcbSettings, groups_of, table_of};
use crate::wire::ethernet::{self, Mac};
use crate::wire::lldp::cee::{Applications, CeeApp, CeeDcb, FeatureFlags, PriorityGroups};
use crate::wire::lldp::ieee::{App, EtsTable, IeeeDcb};

/// How DCBX is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// IEEE 802.1Q.
    Ieee,
    /// Converged Enhanced Ethernet, which came before.
    Cee,
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ieee => "IEEE",
            Self::Cee => "CEE",
        })
    }
}

/// What has come of DCBX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dcbx {
    /// No neighbour is heard.
    NoNeighbour,
    /// More than one is heard, so there is none.
    Crowded,
    /// The neighbour says nothing of it.
    NotSpoken,
    /// The neighbour speaks it, but this port has no DCB.
    NotHere,
    /// The neighbour speaks it.
    Heard(Agreement),
}

/// What is in use, as far as both ends have told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// In which dialect it was told.
    pub dialect: Dialect,
    /// Priorities that PFC is in use for here, a bit each.
    pub pfc: u8,
    /// Those that the neighbour has it in use for.
    pub peer_pfc: u8,
    /// Traffic classes in use here.
    pub table: EtsTable,
    /// Priorities of protocols in use here.
    pub apps: Vec<App>,
    /// Those that the neighbour has.
    pub peer_apps: Vec<App>,
    /// What does not go together; in the dialect of CEE only.
    pub(super) errors: CeeErrors,
    /// The neighbour reports an error of PFC, or of the priorities of protocols, which it has off
    /// then; in the dialect of CEE only.
    pub(super) peer_error: bool,
}

/// Features of CEE that are not in use, as both ends want something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CeeErrors {
    pub(super) groups: bool,
    pub(super) pfc: bool,
    pub(super) apps: bool,
}

/// Why the link does not carry FCoE without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DcbProblem {
    /// No neighbour is heard.
    #[error("no LLDP neighbor is heard: enable LLDP and DCBX at the other end of the link")]
    NoNeighbour,
    /// More than one is heard.
    #[error("several LLDP neighbors are heard, so DCBX is off: leave one at this link")]
    Crowded,
    /// The neighbour says nothing of DCBX.
    #[error("the neighbor tells nothing of DCB: enable DCBX at the other end of the link")]
    NotSpoken,
    /// This port has no DCB.
    #[error("this interface has no DCB: use one that has, or go without lossless Ethernet")]
    NotHere,
    /// Both ends of CEE want something else.
    #[error("both ends want other settings, and neither gives way: make one of them willing")]
    Incompatible,
    /// The neighbour of CEE has a feature off, as it has found an error in it.
    #[error("the neighbor has PFC or the priority of FCoE off by an error: see its DCBX state")]
    PeerError,
    /// No priority is set for FCoE here.
    #[error("no priority is set for FCoE (EtherType 8906h) here: set one, 3 by custom")]
    NoPriority,
    /// The neighbour has no priority for FCoE.
    #[error("the neighbor has no priority for FCoE (EtherType 8906h): set {0} there")]
    PeerNoPriority(u8),
    /// The neighbour has another priority for FCoE.
    #[error("FCoE has priority {ours} here and {peers} at the neighbor: make both the same")]
    OtherPriority {
        /// Here.
        ours: u8,
        /// There.
        peers: u8,
    },
    /// PFC is off here.
    #[error("PFC is off here for priority {0}, which FCoE has: enable it")]
    PfcOff(u8),
    /// PFC is off there.
    #[error("PFC is off at the neighbor for priority {0}, which FCoE has: enable it there")]
    PeerPfcOff(u8),
}

impl Dcbx {
    /// The priority at which FCoE is lossless in both directions, as far as both ends have told.
    ///
    /// # Errors
    /// Why it is not.
    pub fn lossless(&self) -> Result<u8, DcbProblem> {
        match self {
            Self::NoNeighbour => Err(DcbProblem::NoNeighbour),
            Self::Crowded => Err(DcbProblem::Crowded),
            Self::NotSpoken => Err(DcbProblem::NotSpoken),
            Self::NotHere => Err(DcbProblem::NotHere),
            Self::Heard(agreed) => agreed.lossless(),
        }
    }
}

impl Agreement {
    /// The priority of FCoE here.
    #[must_use]
    pub fn fcoe_priority(&self) -> Option<u8> {
        priority(&self.apps, ethernet::FCOE)
    }

    /// Features that are not in use, as both ends want something else and neither gives way; in the
    /// dialect of CEE only.
    pub fn incompatible(&self) -> impl Iterator<Item = &'static str> {
        let CeeErrors { groups, pfc, apps } = self.errors;
        let features = [("PFC", pfc), ("ETS", groups), ("APP", apps)];
        let features = features.into_iter().filter(|(_, is_error)| *is_error);
        features.map(|(feature, _)| feature)
    }

    fn lossless(&self) -> Result<u8, DcbProblem> {
        let ours = self.fcoe_priority().ok_or(DcbProblem::NoPriority)?;
        let CeeErrors { pfc, apps, .. } = self.errors;
        if pfc || apps {
            return Err(DcbProblem::Incompatible);
        }
        if self.peer_error {
            return Err(DcbProblem::PeerError);
        }
        let peers = priority(&self.peer_apps, ethernet::FCOE);
        let peers = peers.ok_or(DcbProblem::PeerNoPriority(ours))?;
        let has = |pfc: u8| pfc >> ours & 1 != 0;
        if ours != peers {
            return Err(DcbProblem::OtherPriority { ours, peers });
        }
        match (has(self.pfc), has(self.peer_pfc)) {
            (false, _) => Err(DcbProblem::PfcOff(ours)),
            (true, false) => Err(DcbProblem::PeerPfcOff(ours)),
            (true, true) => Ok(ours),
        }
    }
}

/// The priority of an EtherType. Of several entries the first counts.
fn priority(apps: &[App], ethertype: u16) -> Option<u8> {
    let key = (App::ETHERTYPE, ethertype);
    let entry = apps.iter().find(|app| (app.selector, app.protocol) == key);
    entry.map(|app| app.priority)
}

/// What comes of what was told and of what this port has.
pub(super) fn agree(
    config: &LldpConfig,
    neighbours: &[LldpNeighbour],
    exchange: &SequenceNumbers,
) -> Dcbx {
    let peer = match neighbours {
        [] => return Dcbx::NoNeighbour,
        [peer] => peer,
        _ => return Dcbx::Crowded,
    };
    let ours = config.dcb.as_ref();
    match (ours, &peer.ieee, &peer.cee) {
        (_, None, None) => Dcbx::NotSpoken,
        (None, ..) => Dcbx::NotHere,
        (Some(ours), Some(told), _) => {
            Dcbx::Heard(agree_ieee((config.mac, ours), (peer.mac, told)))
        }
        (Some(ours), None, Some(told)) => {
            Dcbx::Heard(agree_cee(ours, told, exchange.is_acknowledged(told)))
        }
    }
}

fn agree_ieee(
    (our_mac, ours): (Mac, &DcbSettings),
    (peer_mac, told): (Mac, &IeeeDcb),
) -> Agreement {
    let peer_pfc = told
        .pfc
        .filter(|pfc| ours.willing && (!pfc.willing || peer_mac < our_mac));
    let recommended = told.recommendation.filter(|_| ours.willing);
    let peer_apps = told.apps.clone().unwrap_or_default();
    Agreement {
        dialect: Dialect::Ieee,
        pfc: peer_pfc.map_or(ours.pfc, |pfc| pfc.enabled),
        peer_pfc: told.pfc.map_or(0, |pfc| pfc.enabled),
        table: recommended.unwrap_or(ours.table),
        apps: if ours.willing {
            merged(&ours.apps, &peer_apps)
        } else {
            ours.apps.clone()
        },
        peer_apps,
        errors: CeeErrors::default(),
        peer_error: false,
    }
}

/// Our protocols with the priorities that the neighbour has for them.
fn merged(ours: &[App], peers: &[App]) -> Vec<App> {
    let merge = |app: &App| {
        let mut same = peers
            .iter()
            .filter(|peer| (peer.selector, peer.protocol) == (app.selector, app.protocol));
        *same.next().unwrap_or(app)
    };
    ours.iter().map(merge).collect()
}

/// What a feature of CEE comes to.
struct Feature<T> {
    /// What is in use here; `None` if the feature is off.
    ours: Option<T>,
    /// What the neighbour uses, or will as soon as it has heard us.
    peers: Option<T>,
    is_error: bool,
    /// The neighbour has found an error in it.
    peer_error: bool,
}

impl<T: Clone + PartialEq> Feature<T> {
    /// Both have told what they want, and whether they give way.
    fn of(ours: T, willing: bool, told: Option<(FeatureFlags, T)>, is_acknowledged: bool) -> Self {
        let off = |is_error| Self {
            ours: None,
            peers: None,
            is_error,
            peer_error: false,
        };
        let Some((flags, peers)) = told.filter(|(flags, _)| flags.enabled) else {
            return off(false);
        };
        let (ours, peers) = match (willing, flags.willing) {
            (true, false) => (peers.clone(), peers),
            (false, true) if is_acknowledged => (ours.clone(), ours),
            (false, true) => (ours, peers),
            _ if ours == peers => (ours, peers),
            _ => return off(true),
        };
        Self {
            ours: Some(ours),
            peers: Some(peers).filter(|_| !flags.error),
            is_error: false,
            peer_error: flags.error,
        }
    }
}

fn agree_cee(ours: &DcbSettings, told: &CeeDcb, is_acknowledged: bool) -> Agreement {
    let willing = ours.willing;
    let peers = told.pfc.map(|pfc| (pfc.flags, pfc.enabled));
    let pfc = Feature::of(ours.pfc, willing, peers, is_acknowledged);

    let own_groups = without_flags(groups_of(&ours.table, 0));
    let peers = told
        .groups
        .map(|groups| (groups.flags, without_flags(groups)));
    let groups = Feature::of(own_groups, willing, peers, is_acknowledged);

    let (feature, apps, peer_apps) = cee_apps(ours, told, is_acknowledged);
    let in_use = groups.ours.filter(|groups| *groups != own_groups);
    Agreement {
        dialect: Dialect::Cee,
        pfc: pfc.ours.unwrap_or(0),
        peer_pfc: pfc.peers.unwrap_or(0),
        table: in_use.map_or(ours.table, |groups| table_of(&groups)),
        apps,
        peer_apps,
        errors: CeeErrors {
            groups: groups.is_error,
            pfc: pfc.is_error,
            apps: feature.is_error,
        },
        peer_error: pfc.peer_error || feature.peer_error,
    }
}

/// What comes of the priority of FCoE, which both ends have to agree on, and with it all entries
/// here and at the neighbour.
fn cee_apps(
    ours: &DcbSettings,
    told: &CeeDcb,
    is_acknowledged: bool,
) -> (Feature<Option<u8>>, Vec<App>, Vec<App>) {
    let peer_apps = told.apps.as_ref().map(apps_of).unwrap_or_default();
    let fcoe = |apps: &[App]| priority(apps, ethernet::FCOE);
    let peers = told.apps.as_ref();
    let peers = peers.map(|apps| (apps.flags, fcoe(&peer_apps)));
    let feature = Feature::of(fcoe(&ours.apps), ours.willing, peers, is_acknowledged);
    let gives_way = peers.is_some_and(|(flags, _)| flags.willing);
    let (apps, peer_apps) = match (feature.ours, ours.willing, gives_way) {
        (None, ..) => (ours.apps.clone(), Vec::new()),
        (_, true, false) => (merged(&ours.apps, &peer_apps), peer_apps),
        (_, false, true) if is_acknowledged => (ours.apps.clone(), ours.apps.clone()),
        _ => (ours.apps.clone(), peer_apps),
    };
    (feature, apps, peer_apps)
}

/// What has to be the same at both ends.
const fn without_flags(groups: PriorityGroups) -> PriorityGroups {
    PriorityGroups {
        flags: FeatureFlags {
            enabled: false,
            willing: false,
            error: false,
        },
        classes_max: 0,
        ..groups
    }
}

fn apps_of(apps: &Applications) -> Vec<App> {
    let entries = apps.entries.iter();
    entries.filter_map(CeeApp::to_ieee).collect()
}

//! What was heard at a port, as `--json` prints it.

use runtime::lldp::{
    Agreement, App, CeeDcb, DcbProblem, DcbSettings, Dcbx, EtsTable, IeeeDcb, LldpNeighbour,
    LldpView, NeighbourNames, cee, ieee,
};
use serde::Serialize;

#[cfg(test)]
mod tests;

/// A port, its neighbours, and what comes of DCBX.
#[derive(Serialize)]
pub(super) struct DcbReport {
    pub(super) interface: String,
    pub(super) mac: String,
    pub(super) link_up: bool,
    /// In whole seconds.
    pub(super) listened_s: u64,
    /// `null` where the card has no DCB.
    pub(super) local: Option<LocalReport>,
    pub(super) neighbors: Vec<NeighbourReport>,
    /// `null` where nothing is agreed.
    pub(super) operational: Option<OperationalReport>,
    /// The priority at which FCoE is lossless in both directions.
    pub(super) lossless_priority: Option<u8>,
    /// Why there is none.
    pub(super) problem: Option<String>,
    /// What was wrong with LLDPDUs.
    pub(super) warnings: Vec<String>,
}

/// What the network card has.
#[derive(Serialize)]
pub(super) struct LocalReport {
    /// Whether a program on this machine sets it, or else the firmware.
    pub(super) set_by_host: bool,
    pub(super) pfc: PfcReport,
    pub(super) ets: EtsReport,
    pub(super) apps: Vec<AppReport>,
    /// By priority, if the card counts.
    pub(super) pfc_frames_sent: Vec<u64>,
    pub(super) pfc_frames_received: Vec<u64>,
}

/// A neighbour.
#[derive(Serialize)]
pub(super) struct NeighbourReport {
    pub(super) mac: String,
    pub(super) chassis_id: String,
    pub(super) port_id: String,
    pub(super) ttl_s: u16,
    pub(super) port_description: String,
    pub(super) system_name: String,
    pub(super) system_description: String,
    pub(super) ieee: Option<IeeeReport>,
    pub(super) cee: Option<CeeReport>,
}

/// What it says in the dialect of IEEE.
#[derive(Serialize)]
pub(super) struct IeeeReport {
    pub(super) pfc: Option<PfcReport>,
    pub(super) ets: Option<EtsReport>,
    pub(super) ets_recommendation: Option<EtsReport>,
    pub(super) apps: Option<Vec<AppReport>>,
}

/// What it says in that of CEE.
#[derive(Serialize)]
pub(super) struct CeeReport {
    pub(super) seq_no: u32,
    pub(super) ack_no: u32,
    pub(super) pfc: Option<CeePfcReport>,
    pub(super) priority_groups: Option<CeeGroupsReport>,
    pub(super) apps: Option<CeeAppsReport>,
}

/// The flags of a feature of CEE.
#[derive(Clone, Copy, Serialize)]
pub(super) struct FlagsReport {
    pub(super) enabled: bool,
    pub(super) willing: bool,
    pub(super) error: bool,
}

#[derive(Serialize)]
pub(super) struct CeePfcReport {
    #[serde(flatten)]
    pub(super) flags: FlagsReport,
    pub(super) priorities: Vec<u8>,
    pub(super) classes_max: u8,
}

#[derive(Serialize)]
pub(super) struct CeeGroupsReport {
    #[serde(flatten)]
    pub(super) flags: FlagsReport,
    pub(super) priority_to_group: [u8; 8],
    pub(super) bandwidth_percent: [u8; 8],
    pub(super) classes_max: u8,
}

#[derive(Serialize)]
pub(super) struct CeeAppsReport {
    #[serde(flatten)]
    pub(super) flags: FlagsReport,
    pub(super) entries: Vec<CeeAppReport>,
}

#[derive(Serialize)]
pub(super) struct CeeAppReport {
    pub(super) selector: u8,
    pub(super) protocol: u16,
    pub(super) priorities: Vec<u8>,
}

/// What is in use.
#[derive(Serialize)]
pub(super) struct OperationalReport {
    pub(super) dialect: String,
    pub(super) pfc_priorities: Vec<u8>,
    pub(super) peer_pfc_priorities: Vec<u8>,
    pub(super) ets: EtsReport,
    pub(super) apps: Vec<AppReport>,
    pub(super) peer_apps: Vec<AppReport>,
    /// What both ends of CEE want otherwise: of `PFC`, `ETS` and `APP`.
    pub(super) incompatible: Vec<&'static str>,
}

#[derive(Serialize)]
pub(super) struct PfcReport {
    pub(super) willing: Option<bool>,
    pub(super) priorities: Vec<u8>,
    pub(super) classes_max: u8,
}

#[derive(Serialize)]
pub(super) struct EtsReport {
    pub(super) willing: Option<bool>,
    pub(super) classes_max: Option<u8>,
    pub(super) priority_to_class: [u8; 8],
    pub(super) bandwidth_percent: [u8; 8],
    pub(super) algorithms: [u8; 8],
}

#[derive(Serialize)]
pub(super) struct AppReport {
    pub(super) selector: u8,
    pub(super) protocol: u16,
    pub(super) priority: u8,
}

impl DcbReport {
    pub(super) fn of(interface: &str, view: &LldpView) -> Self {
        let dcbx = view.agent.dcbx();
        let lossless = dcbx.lossless();
        Self {
            interface: interface.to_owned(),
            mac: view.mac.to_string(),
            link_up: view.link.up,
            listened_s: view.listened.as_secs(),
            local: local(view),
            neighbors: view.agent.neighbours().iter().map(neighbour).collect(),
            operational: match dcbx {
                Dcbx::Heard(agreed) => Some(operational(agreed)),
                _ => None,
            },
            lossless_priority: lossless.ok(),
            problem: lossless.err().map(|problem| told(interface, view, problem)),
            warnings: view.violations.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Why FCoE is not lossless, with what is known of the interface.
fn told(interface: &str, view: &LldpView, problem: DcbProblem) -> String {
    let is_kept = view
        .card
        .as_ref()
        .is_some_and(|card| !card.is_set_by_host());
    if !view.link.up {
        format!("the link is down: ip link set {interface} up, or see the cable")
    } else if problem == DcbProblem::NoNeighbour && is_kept {
        format!(
            "no LLDP neighbor is heard, as the firmware of this NIC keeps LLDP to itself: turn \
             its agent off (ethtool --show-priv-flags {interface} names the flag, such as \
             fw-lldp-agent), or ask the tool of its vendor"
        )
    } else if problem == DcbProblem::Crowded {
        format!("{problem}: {}", NeighbourNames(view.agent.neighbours()))
    } else {
        problem.to_string()
    }
}

fn local(view: &LldpView) -> Option<LocalReport> {
    let (card, dcb) = (view.card.as_ref()?, view.agent.config().dcb.as_ref()?);
    let pfc = card.pfc.unwrap_or_default();
    let DcbSettings { willing, .. } = *dcb;
    Some(LocalReport {
        set_by_host: card.is_set_by_host(),
        pfc: PfcReport {
            willing: None,
            priorities: priorities(dcb.pfc),
            classes_max: dcb.pfc_max,
        },
        ets: table(&dcb.table, Some(willing), Some(dcb.classes_max)),
        apps: apps(&dcb.apps),
        pfc_frames_sent: pfc.requests.to_vec(),
        pfc_frames_received: pfc.indications.to_vec(),
    })
}

fn neighbour(told: &LldpNeighbour) -> NeighbourReport {
    NeighbourReport {
        mac: told.mac.to_string(),
        chassis_id: told.chassis.to_string(),
        port_id: told.port.to_string(),
        ttl_s: told.ttl_s,
        port_description: told.port_description.clone(),
        system_name: told.system_name.clone(),
        system_description: told.system_description.clone(),
        ieee: told.ieee.as_ref().map(ieee),
        cee: told.cee.as_ref().map(cee),
    }
}

fn ieee(told: &IeeeDcb) -> IeeeReport {
    IeeeReport {
        pfc: told.pfc.map(|pfc: ieee::Pfc| PfcReport {
            willing: Some(pfc.willing),
            priorities: priorities(pfc.enabled),
            classes_max: pfc.classes_max,
        }),
        ets: told
            .ets
            .map(|ets| table(&ets.table, Some(ets.willing), Some(ets.classes_max))),
        ets_recommendation: told.recommendation.map(|it| table(&it, None, None)),
        apps: told.apps.as_deref().map(apps),
    }
}

fn cee(told: &CeeDcb) -> CeeReport {
    CeeReport {
        seq_no: told.control.seq_no,
        ack_no: told.control.ack_no,
        pfc: told.pfc.map(|pfc| CeePfcReport {
            flags: flags(pfc.flags),
            priorities: priorities(pfc.enabled),
            classes_max: pfc.classes_max,
        }),
        priority_groups: told.groups.map(|groups| CeeGroupsReport {
            flags: flags(groups.flags),
            priority_to_group: groups.groups,
            bandwidth_percent: groups.bandwidth,
            classes_max: groups.classes_max,
        }),
        apps: told.apps.as_ref().map(|apps| CeeAppsReport {
            flags: flags(apps.flags),
            entries: apps.entries.iter().map(cee_app).collect(),
        }),
    }
}

fn cee_app(app: &cee::CeeApp) -> CeeAppReport {
    CeeAppReport {
        selector: app.selector,
        protocol: app.protocol,
        priorities: priorities(app.priorities),
    }
}

const fn flags(told: cee::FeatureFlags) -> FlagsReport {
    FlagsReport {
        enabled: told.enabled,
        willing: told.willing,
        error: told.error,
    }
}

fn operational(agreed: &Agreement) -> OperationalReport {
    OperationalReport {
        dialect: agreed.dialect.to_string(),
        pfc_priorities: priorities(agreed.pfc),
        peer_pfc_priorities: priorities(agreed.peer_pfc),
        ets: table(&agreed.table, None, None),
        apps: apps(&agreed.apps),
        peer_apps: apps(&agreed.peer_apps),
        incompatible: agreed.incompatible().collect(),
    }
}

/// The numbers of the bits that are set.
fn priorities(bits: u8) -> Vec<u8> {
    (0..8).filter(|at| bits >> at & 1 != 0).collect()
}

const fn table(table: &EtsTable, willing: Option<bool>, classes_max: Option<u8>) -> EtsReport {
    EtsReport {
        willing,
        classes_max,
        priority_to_class: table.classes,
        bandwidth_percent: table.bandwidth,
        algorithms: table.algorithms,
    }
}

fn apps(apps: &[App]) -> Vec<AppReport> {
    let report = |app: &App| AppReport {
        selector: app.selector,
        protocol: app.protocol,
        priority: app.priority,
    };
    apps.iter().map(report).collect()
}

//! What a port has of DCB, in the words of both dialects.

use super::dcbx::{Agreement, CeeErrors};
use crate::wire::ethernet;
use crate::wire::lldp::cee::{
    Applications, CeeApp, CeeDcb, CeePfc, Control, FeatureFlags, GROUP_STRICT, PriorityGroups,
};
use crate::wire::lldp::ieee::{App, Ets, EtsTable, IeeeDcb, Pfc, TSA_ETS, TSA_STRICT};

/// What a port has of DCB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcbSettings {
    /// Takes what the neighbour has. Ends are willing, switches are not.
    pub willing: bool,
    /// How many traffic classes it can have, 1 to 8.
    pub classes_max: u8,
    /// Priorities, traffic classes, bandwidth.
    pub table: EtsTable,
    /// For how many priorities at once it can have PFC.
    pub pfc_max: u8,
    /// Priorities with PFC: a bit each, 08h is priority 3.
    pub pfc: u8,
    /// Priorities of protocols.
    pub apps: Vec<App>,
}

impl DcbSettings {
    /// As FCoE wants it at this priority, 0 to 7: a traffic class of its own with half of the
    /// link, PFC, and the application entries of FCoE and FIP.
    #[must_use]
    pub fn fcoe(priority: u8, willing: bool) -> Self {
        let priority = priority & 7;
        let mut table = EtsTable {
            bandwidth: [50, 50, 0, 0, 0, 0, 0, 0],
            algorithms: [TSA_ETS, TSA_ETS, 0, 0, 0, 0, 0, 0],
            ..EtsTable::default()
        };
        table.classes[usize::from(priority)] = 1;
        let app = |protocol| App {
            selector: App::ETHERTYPE,
            protocol,
            priority,
        };
        Self {
            willing,
            classes_max: 8,
            table,
            pfc_max: 8,
            pfc: 1 << priority,
            apps: vec![app(ethernet::FCOE), app(ethernet::FIP)],
        }
    }

    /// What is told in the dialect of IEEE: what is in use.
    pub(super) fn ieee(&self, agreed: Option<&Agreement>) -> IeeeDcb {
        IeeeDcb {
            ets: Some(Ets {
                willing: self.willing,
                shaper: false,
                classes_max: self.classes_max,
                table: agreed.map_or(self.table, |agreed| agreed.table),
            }),
            recommendation: (!self.willing).then_some(self.table),
            pfc: Some(Pfc {
                willing: self.willing,
                mbc: false,
                classes_max: self.pfc_max,
                enabled: agreed.map_or(self.pfc, |agreed| agreed.pfc),
            }),
            apps: Some(agreed.map_or(&self.apps, |agreed| &agreed.apps).clone()),
        }
    }

    /// What is told in the dialect of CEE: what is wanted, and what does not go together.
    pub(super) fn cee(&self, agreed: &Agreement) -> CeeDcb {
        let flags = |error| FeatureFlags {
            enabled: true,
            willing: self.willing,
            error,
        };
        let CeeErrors { groups, pfc, apps } = agreed.errors;
        let entries = self
            .apps
            .iter()
            .filter(|app| app.selector == App::ETHERTYPE);
        let entries = entries.map(|app| CeeApp::ethertype(app.protocol, 1 << (app.priority & 7)));
        CeeDcb {
            control: Control::default(),
            groups: Some(PriorityGroups {
                flags: flags(groups),
                ..groups_of(&self.table, self.classes_max)
            }),
            pfc: Some(CeePfc {
                flags: flags(pfc),
                enabled: self.pfc,
                classes_max: self.pfc_max,
            }),
            apps: Some(Applications {
                flags: flags(apps),
                entries: entries.collect(),
            }),
        }
    }
}

/// Traffic classes as priority groups: those of strict priority are one.
pub(super) fn groups_of(table: &EtsTable, classes_max: u8) -> PriorityGroups {
    let group = |class: u8| match table.algorithms[usize::from(class & 7)] {
        TSA_STRICT => GROUP_STRICT,
        _ => class & 7,
    };
    PriorityGroups {
        flags: FeatureFlags::default(),
        groups: table.classes.map(group),
        bandwidth: table.bandwidth,
        classes_max,
    }
}

/// Priority groups as traffic classes: the group of strict priority is the last one.
pub(super) fn table_of(groups: &PriorityGroups) -> EtsTable {
    let class = |group: u8| group.min(7);
    let is_strict = groups.groups.contains(&GROUP_STRICT);
    let mut algorithms = [TSA_ETS; 8];
    if is_strict {
        algorithms[7] = TSA_STRICT;
    }
    EtsTable {
        classes: groups.groups.map(class),
        bandwidth: groups.bandwidth,
        algorithms,
    }
}

//! What comes of it if a portal takes iSER, or takes it no more. No session ends by either, and
//! iSCSI is taken as before: a session keeps its connection, and only how new ones begin changes.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use crate::check::{Portal, iser_portals_by, portal};
use crate::tree::{DaemonRow, PortalIser, TargetRow, Tree};

/// The portals that take iSER in one of two trees.
pub(super) struct IserChange {
    come: BTreeSet<SocketAddr>,
    gone: BTreeSet<SocketAddr>,
    /// Where something else carries it.
    other: BTreeSet<SocketAddr>,
}

impl IserChange {
    pub(super) fn new(old: &Tree, new: &Tree) -> Self {
        let taken = PortalIser::is_taken;
        let (before, after) = (portals(old, taken), portals(new, taken));
        let differs = |is_so| &portals(old, is_so) ^ &portals(new, is_so);
        let differs = &differs(PortalIser::is_soft) | &differs(PortalIser::is_device);
        Self {
            come: &after - &before,
            gone: &before - &after,
            other: &differs & &(&before & &after),
        }
    }

    /// What it means at the portals that a target had and still has.
    pub(super) fn effect(&self, before: &TargetRow, after: &TargetRow) -> Option<String> {
        let (before, after) = (addresses(before), addresses(after));
        let stay: BTreeSet<_> = before.intersection(&after).copied().collect();
        let told = [
            (&self.come, "from the next connection on", ""),
            (
                &self.gone,
                "no more",
                ": sessions over it stay until they end, new ones are refused",
            ),
            (
                &self.other,
                "by other means",
                ": sessions stay until they end",
            ),
        ];
        let told = told.into_iter().filter_map(|(changed, when, more)| {
            let at = changed.intersection(&stay).map(SocketAddr::to_string);
            let at = at.collect::<Vec<_>>().join(", ");
            (!at.is_empty()).then(|| format!("iSER is taken {when} at {at}{more}"))
        });
        let told: Vec<_> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn portals(tree: &Tree, is_so: fn(PortalIser) -> bool) -> BTreeSet<SocketAddr> {
    iser_portals_by(tree, is_so).into_keys().collect()
}

fn addresses(row: &TargetRow) -> BTreeSet<SocketAddr> {
    let rows = row.portals.iter();
    let address = rows.filter_map(|(_, row)| match portal(&row.address) {
        Ok(Portal::Tcp(address)) => Some(address),
        _ => None,
    });
    address.collect()
}

/// When a change of what holds for the process counts.
pub(super) fn effect_of_daemon(old: &DaemonRow, new: &DaemonRow) -> &'static str {
    let others = |row: &DaemonRow| DaemonRow {
        iser_crc: None,
        ..row.clone()
    };
    match (old.iser_crc == new.iser_crc, others(old) == others(new)) {
        (true, _) => "counts at the next start",
        (false, true) => "counts from the next connection over iSER on",
        (false, false) => {
            "iser-crc counts from the next connection over iSER on, all else at the next start"
        }
    }
}

#[cfg(test)]
mod tests;

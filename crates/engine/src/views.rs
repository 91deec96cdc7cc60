//! What each target shows to whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fc::wire::names::Wwn;
use iscsi::names;
use iscsi::target::{PROTOCOL_LEVEL, PortalGroup};
use scsi::nexus::TargetDevice;
use scsi::unit::UnitId;
use scsi::wire::lun::Lun;

/// LUNs and the units behind them.
#[derive(Clone, Debug, Default)]
pub struct LunMap {
    /// Sorted by LUN.
    pub(crate) luns: Vec<(Lun, UnitId)>,
    /// Those that can only be read.
    pub(crate) read_only: BTreeSet<Lun>,
}

impl FromIterator<(Lun, UnitId)> for LunMap {
    /// All of them can be written.
    fn from_iter<I: IntoIterator<Item = (Lun, UnitId)>>(luns: I) -> Self {
        let written = |(lun, unit)| (lun, unit, false);
        luns.into_iter().map(written).collect()
    }
}

impl FromIterator<(Lun, UnitId, bool)> for LunMap {
    /// Each with whether it can only be read.
    fn from_iter<I: IntoIterator<Item = (Lun, UnitId, bool)>>(luns: I) -> Self {
        let mut map = Self::default();
        for (lun, unit, is_read_only) in luns {
            map.luns.push((lun, unit));
            map.read_only.extend(is_read_only.then_some(lun));
        }
        map.luns.sort_unstable();
        map
    }
}

/// The target devices of a server, by the names of targets: iSCSI names, and WWPNs as text.
#[derive(Clone, Debug, Default)]
pub struct Views {
    targets: BTreeMap<String, TargetViews>,
}

/// What one target shows.
#[derive(Clone, Debug)]
pub struct TargetViews {
    /// To initiators that no group names.
    usual: TargetView,
    /// To the initiators of groups.
    groups: Vec<(BTreeSet<String>, TargetView)>,
}

/// A target device by the protocol level of the session, as the version that INQUIRY names follows
/// from that; of Fibre Channel there is one.
type TargetView = Vec<Arc<TargetDevice>>;

impl TargetViews {
    /// An iSCSI target with these portal groups that shows these LUNs, and others to some
    /// initiators, which are named as iSCSI compares names.
    #[must_use]
    pub fn iscsi(
        name: &str,
        ports: &[PortalGroup],
        usual: &LunMap,
        groups: &[(BTreeSet<String>, LunMap)],
    ) -> Self {
        let view = |map: &LunMap| {
            let device = |level| TargetDevice {
                read_only: map.read_only.clone(),
                ..names::target_device(name, ports, map.luns.clone(), level)
            };
            let levels = 0..=PROTOCOL_LEVEL;
            levels.map(device).map(Arc::new).collect::<TargetView>()
        };
        let groups = groups.iter().map(|(who, luns)| (who.clone(), view(luns)));
        Self {
            usual: view(usual),
            groups: groups.collect(),
        }
    }

    /// A Fibre Channel port that looks like `usual`, and otherwise to some initiators, which are
    /// given by their WWPNs.
    #[must_use]
    pub fn fibre_channel(usual: TargetDevice, groups: Vec<(BTreeSet<Wwn>, TargetDevice)>) -> Self {
        let names = |who: BTreeSet<Wwn>| who.iter().map(Wwn::to_string).collect();
        let view = |device| vec![Arc::new(device)];
        let groups = groups.into_iter();
        Self {
            usual: view(usual),
            groups: groups.map(|(who, seen)| (names(who), view(seen))).collect(),
        }
    }

    fn device(&self, initiator: &str, level: u8) -> Option<&Arc<TargetDevice>> {
        let own = self.groups.iter().find(|(who, _)| who.contains(initiator));
        let view = own.map_or(&self.usual, |(_, view)| view);
        view.get(usize::from(level).min(view.len() - 1))
    }
}

impl Views {
    /// Adds a target.
    pub fn insert(&mut self, name: String, target: TargetViews) {
        self.targets.insert(name, target);
    }

    /// What an initiator sees of a target; `None` where there is no such target.
    #[must_use]
    pub fn device(&self, target: &str, initiator: &str, level: u8) -> Option<&Arc<TargetDevice>> {
        self.targets.get(target)?.device(initiator, level)
    }
}

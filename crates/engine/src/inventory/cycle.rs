//! Units that would be made of themselves: a volume that leads, through a target or a Fibre Channel
//! port of the same inventory, back to its own unit.

use std::collections::BTreeMap;
use std::net::IpAddr;

use address::{Address, FcoeAddress, Host, HostPort, UnitAddress};

use super::{Inventory, InventoryError, LunRows};

/// Looks for cycles by following each unit's volume to the units behind it.
pub(super) struct CycleSearch<'a> {
    inventory: &'a Inventory,
    /// What a portal at a wildcard address listens on.
    own: &'a [IpAddr],
    /// Units that were visited; `true` while the units behind them are being visited.
    visited: BTreeMap<&'a str, bool>,
}

impl<'a> CycleSearch<'a> {
    pub(super) const fn new(inventory: &'a Inventory, own: &'a [IpAddr]) -> Self {
        Self {
            inventory,
            own,
            visited: BTreeMap::new(),
        }
    }

    /// # Errors
    ///
    /// The first unit that leads back to itself.
    pub(super) fn run(mut self) -> Result<(), InventoryError> {
        let mut names = self.inventory.units.keys();
        names.try_for_each(|name| self.visit(name))
    }

    fn visit(&mut self, name: &'a str) -> Result<(), InventoryError> {
        let inventory = self.inventory;
        let Some(row) = inventory.units.get(name) else {
            return Ok(());
        };
        match self.visited.insert(name, true) {
            None => {}
            Some(true) => {
                return Err(InventoryError::Cycle {
                    unit: name.to_owned(),
                    volume: row.written.clone(),
                });
            }
            Some(false) => {
                self.visited.insert(name, false);
                return Ok(());
            }
        }
        for leaf in row.address.leaves() {
            for behind in self.behind(leaf) {
                self.visit(behind)?;
            }
        }
        self.visited.insert(name, false);
        Ok(())
    }

    /// The units of this inventory that an address leads to: one for each group that has the LUN.
    fn behind(&self, address: &Address) -> Vec<&'a str> {
        match address {
            Address::Iscsi(unit) | Address::Iser(unit) => self.behind_portal(unit),
            Address::Fcoe(unit) => self.behind_fc_port(unit),
            _ => Vec::new(),
        }
    }

    fn behind_portal(&self, unit: &UnitAddress) -> Vec<&'a str> {
        let name = iscsi::names::normalise(&unit.target);
        let target = name.ok().and_then(|name| self.inventory.targets.get(&name));
        match target {
            Some(target) if self.is_own_portal(&unit.portal) => {
                let groups = target.groups.iter().map(|(_, luns)| luns);
                let maps = groups.chain([&target.luns]);
                maps.filter_map(|luns| unit_of(luns, unit.lun)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A WWPN belongs to one port alone. A port that is named after its interface when it is opened
    /// is not known here.
    fn behind_fc_port(&self, unit: &FcoeAddress) -> Vec<&'a str> {
        let ports = self.inventory.fc_ports.iter();
        let named = ports.filter(|row| row.port.wwpn == Some(unit.port_name));
        named
            .filter_map(|row| unit_of(&row.luns, unit.lun))
            .collect()
    }

    fn is_own_portal(&self, portal: &HostPort) -> bool {
        let is_own = |bound: IpAddr| match &portal.host {
            Host::V4(ip) => self.listens_on(bound, (*ip).into()),
            Host::V6(ip, _) => self.listens_on(bound, (*ip).into()),
            Host::Name(name) => {
                name == "localhost" && (bound.is_loopback() || bound.is_unspecified())
            }
        };
        let mut portals = self.inventory.portals.iter();
        portals.any(|bound| bound.port() == portal.port && is_own(bound.ip()))
    }

    fn listens_on(&self, bound: IpAddr, ip: IpAddr) -> bool {
        bound == ip || bound.is_unspecified() && (ip.is_loopback() || self.own.contains(&ip))
    }
}

fn unit_of(luns: &LunRows, lun: u16) -> Option<&str> {
    let mut luns = luns.iter();
    luns.find(|row| row.0 == lun).map(|row| &*row.1)
}

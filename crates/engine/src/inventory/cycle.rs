//! Units that would be made of themselves: a volume that leads, through a target or a Fibre Channel
//! port of the same inventory, back to its own unit.

use std::collections::BTreeMap;
use std::net::IpAddr;

use address::{Address, FcoeAddress, Host, HostPort, UnitAddress};

use super::{Inventory, InventoryError, LunRows, TargetRow, UnitRow};

/// How other servers, and this one, know this machine.
#[derive(Clone, Copy, Debug)]
pub struct LocalNode<'a> {
    /// Its addresses beside loopback: what a portal at a wildcard address listens on.
    pub addresses: &'a [IpAddr],
    /// InitiatorName, by which a target chooses what it shows.
    pub initiator: &'a str,
}

/// Looks for cycles by following each unit's volume to the units behind it.
pub(super) struct CycleSearch<'a> {
    inventory: &'a Inventory,
    node: LocalNode<'a>,
    /// Units that were visited; `true` while the units behind them are being visited.
    visited: BTreeMap<&'a str, bool>,
}

/// What is to be done with a unit next.
enum Visit<'a> {
    Enter(&'a str),
    /// All units behind it were visited.
    Leave(&'a str),
}

impl<'a> CycleSearch<'a> {
    pub(super) const fn new(inventory: &'a Inventory, node: LocalNode<'a>) -> Self {
        Self {
            inventory,
            node,
            visited: BTreeMap::new(),
        }
    }

    /// Takes no stack for a chain of units, however long.
    ///
    /// # Errors
    ///
    /// The first unit that leads back to itself.
    pub(super) fn run(mut self) -> Result<(), InventoryError> {
        // Few lead anywhere.
        let units = self.inventory.units.iter();
        let leads_on = |row: &UnitRow| row.address.leaves().any(|leaf| self.behind(leaf).is_some());
        let names = units.filter(|(_, row)| leads_on(row));
        let mut left: Vec<_> = names.map(|(name, _)| Visit::Enter(name)).collect();
        while let Some(visit) = left.pop() {
            match visit {
                Visit::Enter(name) => self.enter(name, &mut left)?,
                Visit::Leave(name) => drop(self.visited.insert(name, false)),
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &'a str, left: &mut Vec<Visit<'a>>) -> Result<(), InventoryError> {
        let Some(row) = self.inventory.units.get(name) else {
            return Ok(());
        };
        match self.visited.get(name) {
            Some(true) => Err(InventoryError::Cycle {
                unit: name.to_owned(),
                volume: row.written.clone(),
            }),
            Some(false) => Ok(()),
            None => {
                self.visited.insert(name, true);
                left.push(Visit::Leave(name));
                let behind = row.address.leaves().filter_map(|leaf| self.behind(leaf));
                left.extend(behind.map(Visit::Enter));
                Ok(())
            }
        }
    }

    /// The unit of this inventory that an address leads to.
    fn behind(&self, address: &Address) -> Option<&'a str> {
        match address {
            Address::Iscsi(unit) | Address::Iser(unit) => self.behind_portal(unit),
            Address::Fcoe(unit) => self.behind_fc_port(unit),
            _ => None,
        }
    }

    fn behind_portal(&self, unit: &UnitAddress) -> Option<&'a str> {
        let name = iscsi::names::normalise(&unit.target).ok()?;
        let target = self.inventory.targets.get(&name)?;
        let initiator = unit.session.initiator.as_deref();
        let initiator = initiator.unwrap_or(self.node.initiator);
        let mut groups = target.groups.iter();
        let group = groups.find(|(names, _)| names.contains(initiator));
        let luns = group.map_or(&target.luns, |(_, luns)| luns);
        self.is_portal_of(target, &unit.portal)
            .then(|| unit_of(luns, unit.lun))?
    }

    /// A WWPN belongs to one port alone. A port that is named after its interface when it is opened
    /// is not known here, nor by which name this server logs in: what a group is shown counts where
    /// others see no such LUN.
    fn behind_fc_port(&self, unit: &FcoeAddress) -> Option<&'a str> {
        let mut ports = self.inventory.fc_ports.iter();
        let named = ports.find(|row| row.port.wwpn == Some(unit.port_name))?;
        let mut groups = named.groups.iter();
        let of_group = || groups.find_map(|(_, luns)| unit_of(luns, unit.lun));
        unit_of(&named.luns, unit.lun).or_else(of_group)
    }

    fn is_portal_of(&self, target: &TargetRow, portal: &HostPort) -> bool {
        let is_own = |bound: IpAddr| match &portal.host {
            Host::V4(ip) => self.listens_on(bound, (*ip).into()),
            Host::V6(ip, _) => self.listens_on(bound, IpAddr::from(*ip).to_canonical()),
            Host::Name(name) => {
                let is_local = name.eq_ignore_ascii_case("localhost");
                is_local && (bound.is_loopback() || bound.is_unspecified())
            }
        };
        let own = target.portals.iter().map(|portal| &portal.1);
        let everywhere: &[_] = match &target.portals[..] {
            [] => &self.inventory.portals,
            _ => &[],
        };
        let mut portals = everywhere.iter().chain(own);
        portals.any(|bound| bound.port() == portal.port && is_own(bound.ip()))
    }

    /// `[::]` takes connections to IPv4 addresses too; who connects to a wildcard reaches loopback.
    fn listens_on(&self, bound: IpAddr, ip: IpAddr) -> bool {
        if bound == ip {
            return true;
        }
        if ip.is_unspecified() {
            return bound.is_loopback() || bound.is_unspecified();
        }
        let is_wildcard = bound.is_unspecified() && (bound.is_ipv6() || ip.is_ipv4());
        is_wildcard && (ip.is_loopback() || self.node.addresses.contains(&ip))
    }
}

fn unit_of(luns: &LunRows, lun: u16) -> Option<&str> {
    let mut luns = luns.iter();
    luns.find(|row| row.lun == lun).map(|row| &*row.unit)
}

//! The LUNs of a unit, as they are told to whoever waits for them.

use std::net::SocketAddr;

use address::{Address, FabricOptions, FcoeAddress, FcoeMode, FcoeOptions};

use super::fc_ports::FcPortName;
use super::{DeviceListening, Portal, Served, portals};
use crate::serve::options::ReadyLun;
use iscsi::target::IserPortals;

impl Served {
    pub(super) fn luns(&self, unit: &str) -> Vec<ReadyLun> {
        let (Some(row), Some(served)) = (self.inventory.units.get(unit), self.units.get(unit))
        else {
            return Vec::new();
        };
        let traits = served.volume.traits();
        let lun = |address: String, portals: Vec<String>, target: String, lun| ReadyLun {
            address,
            portals,
            target,
            lun,
            size_bytes: traits.blocks * u64::from(traits.block_size),
            block_size: traits.block_size,
            volume: row.written.clone(),
        };
        let mut luns = Vec::new();
        for (target, number) in self.iscsi_luns(unit) {
            let (all, iser) = (self.bound(target), self.iser_portals());
            let of_iser = all.iter().copied().filter(|at| iser.are_at(*at));
            for (scheme, bound) in [("iscsi", all.clone()), ("iser", of_iser.collect())] {
                let portals = portals::reachable(&bound);
                let Some(first) = portals.first() else { break };
                let address = format!("{scheme}://{first}/{target}/{number}");
                let portals = portals.iter().map(SocketAddr::to_string).collect();
                luns.push(lun(address, portals, target.to_owned(), number));
            }
        }
        for (name, mode, number) in self.fc_luns(unit) {
            let address = Address::Fcoe(FcoeAddress {
                place: name.place.clone(),
                port_name: name.wwpn,
                lun: number,
                options: FcoeOptions {
                    mode: of_initiators(mode),
                    ..FcoeOptions::default()
                },
            });
            let place = vec![name.place.to_string()];
            luns.push(lun(
                address.to_string(),
                place,
                name.wwpn.to_string(),
                number,
            ));
        }
        luns
    }

    /// Where iSER is taken, with the ports that were picked. Devices that are missing take none.
    pub(super) fn iser_portals(&self) -> IserPortals {
        let asked = &self.inventory.iser;
        let bound = |is_so: &dyn Fn(&Portal) -> bool| {
            let portals = self.portals.iter().filter(|portal| is_so(portal));
            portals.map(|portal| portal.bound).collect()
        };
        IserPortals {
            portals: bound(&|portal| asked.portals.contains(&portal.asked)),
            devices: bound(&|portal| portal.by_devices == DeviceListening::Yes),
            without_crc: asked.without_crc,
        }
    }

    /// Where a target is reached.
    fn bound(&self, target: &str) -> Vec<SocketAddr> {
        let row = self.inventory.targets.get(target);
        let groups = row.map_or_else(Vec::new, |row| self.portal_groups(row));
        let own: Vec<_> = groups.into_iter().flat_map(|group| group.portals).collect();
        if own.is_empty() {
            self.portals.iter().map(|portal| portal.bound).collect()
        } else {
            own
        }
    }

    /// The targets that show a unit to everybody, and as which LUN.
    fn iscsi_luns<'a>(&'a self, unit: &'a str) -> impl Iterator<Item = (&'a str, u16)> {
        let targets = self.inventory.targets.iter();
        targets.flat_map(move |(name, row)| {
            let luns = row.luns.iter().filter(move |lun| lun.unit == unit);
            luns.map(move |row| (&**name, row.lun))
        })
    }

    fn fc_luns<'a>(
        &'a self,
        unit: &'a str,
    ) -> impl Iterator<Item = (&'a FcPortName, FcoeMode, u16)> {
        let ports = self.inventory.fc_ports.iter();
        ports.flat_map(move |row| {
            let mut names = self.fc_ports.iter();
            let name = names.find(|name| name.is_of(row));
            let luns = row.luns.iter().filter(move |lun| lun.unit == unit);
            name.into_iter()
                .flat_map(move |name| luns.clone().map(move |lun| (name, row.port.mode, lun.lun)))
        })
    }
}

/// How initiators find a port: in the same fabric, by their own names and network card.
fn of_initiators(mode: FcoeMode) -> FcoeMode {
    match mode {
        FcoeMode::Vn2Vn => FcoeMode::Vn2Vn,
        FcoeMode::Fabric(FabricOptions {
            vlan, fcf, fabric, ..
        }) => FcoeMode::Fabric(FabricOptions {
            vlan,
            fcf,
            fabric,
            ..FabricOptions::default()
        }),
    }
}

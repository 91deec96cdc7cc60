//! HBAs, their ports, and who registered them.

use std::collections::{BTreeMap, BTreeSet};

use super::attributes::{Attributes, Room};
use super::{NO_HBA, NO_PORT, NOT_OWN};
use crate::wire::ct::CtReject;
use crate::wire::ct::fdmi::FdmiAttribute;
use crate::wire::names::Wwn;

/// All that is registered.
#[derive(Debug, Default)]
pub(in crate::fabric::servers) struct Hbas {
    hbas: BTreeMap<Wwn, Hba>,
    /// The one HBA that a port has registered.
    owned: BTreeMap<Wwn, Wwn>,
    ports: BTreeMap<Wwn, FdmiPort>,
    room: Room,
}

/// An HBA.
#[derive(Debug)]
pub(super) struct Hba {
    /// The port that registered it.
    owner: Wwn,
    attributes: Attributes,
    ports: BTreeSet<Wwn>,
}

/// A port of an HBA.
#[derive(Debug)]
struct FdmiPort {
    hba: Wwn,
    attributes: Attributes,
}

impl Hba {
    pub(super) const fn owner(&self) -> Wwn {
        self.owner
    }

    pub(super) fn ports(&self) -> Vec<Wwn> {
        self.ports.iter().copied().collect()
    }

    pub(super) fn attributes(&self) -> Vec<FdmiAttribute> {
        self.attributes.list()
    }
}

impl Hbas {
    pub(super) fn len(&self) -> usize {
        self.hbas.len()
    }

    /// HBAs and ports, and their attributes.
    pub(in crate::fabric::servers) fn records(&self) -> usize {
        let hbas = self.hbas.values().map(|hba| 1 + hba.attributes.len());
        let ports = self.ports.values().map(|port| 1 + port.attributes.len());
        hbas.chain(ports).sum::<usize>() + self.owned.len()
    }

    /// Bytes of attributes that a port has registered, of its HBA and of itself.
    pub(super) fn stored(&self, port: Wwn) -> usize {
        let hba = self.owned.get(&port).and_then(|hba| self.hbas.get(hba));
        let of_hba = hba.map_or(0, |hba| hba.attributes.size());
        let of_port = self.ports.get(&port);
        of_hba + of_port.map_or(0, |port| port.attributes.size())
    }

    /// All, with the ports that registered them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Wwn, Wwn)> {
        self.hbas.iter().map(|(name, hba)| (*name, hba.owner))
    }

    pub(super) fn get(&self, name: Wwn) -> Option<&Hba> {
        self.hbas.get(&name)
    }

    pub(super) fn port_attributes(&self, port: Wwn) -> Option<Vec<FdmiAttribute>> {
        self.ports.get(&port).map(|port| port.attributes.list())
    }

    /// RHBA. A port has one HBA: it takes the place of what it registered before, unless there is
    /// no room for it. Of its ports only the one that registers is known to be there; others
    /// register themselves. An HBA that has the name of the port is the port's, whichever port
    /// registered it.
    pub(super) fn register(
        &mut self,
        owner: Wwn,
        name: Wwn,
        is_port: bool,
        list: Vec<FdmiAttribute>,
    ) -> Result<(), CtReject> {
        if self.get(name).is_some_and(|hba| hba.owner != owner) && name != owner {
            return Err(NOT_OWN);
        }
        let before = self.owned.get(&owner).copied();
        let mut hba = Hba {
            owner,
            attributes: Attributes::default(),
            ports: BTreeSet::new(),
        };
        let attributes = hba.attributes.with(list);
        let old = before.and_then(|before| self.hbas.get(&before));
        self.room
            .check(old.map(|hba| &hba.attributes), &attributes)?;
        for gone in before.into_iter().chain([name]) {
            self.remove(gone);
        }
        self.room.exchange(&mut hba.attributes, attributes)?;
        self.hbas.insert(name, hba);
        self.owned.insert(owner, name);
        if is_port {
            self.register_port(name, owner, Vec::new())?;
        }
        Ok(())
    }

    /// RHAT.
    pub(super) fn set(
        &mut self,
        owner: Wwn,
        name: Wwn,
        list: Vec<FdmiAttribute>,
    ) -> Result<(), CtReject> {
        let (hba, room) = self.own(owner, name)?;
        let after = hba.attributes.with(list);
        room.exchange(&mut hba.attributes, after)
    }

    /// DHAT.
    pub(super) fn unset(
        &mut self,
        owner: Wwn,
        name: Wwn,
        which: &[FdmiAttribute],
    ) -> Result<(), CtReject> {
        let (hba, room) = self.own(owner, name)?;
        let after = hba.attributes.without(which);
        room.exchange(&mut hba.attributes, after)
    }

    /// DHBA: the HBA is gone, and so are its ports.
    pub(super) fn deregister(&mut self, owner: Wwn, name: Wwn) -> Result<(), CtReject> {
        self.own(owner, name)?;
        self.remove(name);
        Ok(())
    }

    /// RPRT. A port is one of one HBA.
    pub(super) fn register_port(
        &mut self,
        hba: Wwn,
        port: Wwn,
        list: Vec<FdmiAttribute>,
    ) -> Result<(), CtReject> {
        if !self.hbas.contains_key(&hba) {
            return Err(NO_HBA);
        }
        let mut attributes = Attributes::default();
        let after = attributes.with(list);
        let old = self.ports.get(&port);
        self.room.check(old.map(|port| &port.attributes), &after)?;
        self.remove_port(port);
        self.room.exchange(&mut attributes, after)?;
        self.ports.insert(port, FdmiPort { hba, attributes });
        if let Some(hba) = self.hbas.get_mut(&hba) {
            hba.ports.insert(port);
        }
        Ok(())
    }

    /// RPA.
    pub(super) fn set_port(&mut self, port: Wwn, list: Vec<FdmiAttribute>) -> Result<(), CtReject> {
        let known = self.ports.get_mut(&port).ok_or(NO_PORT)?;
        let after = known.attributes.with(list);
        self.room.exchange(&mut known.attributes, after)
    }

    /// DPA.
    pub(super) fn unset_port(
        &mut self,
        port: Wwn,
        which: &[FdmiAttribute],
    ) -> Result<(), CtReject> {
        let known = self.ports.get_mut(&port).ok_or(NO_PORT)?;
        let after = known.attributes.without(which);
        self.room.exchange(&mut known.attributes, after)
    }

    /// DPRT.
    pub(super) fn deregister_port(&mut self, port: Wwn) -> Result<(), CtReject> {
        self.remove_port(port).then_some(()).ok_or(NO_PORT)
    }

    /// The port is gone, with all that it registered.
    pub(in crate::fabric::servers) fn forget(&mut self, port: Wwn) {
        if let Some(hba) = self.owned.get(&port).copied() {
            self.remove(hba);
        }
        self.remove_port(port);
    }

    /// The HBA of a name, if this port registered it.
    fn own(&mut self, owner: Wwn, name: Wwn) -> Result<(&mut Hba, &mut Room), CtReject> {
        let hba = self.hbas.get_mut(&name).ok_or(NO_HBA)?;
        if hba.owner != owner {
            return Err(NOT_OWN);
        }
        Ok((hba, &mut self.room))
    }

    fn remove(&mut self, name: Wwn) {
        let Some(hba) = self.hbas.remove(&name) else {
            return;
        };
        self.room.release(&hba.attributes);
        self.owned.remove(&hba.owner);
        for port in hba.ports {
            self.remove_port(port);
        }
    }

    /// Whether there was such a port.
    fn remove_port(&mut self, port: Wwn) -> bool {
        let Some(gone) = self.ports.remove(&port) else {
            return false;
        };
        self.room.release(&gone.attributes);
        if let Some(hba) = self.hbas.get_mut(&gone.hba) {
            hba.ports.remove(&port);
        }
        true
    }
}

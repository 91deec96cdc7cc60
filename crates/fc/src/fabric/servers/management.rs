//! The management server: FDMI (FC-GS), what HBAs there are and what they are made of.
//!
//! A port registers an HBA by RHBA, and itself as one of its ports by RHBA, RPRT and RPA. What it
//! registered is gone with its login to the fabric. Who shares a zone with it may read it.

use super::common_transport::{NOT_SUPPORTED, SIZE};
use super::{Asked, Servers};
use crate::wire::ct::fdmi::{FdmiAccept, FdmiRequest, explanation};
use crate::wire::ct::{CtHeader, CtReject, reason};
use crate::wire::names::{FcId, Wwn};

mod attributes;
mod hbas;

pub(super) use self::hbas::Hbas;

const fn unable(explanation: u8) -> CtReject {
    CtReject::new(reason::UNABLE, explanation)
}

/// The HBA is another port's.
const NOT_OWN: CtReject = unable(explanation::HBA_ALREADY_REGISTERED);
const NO_HBA: CtReject = unable(explanation::HBA_NOT_REGISTERED);
const NO_PORT: CtReject = unable(explanation::PORT_NOT_REGISTERED);
/// There is no room for more; or the name is in use where the port may not know of it.
const FULL: CtReject = unable(crate::wire::ct::explanation::NONE);

impl Servers {
    /// The whole CT_IU of an accept.
    pub(super) fn device_management(
        &mut self,
        asked: Asked,
        header: &CtHeader,
        payload: &[u8],
    ) -> Result<Vec<u8>, CtReject> {
        let request = FdmiRequest::parse(header.code, payload)?;
        let accept = self.fdmi(asked.from, request)?;
        let bytes = accept.encode(header).ok_or(SIZE)?;
        self.charge(asked.from, bytes.len() / BYTES_OF_A_STEP);
        Ok(bytes)
    }

    fn fdmi(&mut self, from: FcId, request: FdmiRequest) -> Result<FdmiAccept, CtReject> {
        let asking = self.ports.get(&from).ok_or(NO_PORT)?.login.wwpn;
        // A port registers for itself only.
        let is_own = |port: Wwn| (port == asking).then_some(()).ok_or(NO_PORT);
        if request.is_change() {
            // What is stored is copied, however little changes.
            self.charge(from, self.hbas.stored(asking) / BYTES_OF_A_STEP);
        }
        self.check_hba((from, asking), &request)?;
        let hbas = &mut self.hbas;
        match request {
            FdmiRequest::Rhba(hba, ports, list) => {
                hbas.register(asking, hba, ports.contains(&asking), list)?;
            }
            FdmiRequest::Rhat(hba, list) => hbas.set(asking, hba, list)?,
            FdmiRequest::Rprt(hba, port, list) => {
                is_own(port)?;
                hbas.register_port(hba, port, list)?;
            }
            FdmiRequest::Rpa(port, list) => {
                is_own(port)?;
                hbas.set_port(port, list)?;
            }
            FdmiRequest::Dhba(hba) => hbas.deregister(asking, hba)?,
            FdmiRequest::Dhat(hba, which) => hbas.unset(asking, hba, &which)?,
            FdmiRequest::Dprt(port) => {
                is_own(port)?;
                hbas.deregister_port(port)?;
            }
            FdmiRequest::Dpa(port, which) => {
                is_own(port)?;
                hbas.unset_port(port, &which)?;
            }
            query => return self.fdmi_query(from, &query),
        }
        Ok(FdmiAccept::Empty)
    }

    /// What a port may change: by how other changes are rejected it is told of no HBA that it may
    /// not read of.
    fn check_hba(
        &self,
        (from, asking): (FcId, Wwn),
        request: &FdmiRequest,
    ) -> Result<(), CtReject> {
        match *request {
            FdmiRequest::Rhba(hba, ..) => match self.port_called(asking, hba) {
                Some(port) if self.visible_name(from, port).is_ok() => Err(NOT_OWN),
                Some(_) => Err(FULL),
                None => Ok(()),
            },
            FdmiRequest::Rhat(hba, _)
            | FdmiRequest::Rprt(hba, ..)
            | FdmiRequest::Dhba(hba)
            | FdmiRequest::Dhat(hba, _) => {
                let owner = self.hbas.get(hba).map(hbas::Hba::owner);
                if owner != Some(asking) {
                    self.visible_hba(from, hba)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The other port that has the name of an HBA, or that registered one of this name. By custom
    /// an HBA has the name of one of its ports.
    fn port_called(&self, asking: Wwn, hba: Wwn) -> Option<Wwn> {
        if hba == asking {
            return None;
        }
        let is_port = self.nodes.has_port(hba);
        let owner = self.hbas.get(hba).map(hbas::Hba::owner);
        let other = owner.filter(|owner| *owner != asking);
        if is_port { Some(hba) } else { other }
    }

    fn fdmi_query(&mut self, from: FcId, request: &FdmiRequest) -> Result<FdmiAccept, CtReject> {
        match *request {
            FdmiRequest::Grhl => Ok(FdmiAccept::Names(self.visible_hbas(from))),
            FdmiRequest::Ghat(name) => {
                let hba = self.visible_hba(from, name)?;
                let ports = self.visible_ports(from, hba);
                Ok(FdmiAccept::Hba(ports, hba.attributes()))
            }
            FdmiRequest::Grpl(name) => {
                let hba = self.visible_hba(from, name)?;
                Ok(FdmiAccept::Names(self.visible_ports(from, hba)))
            }
            FdmiRequest::Gpat(port) => {
                let attributes = self.hbas.port_attributes(port).ok_or(NO_PORT)?;
                let is_visible = self.visible_name(from, port).is_ok();
                let attributes = is_visible.then_some(FdmiAccept::Attributes(attributes));
                attributes.ok_or(NO_PORT)
            }
            _ => Err(NOT_SUPPORTED),
        }
    }

    /// All HBAs that a port is told of; it costs a look at each.
    fn visible_hbas(&mut self, from: FcId) -> Vec<Wwn> {
        self.charge(from, self.hbas.len());
        let owned = self.hbas.iter();
        let visible = owned.filter(|(_, owner)| self.visible_name(from, *owner).is_ok());
        visible.map(|(hba, _)| hba).collect()
    }

    /// The ports of an HBA that a port is told of: an HBA may have ports in several zones.
    fn visible_ports(&self, from: FcId, hba: &hbas::Hba) -> Vec<Wwn> {
        let mut ports = hba.ports();
        ports.retain(|port| self.visible_name(from, *port).is_ok());
        ports
    }

    fn visible_hba(&self, from: FcId, name: Wwn) -> Result<&hbas::Hba, CtReject> {
        let hba = self.hbas.get(name).ok_or(NO_HBA)?;
        let owner = self.visible_name(from, hba.owner());
        owner.map(|_| hba).map_err(|_| NO_HBA)
    }
}

impl FdmiRequest {
    /// Whether it changes what is registered.
    const fn is_change(&self) -> bool {
        !matches!(
            self,
            Self::Grhl | Self::Ghat(_) | Self::Grpl(_) | Self::Gpat(_) | Self::Other(_)
        )
    }
}

/// What is copied for the price of a look at a port.
const BYTES_OF_A_STEP: usize = 64;

//! The Fibre Channel ports of a server.

use std::sync::Arc;

use ::io::ether::Place;
use fc::wire::names::Wwn;
use iscsi::target::TargetLimits;
use scsi::nexus::{TargetDevice, TargetPort};
use scsi::wire::designator::{Association, Designator};

use crate::inventory::FcPortRow;
use crate::serve::options::{ServeError, ServeMisuse};
use crate::views::LunMap;
use address::Time;
use runtime::n_port::{Attachment, DcbGate, PortNames, PortOwner};

/// What a port is called.
#[derive(Clone, Debug)]
pub(super) struct FcPortName {
    pub(super) place: Place,
    pub(super) wwpn: Wwn,
    pub(super) wwnn: Wwn,
    /// RELATIVE TARGET PORT IDENTIFIER.
    pub(super) number: u16,
    /// Whether it is a further port of an ENode (NPIV).
    is_further: bool,
    /// The right to the names and the MAC address of the ENode.
    names: Arc<PortNames>,
    /// What the ENode waits for.
    gate: Option<DcbGate>,
}

impl FcPortName {
    /// Whether it is the port of this row.
    pub(super) fn is_of(&self, row: &FcPortRow) -> bool {
        let port = &row.port;
        let is_same = !port.is_further || port.wwpn == Some(self.wwpn);
        (&self.place, self.is_further) == (&port.place, port.is_further) && is_same
    }
}

/// Opens a port, the `number`-th. `others` are open.
pub(super) fn open(
    row: &FcPortRow,
    limits: &TargetLimits,
    others: &[FcPortName],
    number: u16,
) -> Result<(FcPortName, Attachment), ServeError> {
    let port = &row.port;
    let is_enode = |other: &&FcPortName| other.place == port.place && !other.is_further;
    let enode = others.iter().find(is_enode).filter(|_| port.is_further);
    let owner = match (enode, port.wwpn) {
        (Some(enode), _) => PortOwner::Again(Arc::clone(&enode.names)),
        (None, Some(_)) => PortOwner::NamedServer,
        (None, None) => PortOwner::Server,
    };
    let way = (port.mode.port_mode(), port.mode.tag());
    let mut site = Attachment::open_by(&port.place, &owner, way)?;
    if let Some(obstacle) = site.obstacle().filter(|_| !port.is_further) {
        tracing::warn!("{obstacle}");
    }
    match enode {
        Some(enode) => site.wait_for(enode.gate.clone()),
        None => site.use_dcb(port.dcb)?,
    }
    if port.fip_resp {
        site.answer_vlan_requests()?;
    }
    let config = &mut site.config;
    config.wwpn = port.wwpn.unwrap_or(config.wwpn);
    config.wwnn = port.wwnn.unwrap_or(config.wwnn);
    config.e_d_tov = port.e_d_tov.map_or(config.e_d_tov, |Time(time)| time);
    config.partners = row.partners.clone();
    config.limits.remotes = limits.sessions;
    config.further = port.is_further.then_some(number);
    if let Some(same) = others.iter().find(|other| other.wwpn == config.wwpn) {
        return Err(ServeMisuse::SameWwpn(same.wwpn).into());
    }
    let name = FcPortName {
        place: port.place.clone(),
        wwpn: config.wwpn,
        wwnn: config.wwnn,
        number: row.port_id.unwrap_or(FIRST_PORT + number),
        is_further: port.is_further,
        names: Arc::clone(&site.names),
        gate: site.gate(),
    };
    Ok((name, site))
}

/// What is seen through a port.
pub(super) fn device(name: &FcPortName, map: LunMap) -> TargetDevice {
    let wwnn = format!("naa.{:016x}", name.wwnn.0);
    let port = Designator::Naa(&name.wwpn.0.to_be_bytes());
    TargetDevice {
        designators: Designator::Name(&wwnn).encode(Association::TargetDevice, PROTOCOL),
        ports: vec![TargetPort {
            relative_id: name.number,
            designators: port.encode(Association::TargetPort, PROTOCOL),
        }],
        luns: map.luns,
        read_only: map.read_only,
        protocol: PROTOCOL,
        versions: vec![FCP_4],
    }
}

/// RELATIVE TARGET PORT IDENTIFIER of the first; 1 is the portal group of iSCSI.
const FIRST_PORT: u16 = 2;

/// PROTOCOL IDENTIFIER of Fibre Channel (SPC-5 §7.6.1).
const PROTOCOL: u8 = 0;

/// The version descriptor of FCP-4, no version claimed (SPC-5, version descriptor values).
const FCP_4: u16 = 0x0a40;

//! The Fibre Channel ports of a server.

use ::io::ether::Place;
use fc::wire::names::Wwn;
use iscsi::target::TargetLimits;
use scsi::nexus::{TargetDevice, TargetPort};
use scsi::wire::designator::{Association, Designator};

use crate::inventory::FcPortRow;
use crate::serve::options::ServeError;
use crate::views::LunMap;
use address::Time;
use runtime::n_port::{Attachment, PortOwner};

/// What a port is called.
#[derive(Clone, Debug)]
pub(super) struct FcPortName {
    pub(super) place: Place,
    pub(super) wwpn: Wwn,
    pub(super) wwnn: Wwn,
    /// RELATIVE TARGET PORT IDENTIFIER.
    pub(super) number: u16,
}

/// Opens a port, the `number`-th.
pub(super) fn open(
    row: &FcPortRow,
    limits: &TargetLimits,
    number: u16,
) -> Result<(FcPortName, Attachment), ServeError> {
    let port = &row.port;
    let owner = match port.wwpn {
        Some(_) => PortOwner::NamedServer,
        None => PortOwner::Server,
    };
    let mut site = Attachment::open(&port.place, &owner)?;
    if let Some(obstacle) = site.obstacle() {
        tracing::warn!("{obstacle}");
    }
    site.find_by(port.mode.port_mode(), port.mode.tag())?;
    let config = &mut site.config;
    config.wwpn = port.wwpn.unwrap_or(config.wwpn);
    config.wwnn = port.wwnn.unwrap_or(config.wwnn);
    config.e_d_tov = port.e_d_tov.map_or(config.e_d_tov, |Time(time)| time);
    config.partners = row.partners.clone();
    config.limits.remotes = limits.sessions;
    let name = FcPortName {
        place: port.place.clone(),
        wwpn: config.wwpn,
        wwnn: config.wwnn,
        number: row.port_id.unwrap_or(FIRST_PORT + number),
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

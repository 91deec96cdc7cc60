//! The Fibre Channel ports of a server.

use std::sync::Arc;

use ::io::ether::Place;
use fc::remote::Partners;
use fc::wire::names::Wwn;
use scsi::nexus::{TargetDevice, TargetPort};
use scsi::unit::UnitId;
use scsi::wire::designator::{Association, Designator};
use scsi::wire::lun::Lun;

use super::options::{FcoePort, ServeError, ServeOptions};
use super::plan::UnitPlan;
use address::Time;
use runtime::n_port::{Attachment, PortOwner};

/// What a port is called.
pub(super) struct FcPortName {
    pub(super) place: Place,
    pub(super) wwpn: Wwn,
}

/// A port that is to be, and what it shows.
pub(super) type FcPortSpec = (Attachment, Arc<TargetDevice>);

/// Opens every port, or none.
pub(super) fn open(
    options: &ServeOptions,
    units: &[UnitPlan],
) -> Result<(Vec<FcPortName>, Vec<FcPortSpec>), ServeError> {
    let mut opened = (Vec::new(), Vec::new());
    for (port, number) in options.fcoe.iter().zip(FIRST_PORT..) {
        let owner = match port.wwpn {
            Some(_) => PortOwner::NamedServer,
            None => PortOwner::Server,
        };
        let mut site = Attachment::open(&port.place, &owner)?;
        if let Some(obstacle) = site.obstacle() {
            tracing::warn!("{obstacle}");
        }
        let config = &mut site.config;
        config.wwpn = port.wwpn.unwrap_or(config.wwpn);
        config.wwnn = port.wwnn.unwrap_or(config.wwnn);
        config.e_d_tov = port.e_d_tov.map_or(config.e_d_tov, |Time(time)| time);
        config.partners = options.partners(port);
        config.limits.remotes = options.limits.sessions;
        let device = device(config.wwpn, config.wwnn, number, units);
        opened.0.push(FcPortName {
            place: port.place.clone(),
            wwpn: config.wwpn,
        });
        opened.1.push((site, Arc::new(device)));
    }
    Ok(opened)
}

impl ServeOptions {
    /// The initiators that a port admits. Where none is named, the other end of a cable may log in.
    fn partners(&self, port: &FcoePort) -> Partners {
        let allowed = self.allowed_ports();
        match &port.place {
            _ if self.open => Partners::Any,
            Place::Cable(_) if allowed.is_empty() => Partners::Any,
            _ => Partners::Only(allowed.into_iter().collect()),
        }
    }
}

/// What is seen through a port: every unit, by its number in the command.
fn device(wwpn: Wwn, wwnn: Wwn, number: u16, units: &[UnitPlan]) -> TargetDevice {
    let name = format!("naa.{:016x}", wwnn.0);
    let port = Designator::Naa(&wwpn.0.to_be_bytes());
    let luns = units.iter().zip(0..);
    TargetDevice {
        designators: Designator::Name(&name).encode(Association::TargetDevice, PROTOCOL),
        ports: vec![TargetPort {
            relative_id: number,
            designators: port.encode(Association::TargetPort, PROTOCOL),
        }],
        luns: luns
            .map(|(unit, id)| (Lun::from_index(unit.lun), UnitId::first(id)))
            .collect(),
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

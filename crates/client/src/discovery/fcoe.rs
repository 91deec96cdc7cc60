//! What is behind an Ethernet port of ours: N_Ports, and the units of those that are targets.

use std::time::{Duration, Instant};

use ::io::ether::Place;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::port::Port;
use fc::remote::RemotePort;
use fc::wire::names::{FcId, Wwn};
use scsi::medium::{HeapLease, Now};

use super::{DiscoveredTarget, units_by};
use crate::open::{OpenCause, REPLACEMENT, fcoe_settings};
use crate::remote::{FcoeLink, FcoeLinkEnd, Inquiry, LinkEnd, RemoteError, TargetPortAddress};
use address::{Address, FcoeAddress, FcoeOptions};
use runtime::n_port::{Attachment, BlockingPort, IdlePorts, NPort, PortOwner, PortTerms};
pub use runtime::n_port::{FrameLoss, FrameLosses};

/// What was found behind an Ethernet port.
#[derive(Debug)]
pub struct FcoeDiscovery {
    /// Our own port, then the others by their names.
    pub ports: Vec<DiscoveredPort>,
    /// Those of them that are targets and let us in.
    pub targets: Vec<DiscoveredTarget>,
    /// Frames that were lost at our Ethernet port meanwhile.
    pub lost: FrameLosses,
}

impl FcoeDiscovery {
    /// Whether some other port is a target, be it one that refuses our login.
    #[must_use]
    pub fn has_target(&self) -> bool {
        let mut others = self.ports.iter().filter(|port| !port.ours);
        others.any(|port| port.role.starts_with("FCP Target"))
    }
}

/// An N_Port.
#[derive(Clone, Debug)]
pub struct DiscoveredPort {
    /// Whether it is ours, made to look.
    pub ours: bool,
    /// WWPN.
    pub port_name: Wwn,
    /// WWNN.
    pub node_name: Wwn,
    /// Its address identifier, once it has one.
    pub fc_id: Option<FcId>,
    /// The most bytes of payload in a frame to it.
    pub max_frame: u16,
    /// What it says to be.
    pub role: &'static str,
    /// How far the login got.
    pub state: &'static str,
}

/// How long is waited for ports after our own has an address, and for it: a port that is there says
/// so within half a second, and logs in.
const LOOK: Duration = Duration::from_millis(1500);
const ADDRESS: Duration = Duration::from_secs(3);

/// How long is waited for frames before the time is looked at.
const TURN: Duration = Duration::from_millis(50);

type LookingPort = BlockingPort<FcpInitiator<HeapLease>>;

/// Looks for ports, logs in to the targets among them, and asks them for their units.
///
/// # Errors
///
/// When the Ethernet port cannot be had. What single targets refuse is told with them.
pub fn look(place: &Place) -> Result<FcoeDiscovery, OpenCause> {
    let port = look_around(place)?;
    let ports = seen(port.n_port().port());
    let remotes = port.n_port().port().remotes();
    let mut up: Vec<_> = remotes.filter(|remote| remote.is_up()).collect();
    up.sort_by_key(|remote| remote.id());
    let up: Vec<Wwn> = up.into_iter().map(RemotePort::wwpn).collect();
    // Those that ask the targets use this port one after the other.
    let idle = IdlePorts::default();
    port.put(&idle);
    let targets = up.into_iter().map(|wwpn| target(place, wwpn, &idle));
    let targets = targets.collect();
    Ok(FcoeDiscovery {
        ports,
        targets,
        lost: leave(place, &idle)?,
    })
}

/// A port that has had the time to find others and to log in to them.
fn look_around(place: &Place) -> Result<LookingPort, OpenCause> {
    let site = Attachment::open(place, &PortOwner::Initiator).map_err(RemoteError::Port)?;
    let initiator = FcpInitiator::new(FcpInitiatorConfig::default());
    let n_port = NPort::begin(site, initiator, Now::ZERO);
    let mut port = BlockingPort::new(n_port, Instant::now()).map_err(RemoteError::Ring)?;
    let until = Instant::now() + ADDRESS;
    while port.n_port().port().address().is_none() && Instant::now() < until {
        port.turn(TURN).map_err(RemoteError::Ring)?;
    }
    if let Some(obstacle) = port.n_port().blocking_problem() {
        let barred = LinkEnd::Fcoe(FcoeLinkEnd::Barred(obstacle));
        return Err(RemoteError::Session(barred).into());
    }
    let until = Instant::now() + LOOK;
    while Instant::now() < until {
        port.turn(TURN).map_err(RemoteError::Ring)?;
    }
    Ok(port)
}

/// Logs out: a target that is not told keeps us, until it misses us much later. Returns which
/// frames were lost meanwhile.
fn leave(place: &Place, idle: &IdlePorts) -> Result<FrameLosses, RemoteError> {
    let Some(n_port) = idle.take::<HeapLease>(place, PortTerms::default(), Now::ZERO) else {
        return Ok(FrameLosses::default());
    };
    let mut port = BlockingPort::new(n_port, Instant::now()).map_err(RemoteError::Ring)?;
    port.leave().map_err(RemoteError::Ring)?;
    Ok(port.lost().unwrap_or_default())
}

/// Our own port, then the others by their names.
fn seen(port: &Port<FcpInitiator<HeapLease>>) -> Vec<DiscoveredPort> {
    let address = port.address();
    let mut seen = vec![DiscoveredPort {
        ours: true,
        port_name: port.wwpn(),
        node_name: port.wwnn(),
        fc_id: address.map(|address| address.fc_id),
        max_frame: port.payload_max(),
        role: "FCP Initiator",
        state: address.map_or("Offline", |_| "Online"),
    }];
    seen.extend(port.remotes().map(seen_as));
    seen[1..].sort_by_key(|seen| seen.port_name);
    seen
}

fn seen_as(remote: &RemotePort) -> DiscoveredPort {
    let neighbour = remote.neighbour();
    let role = match (neighbour.target, neighbour.initiator) {
        (Some(true), Some(true)) => "FCP Target, Initiator",
        (_, Some(true)) => "FCP Initiator",
        (Some(true), _) => "FCP Target",
        _ if remote.is_up() => "FCP Target",
        _ => "-",
    };
    DiscoveredPort {
        ours: false,
        port_name: neighbour.wwpn,
        node_name: neighbour.wwnn,
        fc_id: Some(neighbour.fc_id),
        max_frame: remote.payload_max(),
        role,
        state: if remote.is_up() {
            "Online"
        } else {
            "not logged in"
        },
    }
}

/// A target, and its units.
fn target(place: &Place, port_name: Wwn, idle: &IdlePorts) -> DiscoveredTarget {
    let log_in = || {
        let target = TargetPortAddress {
            place: place.clone(),
            port_name,
            terms: PortTerms::default(),
            ports: idle.clone(),
        };
        let name = port_name.to_string();
        Inquiry::log_in(Instant::now(), |core| FcoeLink::new(core, target, name))
    };
    let unit = |lun| {
        let address = FcoeAddress {
            place: place.clone(),
            port_name,
            lun,
            options: FcoeOptions::default(),
        };
        let settings = fcoe_settings(&address, idle, REPLACEMENT);
        (Address::Fcoe(address), settings)
    };
    DiscoveredTarget {
        name: port_name.to_string(),
        portals: vec![place.to_string()],
        units: units_by(&log_in, unit).map_err(OpenCause::from),
    }
}

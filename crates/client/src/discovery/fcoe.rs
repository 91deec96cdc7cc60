//! What is behind an Ethernet port of ours: N_Ports, and the units of those that are targets.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use ::io::ether::Place;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::port::{NameWalkState, Port, PortMode};
use fc::remote::RemotePort;
use fc::wire::ct::name_server::PortEntry;
use fc::wire::ethernet::Mac;
use fc::wire::names::{FcId, Wwn};
use scsi::medium::{HeapLease, Now};

use super::{DiscoveredTarget, units_by};
use crate::open::{OpenCause, REPLACEMENT, fcoe_settings};
use crate::remote::{FcoeLink, FcoeLinkEnd, Inquiry, LinkEnd, RemoteError, TargetPortAddress};
use address::{Address, FcoeAddress, FcoeOptions, FcoePortal};
use runtime::n_port::{BlockingPort, IdlePorts, NPort, PortOwner, PortTerms};
pub use runtime::n_port::{FrameLoss, FrameLosses};

/// What was found behind an Ethernet port.
#[derive(Debug)]
pub struct FcoeDiscovery {
    /// Our own port, then the others by their names.
    pub ports: Vec<DiscoveredPort>,
    /// What it is like in a fabric; `None` while it is logged in to none.
    pub fabric: Option<FabricView>,
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

/// The fabric that our port is logged in to.
#[derive(Clone, Debug)]
pub struct FabricView {
    /// Fabric_Name.
    pub fabric_name: Wwn,
    /// The VLAN in the tags of our frames.
    pub vlan: Option<u16>,
    /// FCFs that were heard.
    pub fcfs: Vec<SeenFcf>,
    /// Whether the name server has told all ports that it shows us.
    pub is_whole: bool,
}

/// An FCF.
#[derive(Clone, Debug)]
pub struct SeenFcf {
    /// FCF-MAC.
    pub mac: Mac,
    /// Switch_Name.
    pub switch_name: Wwn,
    /// Fabric_Name.
    pub fabric_name: Wwn,
    /// The lower, the better.
    pub priority: u8,
    /// FKA_ADV_PERIOD.
    pub period: Duration,
    /// Whether our port is logged in there.
    pub is_selected: bool,
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
    /// The address of its ENode, of ours, and of others where there is no fabric.
    pub enode_mac: Option<Mac>,
    /// The address of its frames, of ours.
    pub vn_port_mac: Option<Mac>,
    /// What it calls itself in the name server.
    pub symbolic_name: Option<String>,
}

/// How long is waited for ports after our own has an address, and for it: a port that is there says
/// so within half a second, and logs in.
const LOOK: Duration = Duration::from_millis(1500);
const ADDRESS: Duration = Duration::from_secs(3);

/// The same in a fabric: VLAN discovery asks for 5 s before it goes without a VLAN.
const FABRIC: Duration = Duration::from_secs(10);

/// How long is waited for frames before the time is looked at.
const TURN: Duration = Duration::from_millis(50);

type LookingPort = BlockingPort<FcpInitiator<HeapLease>>;

/// Looks for ports, logs in to the targets among them, and asks them for their units.
///
/// # Errors
///
/// When the Ethernet port cannot be had. What single targets refuse is told with them.
pub fn look(portal: &FcoePortal) -> Result<FcoeDiscovery, OpenCause> {
    let terms = PortTerms {
        mode: portal.mode.port_mode(),
        tag: portal.mode.tag(),
        e_d_tov: None,
        further: portal.mode.npiv().places(),
        dcb: portal.mode.dcb(),
    };
    let port = look_around(&portal.place, terms)?;
    let fabric = fabric(port.n_port().port(), terms);
    let ports = seen(&port);
    let remotes = port.n_port().port().remotes();
    let mut up: Vec<_> = remotes.filter(|remote| remote.is_up()).collect();
    up.sort_by_key(|remote| remote.id());
    let up: Vec<Wwn> = up.into_iter().map(RemotePort::wwpn).collect();
    // Those that ask the targets use this port one after the other.
    let idle = IdlePorts::default();
    port.put(&idle, terms);
    let targets = up.into_iter();
    let targets = targets.map(|wwpn| target(portal, terms, wwpn, &idle));
    let targets = targets.collect();
    Ok(FcoeDiscovery {
        ports,
        fabric,
        targets,
        lost: leave((&portal.place, terms), &idle)?,
    })
}

/// A port that has had the time to find others and to log in to them.
fn look_around(place: &Place, terms: PortTerms) -> Result<LookingPort, OpenCause> {
    let site = terms.open(place, &PortOwner::Initiator);
    let site = site.map_err(RemoteError::Port)?;
    let initiator = FcpInitiator::new(FcpInitiatorConfig::default());
    let n_port = NPort::begin(site, initiator, Now::ZERO);
    let mut port = BlockingPort::new(n_port, Instant::now()).map_err(RemoteError::Ring)?;
    let patience = match terms.mode {
        PortMode::Vn2Vn(_) => ADDRESS,
        PortMode::Fabric(_) => FABRIC,
    };
    let until = Instant::now() + patience;
    while port.n_port().port().address().is_none() && Instant::now() < until {
        port.turn(TURN).map_err(RemoteError::Ring)?;
    }
    if let Some(obstacle) = port.n_port().blocking_problem() {
        let barred = LinkEnd::Fcoe(FcoeLinkEnd::Barred(obstacle));
        return Err(RemoteError::Session(barred).into());
    }
    let begun = Instant::now();
    while begun.elapsed() < patience_for_ports(&port) && !has_seen_all(&mut port) {
        port.turn(TURN).map_err(RemoteError::Ring)?;
    }
    Ok(port)
}

/// How long is waited for ports: a name server that is slow has its time to tell them.
fn patience_for_ports(port: &LookingPort) -> Duration {
    match port.n_port().port().walk_state() {
        NameWalkState::UnderWay => FABRIC,
        _ => LOOK,
    }
}

/// Whether the name server of a fabric has told all that it does, and all logins have got
/// somewhere. Without one there is no end of waiting for others.
fn has_seen_all(port: &mut LookingPort) -> bool {
    let now = port.now();
    let port = port.n_port_mut().port_mut();
    port.walk_names(now);
    let is_login_open = |remote: &RemotePort| {
        let is_target = remote.neighbour().target != Some(false);
        is_target && !remote.is_up()
    };
    let has_walked = matches!(
        port.walk_state(),
        NameWalkState::Whole | NameWalkState::Partial
    );
    has_walked && !port.remotes().any(is_login_open)
}

/// The fabric that a port is logged in to.
fn fabric(port: &Port<FcpInitiator<HeapLease>>, terms: PortTerms) -> Option<FabricView> {
    let enode = port.enode()?;
    let login = enode.login()?;
    let fcfs = enode.fcfs().iter().map(|fcf| SeenFcf {
        mac: fcf.mac,
        switch_name: fcf.switch_name,
        fabric_name: fcf.fabric_name,
        priority: fcf.priority,
        period: fcf.period,
        is_selected: fcf.mac == login.fcf,
    });
    Some(FabricView {
        fabric_name: login.fabric_name,
        vlan: enode.tag().or(terms.tag).map(|tag| tag.vid),
        fcfs: fcfs.collect(),
        is_whole: port.walk_state() == NameWalkState::Whole,
    })
}

/// Logs out: a target that is not told keeps us, until it misses us much later. Returns which
/// frames were lost meanwhile.
fn leave(
    (place, terms): (&Place, PortTerms),
    idle: &IdlePorts,
) -> Result<FrameLosses, RemoteError> {
    let Some(n_port) = idle.take::<HeapLease>(place, terms, Now::ZERO) else {
        return Ok(FrameLosses::default());
    };
    let mut port = BlockingPort::new(n_port, Instant::now()).map_err(RemoteError::Ring)?;
    port.leave().map_err(RemoteError::Ring)?;
    Ok(port.lost().unwrap_or_default())
}

/// Our own port, then the others by their names: those that we know, and those that only the name
/// server does.
fn seen(port: &LookingPort) -> Vec<DiscoveredPort> {
    let (names, port) = (port.n_port().names(), port.n_port().port());
    let address = port.address();
    let mut seen = vec![DiscoveredPort {
        ours: true,
        port_name: port.wwpn(),
        node_name: port.wwnn(),
        fc_id: address.map(|address| address.fc_id),
        max_frame: port.payload_max(),
        role: "FCP Initiator",
        state: address.map_or("Offline", |_| "Online"),
        enode_mac: Some(names.mac),
        vn_port_mac: address.map(|address| address.mac),
        symbolic_name: None,
    }];
    seen.extend(port.remotes().map(seen_as));
    for entry in port.walked() {
        let known = seen.iter_mut().find(|one| one.fc_id == Some(entry.fc_id));
        match known {
            Some(known) => known.learn(entry),
            None => seen.push(listed(entry)),
        }
    }
    seen[1..].sort_by_key(|seen| seen.port_name);
    seen
}

impl DiscoveredPort {
    /// Takes what the name server knows of a port beyond what we do. A port that we have no login
    /// with has not told its node.
    fn learn(&mut self, entry: &PortEntry) {
        self.symbolic_name = symbolic(entry);
        if self.node_name == Wwn::default() {
            self.node_name = entry.wwnn;
        }
    }
}

/// One that the name server alone knows.
fn listed(entry: &PortEntry) -> DiscoveredPort {
    DiscoveredPort {
        ours: false,
        port_name: entry.wwpn,
        node_name: entry.wwnn,
        fc_id: Some(entry.fc_id),
        max_frame: 0,
        role: "-",
        state: "not logged in",
        enode_mac: None,
        vn_port_mac: None,
        symbolic_name: symbolic(entry),
    }
}

fn symbolic(entry: &PortEntry) -> Option<String> {
    Some(entry.symbolic_port.to_string()).filter(|name| !name.is_empty())
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
        enode_mac: Some(neighbour.enode),
        vn_port_mac: None,
        symbolic_name: None,
    }
}

/// A target, and its units.
fn target(
    portal: &FcoePortal,
    terms: PortTerms,
    port_name: Wwn,
    idle: &IdlePorts,
) -> DiscoveredTarget {
    let place = &portal.place;
    let log_in = || {
        let target = TargetPortAddress {
            place: place.clone(),
            port_name,
            terms,
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
            options: FcoeOptions {
                mode: portal.mode,
                ..FcoeOptions::default()
            },
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

//! Lossless Ethernet under an N_Port: PFC for the priority of FCoE, as the network card has it
//! (dcbnl). A port that requires it has no link until it is in use; which agent of LLDP brings that
//! about does not matter.
//!
//! LLDP alone does not open the gate. What a neighbour announces is what it would do; whether this
//! end pauses is in its network card, which an agent sets once both agree. The other way round, a
//! card whose firmware is the agent lets no LLDPDU through to be heard here. So the card decides,
//! and LLDP is for telling what is missing.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use ::io::cpu;
use ::io::ether::dcb::{self, DcbApp, DcbError, DcbPfc, DcbUse, InterfaceDcb};
use ::io::ether::{PRIORITY, Place};
use fc::wire::ethernet;

use super::problems::SYSFS;
use crate::lldp::{self, Lldp, NeighbourNames};

/// Waits for PFC, for all ports of an ENode, until the last of them has dropped it.
#[derive(Clone, Debug)]
pub struct DcbGate(Arc<GateOwner>);

#[derive(Debug, Default)]
struct GateOwner(Arc<GateState>);

#[derive(Debug, Default)]
struct GateState {
    is_open: AtomicBool,
    /// The threads are to end: the port is gone, or PFC is in use.
    is_over: AtomicBool,
}

impl DcbGate {
    /// Whether PFC is in use.
    pub(super) fn is_open(&self) -> bool {
        self.0.0.is_open.load(Relaxed)
    }

    /// Waits at an interface.
    fn begin(interface: String, read: ReadCard) -> io::Result<Self> {
        let owner = GateOwner::default();
        let (poller, listener) = (Arc::clone(&owner.0), Arc::clone(&owner.0));
        let name = interface.clone();
        cpu::spawn_helper("dcb", move || poller.poll(&name, read))?;
        cpu::spawn_helper("dcb", move || listener.listen(&interface))?;
        Ok(Self(Arc::new(owner)))
    }
}

impl Drop for GateOwner {
    fn drop(&mut self) {
        self.0.is_over.store(true, Relaxed);
    }
}

impl GateState {
    /// Asks the card again and again.
    fn poll(&self, interface: &str, read: ReadCard) {
        while !self.is_over.load(Relaxed) {
            if read(interface).is_ok_and(|card| has_pfc(&card)) {
                tracing::info!("{interface}: PFC is in use for priority {PRIORITY}");
                self.is_open.store(true, Relaxed);
                self.is_over.store(true, Relaxed);
            }
            thread::sleep(POLL);
        }
    }

    /// Tells what is in the way, as far as LLDP shows it: once, until it is something else.
    fn listen(&self, interface: &str) {
        let place = Place::Interface(interface.to_owned());
        let mut told = None;
        while !self.is_over.load(Relaxed) {
            let problem = match lldp::listen(&place, LLDP_PERIOD, &self.is_over) {
                Ok(view) => missing(&view.agent),
                Err(cause) => {
                    tracing::warn!("{interface}: cannot listen to LLDP: {cause}");
                    return;
                }
            };
            if let Some(problem) = problem.filter(|_| !self.is_over.load(Relaxed))
                && told.as_ref() != Some(&problem)
            {
                tracing::warn!("{interface}: still waits for PFC (dcb=required): {problem}");
                told = Some(problem);
            }
        }
    }
}

/// Why the link is not lossless as far as LLDP shows it, with the neighbours that were heard.
fn missing(agent: &Lldp) -> Option<String> {
    let problem = agent.dcbx().lossless().err()?;
    Some(match agent.neighbours() {
        [] => problem.to_string(),
        all => format!("{}: {problem}", NeighbourNames(all)),
    })
}

/// Asks for what a card has.
type ReadCard = fn(&str) -> Result<InterfaceDcb, DcbError>;

/// Makes of DCB at a place what is asked for. What is to be waited for is given back.
pub(super) fn make_use(place: &Place, what: DcbUse) -> Result<Option<DcbGate>, DcbError> {
    let Some(interface) = place.interface().filter(|_| what != DcbUse::Off) else {
        return Ok(None);
    };
    let interface = carrier(Path::new(SYSFS), interface);
    let card = dcb::read(&interface)?;
    if what == DcbUse::Apply {
        if dcb::apply(&interface, &wanted(&card))? {
            tracing::info!("{interface}: PFC and FCoE are set for priority {PRIORITY} (dcb=apply)");
        }
        return Ok(None);
    }
    if has_pfc(&card) {
        return Ok(None);
    }
    tracing::warn!(
        "{interface}: waits for PFC of priority {PRIORITY} (dcb=required), which the NIC has off: \
         an agent of LLDP sets it (lldpad, lldpd, or the NIC's own), or dcb=apply does"
    );
    let failed = |cause| DcbError::Io(interface.clone(), cause);
    DcbGate::begin(interface.clone(), dcb::read)
        .map(Some)
        .map_err(failed)
}

/// Whether a card has PFC on for the priority of FCoE.
fn has_pfc(card: &InterfaceDcb) -> bool {
    card.pfc.is_some_and(|pfc| pfc.enabled & FCOE_BIT != 0)
}

/// What a card is to have besides what it has.
fn wanted(card: &InterfaceDcb) -> InterfaceDcb {
    let pfc = card.pfc.unwrap_or_default();
    let app = |protocol| DcbApp {
        selector: ETHERTYPE,
        priority: PRIORITY as u8,
        protocol,
    };
    InterfaceDcb {
        pfc: Some(DcbPfc {
            enabled: pfc.enabled | FCOE_BIT,
            ..pfc
        }),
        apps: [ethernet::FCOE, ethernet::FIP].map(app).to_vec(),
        ..InterfaceDcb::default()
    }
}

/// The interface whose card it is: that below a VLAN's.
pub(super) fn carrier(sysfs: &Path, interface: &str) -> String {
    let folder = sysfs.join("class/net").join(interface);
    let kind = fs::read_to_string(folder.join("uevent")).unwrap_or_default();
    let is_vlan = kind.lines().any(|line| line == "DEVTYPE=vlan");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut lower = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_prefix("lower_").map(str::to_owned)
    });
    let below = lower.next().filter(|_| is_vlan);
    below.unwrap_or_else(|| interface.to_owned())
}

/// The bit of the priority of FCoE.
const FCOE_BIT: u8 = 1 << PRIORITY;

/// Selector of an EtherType in an entry of APP (IEEE 802.1Q).
const ETHERTYPE: u8 = 1;

/// Between two looks at the card.
const POLL: Duration = Duration::from_secs(1);

/// LLDPDUs come each 30 s.
const LLDP_PERIOD: Duration = Duration::from_secs(35);

#[cfg(test)]
mod tests;

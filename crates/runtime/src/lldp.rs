//! LLDP at an Ethernet port of this machine: who is at the other end of the link, and what DCBX
//! comes to, with the network card's own settings of DCB on our side.

#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ::io::ether::dcb::{self, DcbError};
use ::io::ether::{EtherOpenError, EtherOptions, EtherPort, Place};
use fc::wire::ethernet::VlanTag;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use scsi::violation::Violation;

pub use ::io::ether::LinkStatus;
pub use ::io::ether::dcb::{DcbApp, DcbPfc, InterfaceDcb};
pub use fc::lldp::{
    Agreement, DcbProblem, DcbSettings, Dcbx, Dialect, Lldp, LldpConfig, LldpEvent, LldpMode,
    LldpNeighbour, NeighbourNames,
};
pub use fc::wire::ethernet::{EthernetHeader, LLDP, Mac};
pub use fc::wire::lldp::cee::{self, CeeDcb};
pub use fc::wire::lldp::ieee::{self, App, EtsTable, IeeeDcb};

/// What was heard at a port.
#[derive(Debug)]
pub struct LldpView {
    /// The address of the port.
    pub mac: Mac,
    /// For how long it was listened to.
    pub listened: Duration,
    /// How its link was at the end.
    pub link: LinkStatus,
    /// What its card has of DCB, if it has any.
    pub card: Option<InterfaceDcb>,
    /// The agent, with the neighbours and what DCBX comes to.
    pub agent: Lldp,
    /// Rules that were broken, each once.
    pub violations: Vec<Violation>,
}

/// Why nothing can be heard.
#[derive(Debug, thiserror::Error)]
pub enum NoLldp {
    /// The Ethernet port cannot be had.
    #[error(transparent)]
    Port(#[from] EtherOpenError),
    /// It is the interface of a VLAN.
    #[error("{0} is the interface of a VLAN, where LLDP is not sent: name the one below it")]
    Vlan(String),
    /// What the card has cannot be read.
    #[error(transparent)]
    Dcb(#[from] DcbError),
    /// Anything else.
    #[error("{0}: {1}")]
    Io(Place, #[source] io::Error),
}

/// Listens at a port for as long as this, or until `stop` is set. Nothing is sent. An end of a
/// cable is taken meanwhile; at an interface others go on to receive what they do.
///
/// # Errors
///
/// See [`NoLldp`].
pub fn listen(place: &Place, time: Duration, stop: &AtomicBool) -> Result<LldpView, NoLldp> {
    let failed = |cause| NoLldp::Io(place.clone(), cause);
    // The kernel keeps LLDP where a port takes frames by XDP.
    let place = &match place.interface() {
        Some(name) => Place::Interface(name.to_owned()),
        None => place.clone(),
    };
    let mut port = EtherPort::open(place, &OPTIONS)?;
    if port.tag_priority().is_some() {
        return Err(NoLldp::Vlan(place.to_string()));
    }
    for group in Lldp::groups() {
        port.join(group.0).map_err(failed)?;
    }
    let card = card(place)?;
    let mut view = LldpView::new(place, &port, card);
    let begin = Instant::now();
    loop {
        // What has come before it was over is heard.
        let is_over = stop.load(Relaxed) || begin.elapsed() >= time;
        view.listened = begin.elapsed();
        view.hear(&mut port).map_err(failed)?;
        if is_over {
            return Ok(view);
        }
        wait(&port, TURN.min(time.saturating_sub(begin.elapsed()))).map_err(failed)?;
    }
}

/// What the card at a place has of DCB.
fn card(place: &Place) -> Result<Option<InterfaceDcb>, DcbError> {
    let Some(name) = place.interface() else {
        return Ok(None);
    };
    match dcb::read(name) {
        Ok(told) => Ok(Some(told)),
        Err(DcbError::Unsupported(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The settings of a card as an agent tells them.
#[must_use]
pub fn settings(card: &InterfaceDcb) -> DcbSettings {
    let ets = card.ets.unwrap_or_default();
    let pfc = card.pfc.unwrap_or_default();
    let apps = card.apps.iter().map(|app| App {
        selector: app.selector,
        protocol: app.protocol,
        priority: app.priority,
    });
    DcbSettings {
        willing: ets.willing,
        classes_max: ets.classes_max,
        table: EtsTable {
            classes: ets.classes,
            bandwidth: ets.bandwidth,
            algorithms: ets.algorithms,
        },
        pfc_max: pfc.classes_max,
        pfc: pfc.enabled,
        apps: apps.collect(),
    }
}

impl LldpView {
    fn new(place: &Place, port: &EtherPort, card: Option<InterfaceDcb>) -> Self {
        let mac = Mac(port.mac());
        let config = LldpConfig {
            mode: LldpMode::Listen,
            mac,
            port_id: place.to_string(),
            port_description: String::new(),
            system_name: String::new(),
            system_description: String::new(),
            dcb: card.as_ref().map(settings),
        };
        let mut agent = Lldp::new(config, Duration::ZERO);
        agent.link(Duration::ZERO, port.link().up);
        Self {
            mac,
            listened: Duration::ZERO,
            link: port.link(),
            card,
            agent,
            violations: Vec::new(),
        }
    }

    /// Takes what has come in.
    fn hear(&mut self, port: &mut EtherPort) -> io::Result<()> {
        let now = self.listened;
        self.agent.expire(now);
        self.take_some(|view| port.receive(|frame, tag| view.take(now, frame, tag)));
        if let Some(link) = port.news()? {
            self.link = link;
            self.agent.link(now, link.up);
        }
        Ok(())
    }

    /// Receives until there is nothing more, or for a while: a neighbour that sends faster than it
    /// is heard does not keep this from ending.
    fn take_some(&mut self, mut receive: impl FnMut(&mut Self) -> usize) {
        for _ in 0..BATCHES {
            if receive(self) == 0 {
                return;
            }
        }
    }

    fn take(&mut self, now: Duration, frame: &[u8], tag: Option<u16>) {
        let tag = tag.map(VlanTag::decode);
        let Ok((header, payload)) = EthernetHeader::parse_received(frame, tag) else {
            return;
        };
        if header.ethertype != LLDP {
            return;
        }
        if let Err(violation) = self.agent.receive(now, &header, payload)
            && !self.violations.contains(&violation)
        {
            self.violations.push(violation);
        }
    }
}

/// Until there is something to receive, or for as long as this.
fn wait(port: &EtherPort, time: Duration) -> io::Result<()> {
    let mut list = [PollFd::new(&**port.waited(), PollFlags::IN)];
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut list, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// LLDPDUs are as long as the least MTU allows, and few.
const OPTIONS: EtherOptions = EtherOptions {
    payload_max: 1500,
    ring: 256 << 10,
};

/// Batches of frames that are received before it is looked whether to stop: as many as the ring has
/// room for.
const BATCHES: usize = 16;

/// How long is waited before it is looked whether to stop.
const TURN: Duration = Duration::from_millis(100);

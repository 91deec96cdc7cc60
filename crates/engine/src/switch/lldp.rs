//! LLDP at the ports of a switch: it tells its neighbours that the link is to carry FCoE without
//! loss, and tells the log what comes of that.

use std::io;

use ::io::ether::{PRIORITY, Place};
use fc::frames::FrameSink;
use fc::lldp::{DcbProblem, DcbSettings, Lldp, LldpConfig, LldpEvent, NeighbourNames};
use fc::wire::ethernet::{EthernetHeader, LLDP, Mac, VlanTag};
use runtime::n_port::FcfAttachment;
use scsi::medium::Now;
use scsi::violation::Violation;

use super::login_log::LoginLog;
use super::options::LldpMode;

/// The agents of all ports.
#[derive(Debug)]
pub(super) struct LldpAgents {
    agents: Vec<Option<Lldp>>,
    /// Neighbours can come and go as often as they like.
    lines: LoginLog,
}

impl LldpAgents {
    /// Agents for ports that are numbered as these, with their links as they are, which receive
    /// LLDP from now on.
    ///
    /// # Errors
    /// When a port cannot receive it.
    pub(super) fn start(mode: LldpMode, attachments: &mut [FcfAttachment]) -> io::Result<Self> {
        let ports = attachments.len();
        let agents = attachments.iter_mut().map(|port| start(mode, port));
        Ok(Self {
            agents: agents.collect::<io::Result<_>>()?,
            lines: LoginLog::new(ports),
        })
    }

    /// For as many ports, none of which has LLDP.
    #[cfg(test)]
    pub(super) fn none(ports: usize) -> Self {
        Self {
            agents: (0..ports).map(|_| None).collect(),
            lines: LoginLog::new(ports),
        }
    }

    /// Whether a frame is for the agents.
    pub(super) fn takes(frame: &[u8]) -> bool {
        frame.get(ETHERTYPE..ETHERTYPE + 2) == Some(&LLDP.to_be_bytes())
    }

    /// Takes a frame that came in at a port.
    pub(super) fn receive(
        &mut self,
        now: Now,
        at: usize,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Result<(), (Mac, Violation)> {
        let parsed = EthernetHeader::parse_received(frame, tag);
        let (Some(agent), Ok((header, payload))) = (&mut self.agents[at], parsed) else {
            return Ok(());
        };
        let taken = agent.receive(now, &header, payload);
        taken.map_err(|violation| (header.src, violation))
    }

    /// The link of a port came up or went down.
    pub(super) fn link(&mut self, now: Now, at: usize, is_up: bool) {
        if let Some(agent) = &mut self.agents[at] {
            agent.link(now, is_up);
        }
    }

    /// Writes what is to be sent at a port.
    pub(super) fn transmit(&mut self, at: usize, out: &mut impl FrameSink) {
        if let Some(agent) = &mut self.agents[at] {
            agent.transmit(out);
        }
    }

    /// When [`Self::expire`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Now> {
        let agents = self.agents.iter().flatten();
        agents.filter_map(Lldp::next_deadline).min()
    }

    /// Does what is due.
    pub(super) fn expire(&mut self, now: Now) {
        let agents = self.agents.iter_mut().flatten();
        let due = agents.filter(|agent| agent.next_deadline().is_some_and(|at| at <= now));
        due.for_each(|agent| agent.expire(now));
    }

    /// Has each agent tell its neighbours that it ends.
    pub(super) fn shut_down(&mut self, now: Now) {
        for agent in self.agents.iter_mut().flatten() {
            agent.shut_down(now);
        }
    }

    /// Tells the log what came of DCBX, at the ports where that has changed.
    pub(super) fn tell_changes(&mut self, now: Now) {
        for (at, agent) in self.agents.iter_mut().enumerate() {
            let Some(agent) = agent else {
                continue;
            };
            while let Some(event) = agent.poll() {
                if event == LldpEvent::Dcbx && self.lines.tells(at) {
                    tell(agent);
                }
            }
        }
        if self.lines.is_due(now) {
            self.lines.sweep(now);
        }
    }

    /// Tells the log how it is at each port.
    pub(super) fn tell_all(&self) {
        self.agents.iter().flatten().for_each(tell);
    }
}

/// An agent for a port, unless there can be none.
fn start(mode: LldpMode, port: &mut FcfAttachment) -> io::Result<Option<Lldp>> {
    if mode == LldpMode::Off {
        return Ok(None);
    }
    if let Some(cause) = obstacle(port) {
        tracing::info!("{}: no LLDP here: {cause}", port.place);
        return Ok(None);
    }
    for group in Lldp::groups() {
        port.ether.join(group.0)?;
    }
    let mut agent = Lldp::new(config(mode, port), Now::ZERO);
    agent.link(Now::ZERO, port.is_usable());
    Ok(Some(agent))
}

fn obstacle(port: &FcfAttachment) -> Option<&'static str> {
    match port.place {
        Place::Xdp(_) => Some("the kernel keeps LLDP where frames are taken by XDP"),
        _ if port.ether.tag_priority().is_some() => {
            Some("it is the interface of a VLAN, and LLDP carries no tag")
        }
        _ => None,
    }
}

/// A switch is not willing: it is for ENodes to take what it has (IEEE 802.1Q, DCBX).
fn config(mode: LldpMode, port: &FcfAttachment) -> LldpConfig {
    let uname = rustix::system::uname();
    LldpConfig {
        mode,
        mac: Mac(port.ether.mac()),
        port_id: port.place.to_string(),
        port_description: format!("port {} of a Fibre Channel switch", port.place),
        system_name: uname.nodename().to_string_lossy().into_owned(),
        system_description: concat!("lunar switch ", env!("CARGO_PKG_VERSION")).to_owned(),
        dcb: Some(DcbSettings::fcoe(PRIORITY as u8, false)),
    }
}

/// What came of DCBX. Most Ethernets in front of a switch in software have no DCBX, so only what
/// somebody has set up, and does not work, is a warning.
fn tell(agent: &Lldp) {
    let place = &agent.config().port_id;
    // Most programs at the other end of a cable have no LLDP.
    if agent.neighbours().is_empty() && place.starts_with("cable:") {
        return;
    }
    let neighbours = NeighbourNames(agent.neighbours());
    match agent.dcbx().lossless() {
        Ok(priority) => tracing::info!(
            "{place}: LLDP: {neighbours}: FCoE has priority {priority} with PFC at both ends"
        ),
        Err(problem @ (DcbProblem::NoNeighbour | DcbProblem::NotSpoken)) => {
            tracing::info!("{place}: LLDP: {neighbours}: {problem}");
        }
        Err(problem) => tracing::warn!("{place}: LLDP: {neighbours}: {problem}"),
    }
}

/// Where the EtherType stands in a frame without a tag; LLDP carries none.
const ETHERTYPE: usize = 12;

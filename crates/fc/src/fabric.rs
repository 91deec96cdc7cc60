//! A fabric in one switch: an FCF (FC-BB-6) at each of its ports, and the forwarding of FCoE frames
//! between the VN_Ports that are logged in.
//!
//! Whole Ethernet frames go in by [`Switch::receive`], which tells what becomes of each: the switch
//! takes it, it is dropped, or it goes out at a port. What the switch itself has to say comes out
//! of [`Switch::transmit`].
//!
//! | module | what it is |
//! |---|---|
//! | `fcf` | FIP: discovery, logins, keep alives, and the standby |
//! | `login`, `ids` | logins to the fabric and their N_Port_IDs |
//! | [`zones`] | which ports see each other |
//! | [`servers`] | what stands behind the well-known addresses |
//! | [`ForwardTable`] | which frames are forwarded, and how |
//!
//! A core that only forwards has a snapshot of the table, [`Switch::forwarding`], and counts by
//! itself in [`PortCounters`]. What that table does not forward goes to the core of the switch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;

use crate::frames::FrameSink;
use crate::wire::els::{Code, LinkErrors};
use crate::wire::ethernet::{self, EthernetHeader, Mac, VlanTag};
use crate::wire::fcoe;
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

mod config;
mod counts;
mod event;
mod fcf;
mod forward;
mod ids;
mod login;
mod outgoing;
pub mod servers;
#[cfg(test)]
mod tests;
mod verdict;
pub mod zones;

pub use config::{PortNumber, SwitchConfig, SwitchPortConfig};
pub use event::{LogoutReason, RejectedLogin, SwitchEvent, SwitchLogin};
pub use fcf::FcfStatistics;
pub use forward::ForwardTable;
pub use verdict::{DropReason, Forwarding, PairDrops, PortCounters, UndeliveredFrame, Verdict};

use fcf::Fcf;
use outgoing::OutgoingFrames;
use servers::{PortLogin, PortView, Servers, ServersConfig, ServersEvent};
use zones::Zones;

/// A switch.
#[derive(Debug)]
pub struct Switch {
    ports: BTreeMap<PortNumber, SwitchPort>,
    next_port: u16,
    fcf: Fcf,
    servers: Servers,
    zones: Arc<Zones>,
    table: Arc<ForwardTable>,
    events: VecDeque<SwitchEvent>,
}

/// What the switch knows of a port besides FIP.
#[derive(Debug)]
struct SwitchPort {
    config: SwitchPortConfig,
    counters: PortCounters,
    outgoing: OutgoingFrames,
    /// An FLOGI without FIP was told of.
    point_to_point: bool,
    /// What its carrier has counted.
    carrier_errors: LinkErrors,
}

impl Switch {
    /// A switch without ports. `random` are fresh random bytes; the lots it draws come of them.
    #[must_use]
    pub fn new(config: &SwitchConfig, now: Now, random: [u8; 8]) -> Self {
        let fcf = Fcf::new(config, now, random);
        Self {
            ports: BTreeMap::new(),
            next_port: 0,
            servers: servers_of(&fcf),
            fcf,
            zones: Arc::clone(&config.zones),
            table: Arc::new(ForwardTable::new(config.fc_map, Arc::clone(&config.zones))),
            events: VecDeque::new(),
        }
    }

    /// The groups that each Ethernet port has to receive, besides its FCF-MAC.
    #[must_use]
    pub const fn groups() -> [Mac; 2] {
        [Mac::ALL_FCF, Mac::ALL_ENODE]
    }

    /// Adds a port, whose link is down. The first one gives the switch its names, if they were not
    /// given before.
    pub fn add_port(&mut self, config: SwitchPortConfig) -> PortNumber {
        let number = PortNumber(self.next_port);
        self.next_port += 1;
        Arc::make_mut(&mut self.table).set_place(number, Some(&config));
        let port = SwitchPort {
            config: config.clone(),
            counters: PortCounters::default(),
            outgoing: OutgoingFrames::default(),
            point_to_point: false,
            carrier_errors: LinkErrors::default(),
        };
        self.ports.insert(number, port);
        self.fcf.add_port(number, config);
        if number == PortNumber(0) {
            // It has its names only now.
            self.servers = servers_of(&self.fcf);
            let zones = Arc::clone(&self.zones);
            self.servers.set_zones(self.fcf.now(), zones);
        }
        number
    }

    /// Takes a port away. Its number is not given again.
    pub fn remove_port(&mut self, now: Now, number: PortNumber) {
        self.fcf.remove_port(now, number);
        Arc::make_mut(&mut self.table).set_place(number, None);
        self.ports.remove(&number);
        self.settle();
    }

    /// The link of a port came up or went down.
    pub fn link(&mut self, now: Now, number: PortNumber, up: bool) {
        self.fcf.link(now, number, up);
        self.settle();
        if let Some(port) = self.ports.get_mut(&number).filter(|_| !up) {
            port.outgoing = OutgoingFrames::default();
        }
    }

    /// The MTU of a port is another one. Where it is smaller the VN_Ports there have to log in
    /// anew, with shorter frames; others that still send them longer ones lose these.
    pub fn resize(&mut self, now: Now, number: PortNumber, mtu: usize) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.config.mtu = mtu;
            Arc::make_mut(&mut self.table).set_place(number, Some(&port.config));
            self.fcf.resize(now, number, mtu);
            self.settle();
        }
    }

    /// What another switch has remembered in place of this one, as [`SwitchConfig::ids`]: for a
    /// standby that takes over. Ports that are logged in keep their N_Port_IDs; of the list only
    /// what collides with these is passed over.
    pub fn restore_ids(&mut self, ids: &[(Wwn, FcId)]) {
        self.fcf.restore_ids(ids);
    }

    /// Takes an Ethernet frame that came in at a port, and counts it.
    pub fn receive(&mut self, now: Now, number: PortNumber, frame: &[u8]) -> Verdict {
        self.receive_tagged(now, number, frame, None)
    }

    /// As [`Self::receive`], where `tag` is one that the kernel has taken out of the frame.
    pub fn receive_tagged(
        &mut self,
        now: Now,
        number: PortNumber,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Verdict {
        let mut verdict = self.table.forward_tagged(number, frame, tag);
        match verdict {
            Verdict::Taken => {
                if let Err(reason) = self.take(now, number, frame, tag) {
                    verdict = Verdict::Dropped(reason);
                }
            }
            Verdict::Dropped(reason) => self.dropped(now, number, reason, frame),
            Verdict::Forward(_) => {}
        }
        if let Some(port) = self.ports.get_mut(&number) {
            port.counters.count(&verdict, frame);
        }
        verdict
    }

    fn take(
        &mut self,
        now: Now,
        number: PortNumber,
        frame: &[u8],
        tag: Option<VlanTag>,
    ) -> Result<(), DropReason> {
        let (header, payload) = forward::parse(frame, tag)?;
        if header.ethertype == ethernet::FIP {
            let taken = self.fcf.receive(now, number, &header, payload);
            if let Err(violation) = taken {
                self.fcf.remark(number, header.src, violation);
            }
        } else {
            self.fcf.tick(now);
            self.servers
                .set_link_errors(number, self.link_errors(number));
            self.servers.receive(now, &fcoe::decode(payload)?);
        }
        self.settle();
        Ok(())
    }

    /// Another core has dropped a frame and counted it. Its sender or the log may have to be told.
    pub fn heed_drop(&mut self, now: Now, number: PortNumber, reason: DropReason, frame: &[u8]) {
        self.fcf.tick(now);
        self.dropped(now, number, reason, frame);
    }

    /// What is done about some of the frames that are dropped.
    fn dropped(&mut self, now: Now, number: PortNumber, reason: DropReason, frame: &[u8]) {
        let (Ok((header, _)), Some(port)) =
            (EthernetHeader::parse(frame), self.ports.get_mut(&number))
        else {
            return;
        };
        match reason {
            DropReason::NotLoggedIn => {
                if let Some((s_id, _)) = forward::pair(frame) {
                    self.fcf.stray(now, number, header.src, s_id);
                }
            }
            DropReason::PointToPoint if !port.point_to_point => {
                port.point_to_point = true;
                self.fcf.remark(number, header.src, POINT_TO_POINT);
                self.settle();
            }
            _ => {}
        }
    }

    /// Whether a frame that came in then, and has waited at its egress, may leave, by the table of
    /// this moment ([`ForwardTable::still_allows`]).
    ///
    /// # Errors
    /// Why it may not.
    pub fn still_allows(
        &self,
        egress: PortNumber,
        ids: (FcId, FcId),
        came_in: Now,
    ) -> Result<(), DropReason> {
        self.table.still_allows(egress, ids, came_in)
    }

    /// Writes what the switch itself has to say at a port, as far as there is room.
    pub fn transmit(&mut self, number: PortNumber, out: &mut impl FrameSink) {
        let Some(port) = self.ports.get_mut(&number) else {
            return;
        };
        if self.fcf.transmit(number, out) {
            port.outgoing.write(out);
        }
    }

    /// The zones are others, at once. Pairs that share one before and after do not notice.
    pub fn set_zones(&mut self, now: Now, zones: Arc<Zones>) {
        self.fcf.tick(now);
        self.zones = Arc::clone(&zones);
        let logins = self.fcf.logins().iter();
        Arc::make_mut(&mut self.table).set_zones(Arc::clone(&zones), logins);
        self.servers.set_zones(self.fcf.now(), zones);
        self.settle();
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<SwitchEvent> {
        self.events.pop_front()
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        if self.fcf.has_ended() {
            return None;
        }
        let all = [self.fcf.next_deadline(), self.servers.next_deadline()];
        all.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.fcf.expire(now);
        self.servers.expire(self.fcf.now());
        self.settle();
    }

    /// Ends all logins and tells their ENodes; a standby is told first. What is then to be sent is
    /// the last. The switch hears nothing any more.
    pub fn shut_down(&mut self, now: Now) {
        self.fcf.shut_down(now);
        self.settle();
    }

    /// The table by which frames are forwarded, as it is now. It is another one after each login,
    /// logout, change of zones or of ports.
    #[must_use]
    pub fn forwarding(&self) -> Arc<ForwardTable> {
        Arc::clone(&self.table)
    }

    /// For how long a frame may wait in the switch (FC-FS, E_D_TOV).
    pub const E_D_TOV: Duration = Duration::from_millis(fcf::E_D_TOV_MS as u64);

    /// Switch_Name, once there is a port.
    #[must_use]
    pub const fn switch_name(&self) -> Wwn {
        self.fcf.switch_name()
    }

    /// Fabric_Name, once there is a port.
    #[must_use]
    pub const fn fabric_name(&self) -> Wwn {
        self.fcf.fabric_name()
    }

    /// Whether it accepts logins: it is no standby, and has not been shut down.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.fcf.is_active()
    }

    /// The VN_Ports that are logged in, by N_Port_ID.
    pub fn logins(&self) -> impl Iterator<Item = &SwitchLogin> {
        self.fcf.logins().iter()
    }

    /// What the services know of the VN_Ports that are logged in, by N_Port_ID.
    pub fn registered(&self) -> impl Iterator<Item = PortView<'_>> {
        self.servers.ports()
    }

    /// All N_Port_IDs that are remembered, by WWPN: what [`SwitchConfig::ids`] takes.
    pub fn ids(&self) -> impl Iterator<Item = (Wwn, FcId)> {
        self.fcf.ids().iter()
    }

    /// Follows what FIP and the services have told, until neither has more. What the services have
    /// to send goes before the end of the login that they send it to.
    fn settle(&mut self) {
        loop {
            self.collect();
            if let Some(event) = self.servers.poll() {
                self.served(event);
            } else if let Some(event) = self.fcf.poll() {
                self.follow(&event);
                self.events.push_back(event);
            } else {
                return;
            }
        }
    }

    fn follow(&mut self, event: &SwitchEvent) {
        let now = self.fcf.now();
        match event {
            SwitchEvent::LoggedIn(login) => {
                Arc::make_mut(&mut self.table).insert(login, now);
                let f_port_name = self.fcf.f_port_name(login.port);
                self.servers
                    .logged_in(now, served_login(login, f_port_name));
            }
            SwitchEvent::LoggedOut(login, _) => {
                Arc::make_mut(&mut self.table).remove(login.fc_id);
                self.servers.logged_out(now, login.fc_id);
            }
            _ => {}
        }
    }

    fn served(&mut self, event: ServersEvent) {
        match event {
            ServersEvent::LoggedOut(fc_id) => {
                self.fcf.end(fc_id, LogoutReason::LoggedOut);
            }
            ServersEvent::LoginRejected(from, reason) => {
                let login = self.fcf.logins().get(from).cloned();
                if let Some(login) = login {
                    self.fcf.tell_rejected(login.port, |place| RejectedLogin {
                        place,
                        from: login.mac,
                        request: Code::PLOGI,
                        wwpn: Some(login.wwpn),
                        reason,
                    });
                }
            }
            ServersEvent::Remark { from, violation } => {
                let login = self.fcf.logins().get(from);
                if let Some((port, mac)) = login.map(|login| (login.port, login.mac)) {
                    self.fcf.remark(port, mac, violation);
                }
            }
        }
    }

    /// Gives the frames of the services to the ports where they go out.
    fn collect(&mut self) {
        while let Some(frame) = self.servers.transmit() {
            let login = self.fcf.logins().get(frame.header.d_id);
            let port = login.and_then(|login| Some((login, self.ports.get_mut(&login.port)?)));
            if let Some((login, port)) = port {
                port.outgoing.push(&port.config, login.mac, frame);
            }
        }
    }
}

fn servers_of(fcf: &Fcf) -> Servers {
    let ms = |ms: u32| Duration::from_millis(ms.into());
    Servers::new(ServersConfig {
        switch_name: fcf.switch_name(),
        fabric_name: fcf.fabric_name(),
        e_d_tov: ms(fcf::E_D_TOV_MS),
        r_a_tov: ms(fcf::R_A_TOV_MS),
    })
}

fn served_login(login: &SwitchLogin, f_port_name: Wwn) -> PortLogin {
    PortLogin {
        fc_id: login.fc_id,
        wwpn: login.wwpn,
        wwnn: login.wwnn,
        f_port_name,
        port: login.port,
        place: Arc::clone(&login.place),
        enode: login.enode,
        max_payload: login.max_payload,
    }
}

const POINT_TO_POINT: Violation = Violation {
    rule: "an FLOGI without FIP: a Linux kernel that has not heard an FCF for 8 s, and may now be \
           in point-to-point mode with another until its link goes down and up",
    clause: "FC-BB-6, FIP",
};

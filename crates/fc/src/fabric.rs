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
//! | `login`, `ids` | who is logged in, and with which N_Port_ID |
//! | [`zones`] | who sees whom |
//! | [`ForwardTable`] | which frames are forwarded, and how |
//!
//! A core that only forwards has a snapshot of the table, [`Switch::forwarding`], and counts by
//! itself in [`PortCounters`]. What that table does not forward goes to the core of the switch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use scsi::medium::Now;

use crate::frames::FrameSink;
use crate::wire::ethernet::{self, EthernetHeader, Mac};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

mod config;
mod event;
mod fcf;
mod forward;
mod ids;
mod login;
pub mod servers;
#[cfg(test)]
mod tests;
mod verdict;
pub mod zones;

pub use config::{PortNumber, SwitchConfig, SwitchPortConfig};
pub use event::{FabricLogin, LogoutReason, SwitchEvent};
pub use fcf::FcfStatistics;
pub use forward::ForwardTable;
pub use verdict::{DropReason, Forwarding, PairDrops, PortCounters, Verdict};

use fcf::Fcf;
use zones::Zones;

/// A switch.
#[derive(Debug)]
pub struct Switch {
    ports: BTreeMap<PortNumber, SwitchPort>,
    next_port: u16,
    fcf: Fcf,
    table: Arc<ForwardTable>,
    events: VecDeque<SwitchEvent>,
}

/// What the switch knows of a port besides FIP.
#[derive(Debug)]
struct SwitchPort {
    place: Arc<str>,
    counters: PortCounters,
    /// An FLOGI without FIP was told of.
    point_to_point: bool,
}

impl Switch {
    /// A switch without ports. `random` are fresh random bytes; the lots it draws come of them.
    #[must_use]
    pub fn new(config: &SwitchConfig, now: Now, random: [u8; 8]) -> Self {
        Self {
            ports: BTreeMap::new(),
            next_port: 0,
            fcf: Fcf::new(config, now, random),
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
            place: Arc::clone(&config.place),
            counters: PortCounters::default(),
            point_to_point: false,
        };
        self.ports.insert(number, port);
        self.fcf.add_port(number, config);
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
    }

    /// Takes an Ethernet frame that came in at a port, and counts it. One that goes out is
    /// rewritten in place.
    pub fn receive(&mut self, now: Now, number: PortNumber, frame: &mut [u8]) -> Verdict {
        let verdict = self.table.forward(number, frame);
        match verdict {
            Verdict::Taken => self.take(now, number, frame),
            Verdict::Dropped(reason) => self.dropped(now, number, reason, frame),
            Verdict::Forward(_) => {}
        }
        if let Some(port) = self.ports.get_mut(&number) {
            port.counters.count(&verdict, frame);
        }
        verdict
    }

    fn take(&mut self, now: Now, number: PortNumber, frame: &[u8]) {
        let Ok((header, payload)) = EthernetHeader::parse(frame) else {
            return;
        };
        if header.ethertype == ethernet::FIP {
            let taken = self.fcf.receive(now, number, &header, payload);
            if let Err(violation) = taken {
                self.fcf.remark(number, header.src, violation);
            }
        }
        self.settle();
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

    /// A frame found no room at its egress after all. `frame` is what was to go out.
    pub fn count_congested(&mut self, ingress: PortNumber, frame: &[u8]) {
        if let Some(port) = self.ports.get_mut(&ingress) {
            port.counters.count_congested(frame);
        }
    }

    /// Writes what the switch itself has to say at a port, as far as there is room.
    pub fn transmit(&mut self, number: PortNumber, out: &mut impl FrameSink) {
        self.fcf.transmit(number, out);
    }

    /// The zones are others, at once. Pairs that share one before and after do not notice.
    pub fn set_zones(&mut self, now: Now, zones: Arc<Zones>) {
        self.fcf.tick(now);
        let logins = self.fcf.logins().iter();
        Arc::make_mut(&mut self.table).set_zones(zones, logins);
    }

    /// What happened next.
    pub fn poll(&mut self) -> Option<SwitchEvent> {
        self.events.pop_front()
    }

    /// When [`Self::expire`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        self.fcf.next_deadline()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.fcf.expire(now);
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
    pub fn logins(&self) -> impl Iterator<Item = &FabricLogin> {
        self.fcf.logins().iter()
    }

    /// All N_Port_IDs that are remembered, by WWPN: what [`SwitchConfig::ids`] takes.
    pub fn ids(&self) -> impl Iterator<Item = (Wwn, FcId)> {
        self.fcf.ids().iter()
    }

    /// What came in at each port, by the counts of [`Self::receive`].
    pub fn counters(&self) -> impl Iterator<Item = (PortNumber, &str, &PortCounters)> {
        let ports = self.ports.iter();
        ports.map(|(number, port)| (*number, &*port.place, &port.counters))
    }

    /// What was counted of FIP.
    #[must_use]
    pub const fn fip_statistics(&self) -> FcfStatistics {
        self.fcf.statistics()
    }

    /// Follows what FIP has told.
    fn settle(&mut self) {
        while let Some(event) = self.fcf.poll() {
            match &event {
                SwitchEvent::LoggedIn(login) => self.logged_in(login),
                SwitchEvent::LoggedOut(login, _) => self.logged_out(login),
                _ => {}
            }
            self.events.push_back(event);
        }
    }

    fn logged_in(&mut self, login: &FabricLogin) {
        Arc::make_mut(&mut self.table).insert(login);
    }

    fn logged_out(&mut self, login: &FabricLogin) {
        Arc::make_mut(&mut self.table).remove(login.fc_id);
    }
}

const POINT_TO_POINT: Violation = Violation {
    rule: "an FLOGI without FIP: a Linux kernel that has not heard an FCF for 8 s, and may now be \
           in point-to-point mode with another until its link goes down and up",
    clause: "FC-BB-6, FIP",
};

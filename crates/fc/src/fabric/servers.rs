//! The services of a fabric, behind its well-known addresses (FC-GS, FC-LS-2).
//!
//! | address | service | takes |
//! |---|---|---|
//! | FFFFFCh | name server | PLOGI, LOGO, ADISC, PDISC; requests by the common transport |
//! | FFFFFDh | fabric controller | the same ELS; SCR, RSCN, LIRR |
//! | FFFFFAh | management server | as the name server, for FDMI |
//! | FFFFFEh | F_Port controller | LOGO; FLOGI and FDISC come by FIP |
//! | each of these | | ECHO, RNID, RLS, RTV, with no login but the one to the fabric |
//!
//! All else is rejected, or is no request and is dropped. Only ports that are logged in to the
//! fabric are served: the switch tells of logins and has checked the S_ID of each frame.
//!
//! Whatever a port asks, it costs a bounded amount: an ENode has a budget of requests, a walk
//! through all ports is counted as many, and what is kept of a port has limits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use scsi::medium::Now;
use scsi::violation::Violation;

use super::PortNumber;
use super::zones::Zones;
use crate::wire::els::{LinkErrors, LsRejectReason};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::frame::{FrameType, RCtl};
use crate::wire::names::{FcId, Wwn};

mod budget;
mod common_transport;
mod controller;
mod directory;
mod link_services;
mod management;
mod outbox;
mod port;
mod reassembly;
mod service;

#[cfg(test)]
mod tests;

use self::budget::{Allowance, RequestBudgets};
use self::controller::Changes;
use self::directory::Nodes;
use self::management::Hbas;
pub use self::outbox::ServerFrame;
use self::outbox::{Asked, Outbox};
use self::port::RegisteredPort;
pub use self::port::{PortLogin, PortView};
use self::reassembly::Reassembly;

/// What services need to know of their fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServersConfig {
    /// The name of the switch, of which those of its services are made.
    pub switch_name: Wwn,
    /// The name of the fabric.
    pub fabric_name: Wwn,
    /// E_D_TOV.
    pub e_d_tov: Duration,
    /// R_A_TOV.
    pub r_a_tov: Duration,
}

/// What the switch has to know of what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServersEvent {
    /// A port logged out of the fabric, by LOGO to FFFFFEh. [`Servers::transmit`] has the answer,
    /// which is to be sent before [`Servers::logged_out`] is told.
    LoggedOut(FcId),
    /// A service rejected a PLOGI of this port.
    LoginRejected(FcId, LsRejectReason),
    /// Worth a line in the log.
    Remark {
        /// Whose request it was.
        from: FcId,
        /// What is wrong with it.
        violation: Violation,
    },
}

/// The services of a fabric.
#[derive(Debug)]
pub struct Servers {
    config: ServersConfig,
    zones: Arc<Zones>,
    ports: BTreeMap<FcId, RegisteredPort>,
    nodes: Nodes,
    changes: Changes,
    hbas: Hbas,
    reassembly: Reassembly,
    outbox: Outbox,
    budgets: RequestBudgets,
    link_errors: BTreeMap<PortNumber, LinkErrors>,
    events: VecDeque<ServersEvent>,
}

impl Servers {
    /// Of a fabric without zones: no port sees another.
    #[must_use]
    pub fn new(config: ServersConfig) -> Self {
        Self {
            config,
            zones: Arc::new(Zones::closed()),
            ports: BTreeMap::new(),
            nodes: Nodes::default(),
            changes: Changes::default(),
            hbas: Hbas::default(),
            reassembly: Reassembly::default(),
            outbox: Outbox::default(),
            budgets: RequestBudgets::default(),
            link_errors: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// A port logged in by FLOGI or FDISC. If its N_Port_ID has a login already, that one is over.
    ///
    /// The number of ports is limited by who gives N_Port_IDs.
    pub fn logged_in(&mut self, now: Now, login: PortLogin) {
        self.logged_out(now, login.fc_id);
        let membership = self.zones.membership(&login.zone_member());
        self.nodes.add(&login);
        self.budgets.join(login.station());
        let port = RegisteredPort::new(login, membership);
        let id = port.fc_id();
        self.ports.insert(id, port);
        self.await_registration(now, id);
    }

    /// The login of a port is over: those that saw it are told at once.
    pub fn logged_out(&mut self, now: Now, fc_id: FcId) {
        self.tell_gone(now, fc_id);
        if let Some(port) = self.ports.remove(&fc_id) {
            if self.nodes.remove(&port.login) {
                self.hbas.forget(port.login.wwpn);
            }
            self.budgets.leave(port.login.station());
            self.reassembly.forget_port(fc_id);
        }
    }

    /// Other zones hold from now on: ports that see others than before are told.
    pub fn set_zones(&mut self, now: Now, zones: Arc<Zones>) {
        self.exchange_zones(now, zones);
    }

    /// The counters of the F_Port at a port of the switch, which RLS asks for.
    pub fn set_link_errors(&mut self, port: PortNumber, errors: LinkErrors) {
        self.link_errors.insert(port, errors);
    }

    /// A frame to a well-known address came. Its S_ID is that of a port that is logged in.
    pub fn receive(&mut self, now: Now, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let is_served = header.d_id.is_well_known() && header.d_id != FcId::BROADCAST;
        if !is_served || !self.ports.contains_key(&header.s_id) || self.outbox.is_full() {
            return;
        }
        match (header.kind, header.r_ctl) {
            (FrameType::ELS, RCtl::ELS_REQUEST) => self.els_request(now, frame),
            (FrameType::CT, RCtl::UNSOLICITED_CONTROL) => self.ct_frame(now, frame),
            (FrameType::BLS, RCtl::ABTS) => self.abort(now, frame),
            (FrameType::BLS, _) => {}
            (FrameType::ELS, RCtl::ELS_REPLY) => self.els_reply(frame),
            _ => self.remark(now, header.s_id, NO_SERVICE),
        }
    }

    /// The next frame to be sent, to the port with the D_ID of its header.
    pub fn transmit(&mut self) -> Option<ServerFrame> {
        self.outbox.pop()
    }

    /// What the switch has to know.
    pub fn poll(&mut self) -> Option<ServersEvent> {
        self.events.pop_front()
    }

    /// When [`Self::expire`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.reassembly.next_deadline(),
            self.changes.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn expire(&mut self, now: Now) {
        self.reassembly.expire(now);
        self.expire_changes(now);
    }

    /// All ports that are logged in, by N_Port_ID.
    pub fn ports(&self) -> impl Iterator<Item = PortView<'_>> {
        self.ports.values().map(|port| PortView {
            login: &port.login,
            symbolic_port: &port.objects.symbolic,
            symbolic_node: &port.objects.symbolic_node,
            types: port.objects.types,
            features: &port.objects.features,
        })
    }

    /// How many records are kept of ports, of all kinds, and what waits to be told and sent.
    #[must_use]
    pub fn records(&self) -> usize {
        let registered = self.ports.len() + self.nodes.records() + self.hbas.records();
        let waiting = self.reassembly.records() + self.outbox.len() + self.events.len();
        registered + waiting + self.changes.records() + self.budgets.records()
    }

    /// An exchange is given up. Its answer may be on its way, which does no harm: the OX_ID is not
    /// used again within R_A_TOV.
    fn abort(&mut self, now: Now, frame: &ReceivedFrame<'_>) {
        let asked = Asked::by(&frame.header);
        self.reassembly.forget_exchange(asked.from, asked.ox_id);
        if self.allow(now, asked.from) == Allowance::Served {
            self.outbox.accept_abort(asked);
        }
    }

    /// Takes what a request of a port costs.
    fn allow(&mut self, now: Now, from: FcId) -> Allowance {
        let station = self.ports.get(&from).map(|port| port.login.station());
        station.map_or(Allowance::Dropped, |station| {
            self.budgets.take(now, station)
        })
    }

    /// A request of a port has cost a look at so many ports, or other steps.
    fn charge(&mut self, from: FcId, steps: usize) {
        if let Some(port) = self.ports.get(&from) {
            self.budgets.charge(port.login.station(), steps);
        }
    }

    /// Tells of what a port did wrong; once a second at most, as a port could fill the log.
    fn remark(&mut self, now: Now, from: FcId, violation: Violation) {
        let Some(port) = self.ports.get_mut(&from) else {
            return;
        };
        if port.may_be_remarked(now) {
            let remark = ServersEvent::Remark { from, violation };
            self.events.push_back(remark);
        }
    }
}

/// What a frame to a well-known address may not be.
const NO_SERVICE: Violation = Violation {
    rule: "a frame to a well-known address that is neither a link service nor CT",
    clause: "FC-GS",
};

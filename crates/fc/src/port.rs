//! An N_Port on Ethernet: FIP, logins and FCP in one machine.
//!
//! Whole Ethernet frames go in by [`Port::receive`]. FIP gives the port its address and its
//! neighbours; each of those is a [`RemotePort`], which logs in; a remote port that is up is a
//! nexus of the machine above, an [`Fc4Layer`]: [`crate::target::FcpTarget`] or
//! [`crate::initiator::FcpInitiator`]. The port knows of that what it takes to hand frames on, and
//! the machine above knows of the port what is in a [`FcpPeer`](crate::remote::FcpPeer).
//!
//! | what comes | whose it is |
//! |---|---|
//! | EtherType FIP | FIP's |
//! | extended link services about an exchange (REC, RRQ), and the answers to its own | the machine above |
//! | other extended link services | the remote port's |
//! | ABTS, and what answers one | the machine above |
//! | type FCP | the machine above |
//!
//! In a fabric FIP finds the FCF, and a client of the name server finds the ports; the FCF-MAC is
//! the Ethernet address of all of them.
//!
//! | what comes in a fabric | whose it is |
//! |---|---|
//! | from FFFFFCh, FFFFFDh and FFFFFEh | the client's |
//! | PLOGI from a port that is not known | its names make it known |
//!
//! What is not from a neighbour, or not to us, is counted and dropped. A port that sends a command
//! without a nexus is told by LOGO.

pub mod config;
mod els;
mod fabric;
mod fc4;
mod fip;
mod name_client;
mod name_walk;
mod queries;
mod receive;
mod remotes;
mod report;
mod transmit;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use scsi::medium::Now;

pub use self::config::{PortConfig, PortMode};
pub use self::fc4::Fc4Layer;
use self::fip::FipMachine;
use self::name_client::NameClient;
use self::name_walk::NameWalk;
pub use self::name_walk::NameWalkState;
use self::queries::Queries;
pub use self::queries::{FcQuery, FcQueryError, FcQueryId, QUERIES_MAX};
use self::remotes::{Remotes, WaitingPorts};
pub use self::report::{PortEvent, PortStatistics};
use crate::fip::enode::Enode;
use crate::fip::{self as initialization, FipEvent, Neighbour, UnlinkReason};
use crate::frames::Single;
use crate::remote::{
    Cx, LocalPort, NexusEnd, OxIds, Partners, PeerAddress, RemoteId, RemoteOutput, RemotePort,
};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// An N_Port. `F` is what it is for.
#[derive(Debug)]
pub struct Port<F: Fc4Layer> {
    local: LocalPort,
    limits: config::PortLimits,
    now: Now,
    fip: FipMachine,
    /// The client of the fabric's services, while there is a login to one.
    name_client: Option<Box<NameClient>>,
    /// Of the next request to a service, while there is no login.
    service_ox_id: u16,
    /// A walk through what its name server lists, if one was begun.
    name_walk: Option<Box<NameWalk>>,
    /// What it asks on behalf of other programs.
    queries: Queries,
    symbolic_name: String,
    fc4: F,
    is_online: bool,
    remotes: Remotes,
    ox_ids: OxIds,
    /// Remote ports that wait for a place.
    waiting: WaitingPorts,
    /// What remote ports want done, until it is.
    outputs: VecDeque<(RemoteId, RemoteOutput)>,
    /// Link services that wait to be transmitted.
    controls: VecDeque<Single>,
    events: VecDeque<PortEvent<F::Event>>,
    statistics: PortStatistics,
}

impl<F: Fc4Layer> Port<F> {
    /// A port whose link is down. `random` are fresh random bytes.
    #[must_use]
    pub fn new(config: &PortConfig, mut fc4: F, now: Now, random: [u8; 8]) -> Self {
        let [a, b, c, d, e, f, ..] = random;
        fc4.number_from(u32::from_be_bytes([a, b, c, d]));
        Self {
            fip: config.fip(F::ROLE, now, random),
            name_client: None,
            service_ox_id: name_client::FIRST_OX_ID,
            name_walk: None,
            queries: Queries::default(),
            symbolic_name: config.symbolic_name.clone(),
            limits: config.limits,
            local: config.local(F::ROLE),
            now,
            fc4,
            is_online: false,
            remotes: Remotes::default(),
            ox_ids: OxIds::new(u16::from_be_bytes([e, f])),
            waiting: WaitingPorts::default(),
            outputs: VecDeque::new(),
            controls: VecDeque::new(),
            events: VecDeque::new(),
            statistics: PortStatistics::default(),
        }
    }

    /// The same port, with its logins, under another FC-4 layer. Events that the old layer has not
    /// delivered are dropped.
    #[must_use]
    pub fn with_fc4<G: Fc4Layer>(self, change: impl FnOnce(F) -> G) -> Port<G> {
        Port {
            local: self.local,
            limits: self.limits,
            now: self.now,
            fip: self.fip,
            name_client: self.name_client,
            service_ox_id: self.service_ox_id,
            name_walk: self.name_walk,
            queries: self.queries,
            symbolic_name: self.symbolic_name,
            fc4: change(self.fc4),
            is_online: self.is_online,
            remotes: self.remotes,
            ox_ids: self.ox_ids,
            waiting: self.waiting,
            outputs: self.outputs,
            controls: self.controls,
            events: VecDeque::new(),
            statistics: self.statistics,
        }
    }

    /// The machine above, to be asked for what it does: commands, and what answers them.
    #[must_use]
    pub const fn fc4(&self) -> &F {
        &self.fc4
    }

    /// The machine above. What it has to say afterwards comes out of [`Self::poll`] and
    /// [`Self::transmit`].
    pub const fn fc4_mut(&mut self) -> &mut F {
        &mut self.fc4
    }

    /// Our port name.
    #[must_use]
    pub const fn wwpn(&self) -> Wwn {
        self.local.wwpn
    }

    /// Our node name.
    #[must_use]
    pub const fn wwnn(&self) -> Wwn {
        self.local.wwnn
    }

    /// The most bytes of payload in a frame that the Ethernet lets through.
    #[must_use]
    pub const fn payload_max(&self) -> u16 {
        self.local.payload_max
    }

    /// Our place on the wire, while the port is online. Frames to its Ethernet address are to be
    /// received, besides those to the one that was configured and to [`PortMode::groups`].
    #[must_use]
    pub fn address(&self) -> Option<PeerAddress> {
        self.is_online.then_some(self.local.address)
    }

    /// The remote ports that are known, in no order.
    pub fn remotes(&self) -> impl Iterator<Item = &RemotePort> {
        self.remotes.iter().filter(|remote| !remote.is_lost())
    }

    /// A remote port.
    #[must_use]
    pub fn remote(&self, id: RemoteId) -> Option<&RemotePort> {
        self.remotes.get(id)
    }

    /// The remote port of this name, if it is known.
    #[must_use]
    pub fn find(&self, wwpn: Wwn) -> Option<&RemotePort> {
        self.remotes().find(|remote| remote.wwpn() == wwpn)
    }

    /// Whether a port of this name is there, but without a virtual link yet; or it is yet to be
    /// seen whether it is there, in a fabric.
    #[must_use]
    pub fn is_linking(&self, wwpn: Wwn) -> bool {
        let is_looking = |client: &NameClient| client.is_looking();
        self.fip.is_linking(wwpn) || self.name_client.as_deref().is_some_and(is_looking)
    }

    /// The ENode, if the port is one of a fabric: its login, and the FCFs.
    #[must_use]
    pub const fn enode(&self) -> Option<&Enode> {
        self.fip.fabric()
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> &PortStatistics {
        &self.statistics
    }

    /// What FIP counted.
    #[must_use]
    pub const fn fip_statistics(&self) -> initialization::FipStatistics {
        self.fip.statistics()
    }

    /// The link came up or went down. When it goes down all nexuses end.
    pub fn link(&mut self, now: Now, up: bool) {
        self.tick(now);
        self.fip.link(self.now, up);
        self.hear_fip();
    }

    /// Frames on the Ethernet may have another length from now on. What was agreed upon with others
    /// holds no more: the link is down, until [`Self::link`] says that it is up.
    pub fn resize(&mut self, now: Now, mtu: usize) {
        self.link(now, false);
        self.fip.resize(initialization::max_fcoe(mtu));
        self.local.payload_max = config::payload_max(mtu);
    }

    /// From now on there may be a login with this port too; one that is there already is logged in
    /// to at once, as it may have given up.
    pub fn admit(&mut self, now: Now, wwpn: Wwn) {
        self.tick(now);
        if let Partners::Only(names) = &mut self.local.partners
            && names.insert(wwpn)
        {
            self.remotes.place_all(&self.local);
            if let Some(id) = self.find(wwpn).map(RemotePort::id) {
                self.with_id(id, RemotePort::log_in);
            }
        }
    }

    /// From now on there are logins with these ports alone. Ports that are no longer among them are
    /// logged out; new ones are logged in to at once, as they may have given up.
    pub fn set_partners(&mut self, now: Now, partners: Partners) {
        self.tick(now);
        let before = std::mem::replace(&mut self.local.partners, partners);
        self.remotes.place_all(&self.local);
        let all: Vec<_> = self.remotes().map(|one| (one.id(), one.wwpn())).collect();
        for (id, wwpn) in all {
            match (before.admit(wwpn), self.local.partners.admit(wwpn)) {
                (true, false) => self.with_id(id, RemotePort::revoke),
                (false, true) => self.begin(id, RemotePort::log_in),
                _ => {}
            }
        }
        self.begin_waiting();
    }

    /// Logs out of all remote ports, and refuses those that log in again. To be followed, once what
    /// is to be sent has been transmitted, by [`Self::link`] down.
    pub fn log_out(&mut self, now: Now) {
        self.tick(now);
        let all: Vec<_> = self
            .remotes()
            .map(|remote| remote.address().fc_id)
            .collect();
        if self.name_client.is_some() {
            self.log_out_of_fabric();
        }
        for fc_id in &all {
            self.with(*fc_id, |remote, cx| remote.lost(cx, NexusEnd::ByUs));
        }
        self.fip.log_out(self.now, &all);
        self.hear_fip();
    }

    /// The device server has ended all that a nexus left behind of which [`PortEvent::Down`] was
    /// told. To be called at a target, once for each; before that the initiator does not come up
    /// again.
    pub fn ended(&mut self, now: Now, id: RemoteId) {
        self.tick(now);
        self.with_id(id, RemotePort::ended);
        self.begin_waiting();
    }

    /// What happened; to be asked until `None` after each call of another function, and after
    /// [`Self::fc4_mut`].
    pub fn poll(&mut self) -> Option<PortEvent<F::Event>> {
        // A nexus is told before what comes of it; what it leaves behind when it ends is taken back
        // by the machine above.
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let event = self.fc4.poll()?;
        if let Some(stuck) = F::stuck(&event) {
            self.with_id(stuck, RemotePort::renew);
        }
        Some(PortEvent::Fc4(event))
    }

    /// Bytes of data that others were asked for, and that have not come.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.fc4.expected()
    }

    /// When [`Self::expire`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        let deadlines = [
            self.fip.next_deadline(),
            self.name_client
                .as_ref()
                .and_then(|client| client.next_deadline()),
            self.name_walk.as_ref().and_then(|walk| walk.deadline()),
            self.queries.next_deadline(),
            self.remotes.next_deadline(),
            self.fc4.next_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Now) {
        self.tick(now);
        let now = self.now;
        if self.fip.next_deadline().is_some_and(|at| at <= now) {
            self.fip.expire(now);
            self.hear_fip();
        }
        self.expire_services();
        self.expire_walk();
        self.expire_queries();
        for id in self.remotes.due(now) {
            self.with_id(id, RemotePort::expire);
        }
        if self.fc4.next_deadline().is_some_and(|at| at <= now) {
            self.fc4.expire(now);
        }
    }

    /// Time never goes back, whatever the clock says.
    fn tick(&mut self, now: Now) {
        self.now = self.now.max(now);
    }

    fn hear_fip(&mut self) {
        self.adopt_vlan();
        while let Some(event) = self.fip.poll() {
            match event {
                FipEvent::Claimed(fc_id) => self.online(fc_id),
                FipEvent::Released(_) => self.offline(),
                FipEvent::Found(f_port) if f_port.fc_id == FcId::FABRIC_F => self.enter_fabric(),
                FipEvent::Lost(FcId::FABRIC_F, why) => self.leave_fabric(why),
                FipEvent::Found(neighbour) => self.found(neighbour),
                FipEvent::Lost(fc_id, why) => self.lost(fc_id, why),
            }
        }
        self.hear_notices();
    }

    fn online(&mut self, fc_id: FcId) {
        let mac = self.fip.mac().unwrap_or_default();
        self.local.address = PeerAddress { fc_id, mac };
        self.is_online = true;
        self.events.push_back(PortEvent::Online(self.local.address));
    }

    fn offline(&mut self) {
        self.is_online = false;
        // They bear the address that is not ours any more.
        self.controls.clear();
        self.queries.end_all();
        self.events.push_back(PortEvent::Offline);
    }

    fn found(&mut self, neighbour: Neighbour) {
        self.found_to(neighbour, RemotePort::begin);
    }

    /// There is a way to a port, which begins by `act`.
    fn found_to(&mut self, neighbour: Neighbour, act: impl FnOnce(&mut RemotePort, &mut Cx<'_>)) {
        if neighbour.wwpn == self.local.wwpn {
            self.remark(neighbour.enode, Some(neighbour.wwpn), SAME_NAME);
        }
        let id = self.remotes.meet(neighbour, &self.local);
        self.begin(id, act);
    }

    /// Has a remote port begin by `act`, or wait for a place.
    fn begin(&mut self, id: RemoteId, act: impl FnOnce(&mut RemotePort, &mut Cx<'_>)) {
        let has_place = |remote: &RemotePort| remote.has_place(&self.local);
        let wants_one = self.remotes.get(id).is_some_and(has_place);
        if wants_one && self.remotes.places() > self.limits.remotes {
            self.remark_on(id, TOO_MANY);
            self.waiting.push(id);
            self.with_id(id, |remote, _| remote.wait());
        } else {
            self.with_id(id, act);
        }
    }

    /// A place may have become free.
    fn begin_waiting(&mut self) {
        while !self.waiting.is_empty() && self.remotes.places() < self.limits.remotes {
            let id = self.waiting.pop();
            let waits = |id: &RemoteId| self.remotes.get(*id).is_some_and(RemotePort::is_waiting);
            if let Some(id) = id.filter(waits) {
                self.with_id(id, RemotePort::begin);
            }
        }
    }

    fn lost(&mut self, fc_id: FcId, why: UnlinkReason) {
        self.with(fc_id, |remote, cx| remote.lost(cx, NexusEnd::Lost(why)));
        self.begin_waiting();
    }

    /// Does something for the remote port at an address.
    fn with(&mut self, fc_id: FcId, act: impl FnOnce(&mut RemotePort, &mut Cx<'_>)) {
        if let Some(id) = self.remotes.at(fc_id) {
            self.with_id(id, act);
        }
    }

    /// Does something for a remote port, and what comes of it.
    fn with_id(&mut self, id: RemoteId, act: impl FnOnce(&mut RemotePort, &mut Cx<'_>)) {
        let mut cx = Cx {
            now: self.now,
            local: &self.local,
            ox_ids: &mut self.ox_ids,
            outputs: &mut self.outputs,
        };
        let act = |remote: &mut RemotePort| act(remote, &mut cx);
        self.remotes.with(id, &self.local, act);
        while let Some((id, output)) = self.outputs.pop_front() {
            self.carry_out(id, output);
        }
        self.remotes.tidy(id);
    }

    fn carry_out(&mut self, id: RemoteId, output: RemoteOutput) {
        match output {
            RemoteOutput::Send(sending) => self.queue(id, sending),
            RemoteOutput::Up(peer) => {
                self.fc4.peer_up(id, *peer);
                self.statistics.nexuses += 1;
                self.events.push_back(PortEvent::Up(id));
            }
            RemoteOutput::Down(why) => {
                self.fc4.peer_down(id);
                self.events.push_back(PortEvent::Down(id, why));
            }
            RemoteOutput::Remark(violation) => self.remark_on(id, violation),
        }
    }
}

const SAME_NAME: Violation = Violation {
    rule: "another port on the Ethernet has the WWPN of this port: initiators may find either of \
           them",
    clause: "FC-FS-3",
};

const TOO_MANY: Violation = Violation {
    rule: "too many ports want to log in; this one waits until another one logs out",
    clause: "--max-sessions",
};

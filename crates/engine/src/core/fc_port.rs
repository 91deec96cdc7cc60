//! Fibre Channel on a core: Ethernet ports, the N_Ports that live on them, and their nexuses.
//!
//! A port hears a batch of frames, carries out what came of them, and sends when everything else of
//! the turn is done, as connections do. Write data comes only where memory was asked for before, so
//! nothing has to stop half way through a batch.

use std::collections::BTreeMap;

use ::io::ring::Ring;
use block::lease::BlockLease;
use fc::port::PortEvent;
use fc::remote::{Partners, RemoteId};
use fc::target::FcpLimits;
use fc::target::divided::{BranchNexus, DividedTarget};
use fc::wire::names::{FcId, Wwn};
use scsi::device::DeviceServer;
use scsi::medium::Now;
use scsi::nexus::{AttentionHistory, NexusId};
use scsi::unit::CoreId;

use super::Core;
use super::event_key::EventKey;
use super::fc_branch::{BranchOrder, FcPortKey};
use super::fc_nexuses::{FcNexuses, ToRemote};
use super::nexus_table::{DepartedInitiators, FcNexus};
use super::timers::{ArmedTimer, Timer};
use crate::mailbox::{CoreMessage, Mailer};
use crate::survey::{FcLogin, LoginResult};
use runtime::n_port::{Attachment, FrameLoss, NPort, PollInterest};

/// An N_Port that serves.
pub(super) struct FcPort {
    n_port: NPort<DividedTarget<BlockLease>>,
    /// It logs out, and rests when it has.
    is_leaving: bool,
    /// Those of this core.
    nexuses: FcNexuses,
    /// Those of other cores, until their last task has ended.
    branched: BTreeMap<RemoteId, CoreId>,
    /// The N_Port_IDs of initiators with a nexus, where there are several cores.
    steered: BTreeMap<RemoteId, FcId>,
    /// The cores of its branches, which are numbered from 1 on.
    branches: Vec<CoreId>,
    /// Initiators that had a nexus, by their port names.
    away: DepartedInitiators<Wwn>,
    /// It may have something to send.
    dirty: bool,
    /// The ring will tell when frames have come.
    is_watched: bool,
    /// The instant for which it is in the heap of timers.
    timer: ArmedTimer,
}

impl FcPort {
    /// A port there, whose nexuses are divided among this core and others.
    fn begin(site: Attachment, branches: Vec<CoreId>, now: Now) -> Self {
        let target = DividedTarget::new(FcpLimits::default(), branches.len());
        Self {
            n_port: NPort::begin(site, target, now),
            is_leaving: false,
            nexuses: FcNexuses::default(),
            branched: BTreeMap::new(),
            steered: BTreeMap::new(),
            branches,
            away: DepartedInitiators::default(),
            dirty: true,
            is_watched: false,
            timer: ArmedTimer::default(),
        }
    }

    pub(super) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The transport of a nexus.
    pub(super) const fn nexus(&mut self, remote: RemoteId) -> ToRemote<'_> {
        self.dirty = true;
        let machine = self.n_port.port_mut().fc4_mut().here_mut();
        self.nexuses.nexus(machine, remote)
    }

    /// Whether it was closed, and nothing is left of it.
    fn is_gone(&self) -> bool {
        self.is_leaving
            && self.n_port.has_left()
            && self.nexuses.is_empty()
            && self.branched.is_empty()
    }

    /// Its name and that of a remote port, as views know them.
    pub(super) fn names(&self, remote: RemoteId) -> Option<(String, String)> {
        let port = self.n_port.port();
        let remote = port.remote(remote)?;
        Some((port.wwpn().to_string(), remote.wwpn().to_string()))
    }

    /// Its name, and the frames that were lost at it.
    pub(super) fn lost(&mut self) -> (String, Vec<FrameLoss>) {
        let lost = self.n_port.lost().unwrap_or_default();
        let name = self.n_port.port().wwpn().to_string();
        (name, lost.places().into())
    }

    /// Its logins, on this core.
    pub(super) fn logins(&self, core: CoreId) -> impl Iterator<Item = (NexusId, FcLogin)> {
        let port = self.n_port.port();
        let name = move |id| Some(port.remote(id)?.wwpn());
        let own = (port.wwpn(), self.n_port.place());
        self.nexuses.logins(core, own, name)
    }

    /// Has frames of an initiator go to the branch of its nexus, if it has one; 0 is the port.
    fn steer(&mut self, id: RemoteId, branch: Option<u32>) {
        if self.branches.is_empty() {
            return;
        }
        let fc_id = match branch {
            None => self.steered.remove(&id),
            Some(_) => self.n_port.port().remote(id).map(|one| one.address().fc_id),
        };
        if let Some(fc_id) = fc_id {
            self.n_port.steer(fc_id, branch);
            self.steered.extend(branch.map(|_| (id, fc_id)));
        }
    }

    /// Sends what there is to be sent, and tells the device server what has not left.
    fn flush(&mut self, device: &mut DeviceServer<BlockLease>) {
        self.n_port.transmit();
        let machine = self.n_port.port().fc4().here();
        self.nexuses.tell_queued(machine, device);
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Has the ring tell when frames have come, unless the port rests.
    fn listen_to_fc_port(&mut self, now: Now, fc_port: u32) {
        let unwatched = |one: &&mut FcPort| !one.is_watched;
        let Some(one) = self.fc_ports.get_mut(fc_port as usize).filter(unwatched) else {
            return;
        };
        let token = EventKey::FcPort(fc_port).token();
        let (waited, ring) = (one.n_port.poll_fd(), &mut self.ring);
        let watched = match one.n_port.listen() {
            PollInterest::NotYet => return,
            PollInterest::Later => ring.watch_later(waited, token),
            PollInterest::Now => ring.watch(waited, token),
        };
        one.n_port.is_watched(now, &watched);
        one.is_watched = watched.is_ok();
    }

    /// There is something to receive, or room to send.
    pub(super) fn fc_port_ready(&mut self, now: Now, fc_port: u32) {
        if let Some(one) = self.fc_ports.get_mut(fc_port as usize) {
            one.is_watched = false;
            one.n_port.receive(now);
        }
        self.fc_port_events(now, fc_port);
        self.listen_to_fc_port(now, fc_port);
    }

    pub(super) fn fc_port_expired(&mut self, now: Now, at: Now, fc_port: u32) {
        let Some(one) = self.fc_ports.get_mut(fc_port as usize) else {
            return;
        };
        if one.timer.is_over(at) {
            one.n_port.expire(now);
            self.fc_port_events(now, fc_port);
            self.listen_to_fc_port(now, fc_port);
        }
    }

    /// Sends what the ports have to say, and tells the device server what has not left.
    pub(super) fn flush_fc_ports(&mut self, now: Now) {
        if self.fc_ports.is_empty() {
            return;
        }
        for (fc_port, one) in &mut self.fc_ports {
            if std::mem::take(&mut one.dirty) {
                one.flush(&mut self.device);
                let deadline = one.n_port.next_deadline();
                let timer = Timer::FcPort(fc_port as u32);
                self.timers.arm_by(now, &mut one.timer, deadline, timer);
            }
        }
        self.close_gone_fc_ports();
    }

    fn close_gone_fc_ports(&mut self) {
        let gone = self.fc_ports.iter().filter(|(_, one)| one.is_gone());
        let gone: Vec<_> = gone.map(|(fc_port, _)| fc_port).collect();
        for fc_port in gone {
            for core in self.fc_ports.remove(fc_port).branches {
                self.tell_branch(core, fc_port as u32, BranchOrder::Close);
            }
        }
    }

    fn fc_port_keys(&self) -> Vec<u32> {
        self.fc_ports.iter().map(|(key, _)| key as u32).collect()
    }

    /// Carries out what a port wants.
    pub(super) fn fc_port_events(&mut self, now: Now, fc_port: u32) {
        while let Some(one) = self.fc_ports.get_mut(fc_port as usize) {
            one.dirty = true;
            let Some(event) = one.n_port.poll() else {
                return self.forward_frames(fc_port);
            };
            match event {
                PortEvent::Up(remote) => self.remote_up(now, fc_port, remote),
                PortEvent::Down(remote, end) => {
                    tracing::debug!("{}: {remote:?} is down: {end:?}", one.n_port.place());
                    self.remote_down(fc_port, remote);
                }
                PortEvent::Fc4(event) => one.nexuses.carry_out(&mut self.device, event),
                PortEvent::Remark {
                    from,
                    wwpn,
                    violation,
                } => self.tell_of(now, (from, wwpn), violation),
                // The port has told what of it is news.
                PortEvent::Online(_) | PortEvent::Offline | PortEvent::Fabric(_) => {}
            }
        }
    }

    /// Mails what has come for nexuses of other cores.
    #[inline]
    fn forward_frames(&mut self, fc_port: u32) {
        let Some(one) = self.fc_ports.get_mut(fc_port as usize) else {
            return;
        };
        if !one.n_port.port().fc4().has_forwarded() {
            return;
        }
        for (branch, frames) in one.n_port.port_mut().fc4_mut().take_forwarded() {
            let core = self.fc_ports[fc_port as usize].branches[branch - 1];
            self.tell_branch(core, fc_port, BranchOrder::Frames(frames));
        }
    }

    fn tell_branch(&mut self, core: CoreId, port: u32, order: BranchOrder) {
        let key = FcPortKey {
            core: self.id,
            port,
        };
        self.post(core, CoreMessage::FcBranch(key, Box::new(order)));
    }

    /// An initiator has logged in.
    fn remote_up(&mut self, now: Now, fc_port: u32, id: RemoteId) {
        let one = &mut self.fc_ports[fc_port as usize];
        let Some(remote) = one.n_port.port().remote(id) else {
            return;
        };
        let names = (one.n_port.port().wwpn(), remote.wwpn());
        let elsewhere = one.n_port.port().fc4().at_branch(id).cloned();
        let core = elsewhere
            .as_ref()
            .map_or(self.id, |nexus| one.branches[nexus.branch - 1]);
        tracing::debug!(
            "{}: {} has logged in, on core {}",
            one.n_port.place(),
            names.1,
            core.0
        );
        let heard = one.away.come_back(Some(&names.1));
        self.counts
            .login(names.0.to_string(), LoginResult::Accepted);
        if let Some(nexus) = elsewhere {
            return self.remote_up_elsewhere(fc_port, id, core, &nexus, heard);
        }
        one.steer(id, Some(0));
        let slot = self.connections.insert_remote(FcNexus { fc_port, id });
        one.nexuses.begin(now, id, slot);
        self.fc_nexus_up(slot, names, heard);
    }

    /// The nexus is another core's. Its mail is there before the first frame can be, which follows
    /// LS_ACC.
    fn remote_up_elsewhere(
        &mut self,
        fc_port: u32,
        id: RemoteId,
        core: CoreId,
        nexus: &BranchNexus,
        heard: Option<AttentionHistory>,
    ) {
        let order = BranchOrder::Up(id, Box::new(nexus.peer), heard);
        self.tell_branch(core, fc_port, order);
        let one = &mut self.fc_ports[fc_port as usize];
        one.branched.insert(id, core);
        one.steer(id, Some(nexus.branch as u32));
    }

    /// The login of an initiator is over. When it comes back it is told of no more than that, as
    /// long as it missed nothing else (SAM-5 §6.3.4).
    fn remote_down(&mut self, fc_port: u32, id: RemoteId) {
        let one = &mut self.fc_ports[fc_port as usize];
        one.steer(id, None);
        if let Some(&core) = one.branched.get(&id) {
            return self.tell_branch(core, fc_port, BranchOrder::Down(id));
        }
        let Some(slot) = one.nexuses.slot(id) else {
            return;
        };
        if let Some(remote) = one.n_port.port().remote(id)
            && let Some(heard) = self.device.heard(NexusId(slot))
        {
            one.away.go_away(remote.wwpn(), heard);
        }
        self.device.nexus_lost(NexusId(slot));
    }

    /// The last task of a nexus has ended: its port may have another.
    pub(super) fn remote_gone(&mut self, now: Now, slot: u32, remote: FcNexus) {
        self.connections.vacate(slot);
        if let Some(one) = self.fc_ports.get_mut(remote.fc_port as usize) {
            one.nexuses.end(remote.id);
            one.n_port.port_mut().ended(now, remote.id);
            self.fc_port_events(now, remote.fc_port);
        }
        self.check_stopped();
    }

    /// The last task of a nexus of another core has ended, which its initiator had heard that by.
    pub(super) fn branch_over(
        &mut self,
        now: Now,
        fc_port: u32,
        id: RemoteId,
        heard: Option<AttentionHistory>,
    ) {
        let Some(one) = self.fc_ports.get_mut(fc_port as usize) else {
            return;
        };
        one.branched.remove(&id);
        if let Some(remote) = one.n_port.port().remote(id)
            && let Some(heard) = heard
        {
            one.away.go_away(remote.wwpn(), heard);
        }
        one.n_port.port_mut().ended(now, id);
        self.fc_port_events(now, fc_port);
    }

    /// A port comes to this core, which shares its nexuses with as many others as it has ways for.
    pub(super) fn open_fc_port(&mut self, now: Now, mut attachment: Attachment) {
        let (ways, wwpn) = (attachment.take_branches(), attachment.config.wwpn);
        let core = |branch| (usize::from(self.id.0) + branch) % usize::from(self.post.cores());
        let cores: Vec<_> = (1..=ways.len())
            .map(|branch| CoreId(core(branch) as u16))
            .collect();
        let port = FcPort::begin(attachment, cores.clone(), now);
        let fc_port = self.fc_ports.insert(port) as u32;
        for (core, way) in cores.into_iter().zip(ways) {
            let target = self.fc_ports[fc_port as usize].n_port.port().fc4();
            let share = target.share(way.window_max());
            let order = BranchOrder::Open(Box::new(way), wwpn, share);
            self.tell_branch(core, fc_port, order);
        }
        self.listen_to_fc_port(now, fc_port);
        self.fc_port_events(now, fc_port);
        if self.stop.is_stopping() {
            self.fc_ports[fc_port as usize].n_port.leave(now);
            self.fc_port_events(now, fc_port);
        }
        self.flush_fc_ports(now);
    }

    /// The port of this name, if it is here, logs out everywhere.
    pub(super) fn close_fc_port(&mut self, now: Now, wwpn: Wwn) {
        let mut ports = self.fc_ports.iter_mut();
        let found = ports.find(|(_, one)| !one.is_leaving && one.n_port.port().wwpn() == wwpn);
        if let Some((fc_port, one)) = found {
            one.is_leaving = true;
            one.n_port.leave(now);
            self.fc_port_events(now, fc_port as u32);
            self.flush_fc_ports(now);
        }
    }

    /// The port of this name, if it is here, has logins with these ports alone from now on.
    pub(super) fn set_fc_partners(&mut self, now: Now, wwpn: Wwn, partners: &Partners) {
        let mut ports = self.fc_ports.iter_mut();
        let found = ports.find(|(_, one)| !one.is_leaving && one.n_port.port().wwpn() == wwpn);
        if let Some((fc_port, one)) = found {
            one.n_port.set_partners(now, partners.clone());
            self.fc_port_events(now, fc_port as u32);
        }
    }

    /// Every port logs out.
    pub(super) fn leave_fc_ports(&mut self, now: Now) {
        for fc_port in self.fc_port_keys() {
            self.fc_ports[fc_port as usize].n_port.leave(now);
            self.fc_port_events(now, fc_port);
        }
    }

    pub(super) fn have_fc_ports_left(&self) -> bool {
        let mut ports = self.fc_ports.iter();
        ports.all(|(_, fc_port)| fc_port.n_port.has_left())
    }
}

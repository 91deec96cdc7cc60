//! What a core has of a Fibre Channel port that lives on another one: a part of its nexuses.
//!
//! The port keeps its logins. Frames for a nexus of this core come from the kernel, or the port
//! forwards them, in order with the begin and the end of the nexus; what is answered leaves by a
//! socket of this core's own. A nexus is over when its last task is, and the port hears of that: it
//! lets the initiator in again no sooner.
//!
//! | from the port | from here |
//! |---|---|
//! | open; an initiator has come; frames; it has gone; close | its last task has ended |

use std::sync::Arc;
use std::time::Duration;

use ::io::ring::Ring;
use block::lease::BlockLease;
use fc::port::Fc4Layer;
use fc::remote::{FcpPeer, RemoteId};
use fc::target::LimitShare;
use fc::target::branch::FcpBranch;
use fc::target::divided::ForwardedFrames;
use fc::wire::names::Wwn;
use scsi::medium::Now;
use scsi::nexus::{AttentionHistory, Nexus, NexusId, NexusIdentity};
use scsi::unit::CoreId;
use scsi::wire::transport_id;

use super::Core;
use super::event_key::EventKey;
use super::fc_nexuses::{FcNexuses, ToRemote};
use super::nexus_table::FcNexus;
use super::timers::{ArmedTimer, Timer};
use crate::mailbox::{CoreMessage, Mailer};
use crate::survey::FcLogin;
use runtime::n_port::{FrameLoss, PollInterest, PortBranch};

/// Names a Fibre Channel port in the mail between cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FcPortKey {
    /// The core that it lives on.
    pub(super) core: CoreId,
    /// Its number there.
    pub(super) port: u32,
}

/// What a port tells a core that has a part of its nexuses.
pub enum BranchOrder {
    /// There will be nexuses of the port with this name, that leave by this way.
    Open(Box<PortBranch>, Wwn, LimitShare),
    /// An initiator has logged in. It has heard that, if it was here before.
    Up(RemoteId, Box<FcpPeer>, Option<AttentionHistory>),
    /// Its login is over.
    Down(RemoteId),
    /// What has come from initiators.
    Frames(ForwardedFrames),
    /// There will be no more nexuses.
    Close,
}

/// A part of the nexuses of a port of another core.
pub(super) struct FcBranch {
    key: FcPortKey,
    wwpn: Wwn,
    way: PortBranch,
    machine: FcpBranch<BlockLease>,
    nexuses: FcNexuses,
    /// By [`RemoteId`]: the names of those that have a nexus, and what they had heard at its end.
    initiators: Vec<Option<BranchInitiator>>,
    /// Nexuses that are over, of which the port has not heard.
    ended: Vec<EndedNexus>,
    dirty: bool,
    is_watched: bool,
    /// The instant for which it is in the heap of timers.
    timer: ArmedTimer,
}

struct BranchInitiator {
    wwpn: Wwn,
    heard: Option<AttentionHistory>,
}

/// What the port is told once all has left that was sent for a nexus: the initiator may not get an
/// old answer behind the one to its next login, which leaves by another socket.
struct EndedNexus {
    remote: RemoteId,
    heard: Option<AttentionHistory>,
    /// When the port is told at the latest.
    until: Option<Now>,
}

impl FcBranch {
    fn new(key: FcPortKey, wwpn: Wwn, way: PortBranch, limits: LimitShare) -> Self {
        Self {
            key,
            wwpn,
            way,
            machine: FcpBranch::new(limits),
            nexuses: FcNexuses::default(),
            initiators: Vec::new(),
            ended: Vec::new(),
            dirty: false,
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
        self.nexuses.nexus(self.machine.target_mut(), remote)
    }

    fn initiator(&mut self, remote: RemoteId) -> Option<&mut BranchInitiator> {
        self.initiators.get_mut(remote.index())?.as_mut()
    }

    /// Takes what the kernel has handed here: it was sent before what the port mails now.
    fn drain(&mut self, now: Now) {
        // Should more come meanwhile, it may wait.
        for _ in 0..RING_BATCHES {
            if !self.way.is_shared() || self.way.receive(now, &mut self.machine) {
                return;
            }
        }
    }

    /// Takes what the port forwards.
    fn receive(&mut self, now: Now, frames: &ForwardedFrames) {
        // A REC may not be ahead of the command that it asks for.
        self.drain(now);
        for (remote, frame) in frames.iter() {
            self.machine.receive(now, remote, &frame);
        }
    }

    /// Nexuses whose end the port is to hear of now.
    fn take_ended(&mut self, now: Now, is_stopping: bool) -> Vec<(FcPortKey, EndedNexus)> {
        if self.ended.is_empty() {
            return Vec::new();
        }
        let all = is_stopping || self.way.has_sent_all();
        let over = |one: &mut EndedNexus| all || *one.until.get_or_insert(now + LINGER) <= now;
        let ended = self.ended.extract_if(.., over);
        ended.map(|one| (self.key, one)).collect()
    }

    fn next_deadline(&self, now: Now) -> Option<Now> {
        let looks = (!self.ended.is_empty()).then_some(now + LOOK);
        let polls = (!self.is_watched).then_some(now + DEAF);
        let losses = Some(self.way.next_look());
        let deadlines = [self.machine.target().next_deadline(), looks, polls, losses];
        deadlines.into_iter().flatten().min()
    }

    /// Its name and that of a remote port, as views know them.
    pub(super) fn names(&mut self, remote: RemoteId) -> Option<(String, String)> {
        let own = self.wwpn.to_string();
        let remote = self.initiator(remote)?;
        Some((own, remote.wwpn.to_string()))
    }

    /// The name of the port, and the frames that were lost here.
    pub(super) fn lost(&mut self) -> (String, Vec<FrameLoss>) {
        let lost = self.way.lost().unwrap_or_default();
        (self.wwpn.to_string(), lost.places().into())
    }

    /// The logins of this core.
    pub(super) fn logins(&self, core: CoreId) -> impl Iterator<Item = (NexusId, FcLogin)> {
        let name = move |id: RemoteId| Some(self.initiators.get(id.index())?.as_ref()?.wwpn);
        let port = (self.wwpn, self.way.place());
        self.nexuses.logins(core, port, name)
    }
}

/// Batches of 256 frames, more than which no ring has.
const RING_BATCHES: usize = 64;

/// For how long an initiator whose nexus is over is kept out while the interface takes nothing.
const LINGER: Duration = Duration::from_secs(1);

/// How often it is looked whether an interface has taken all.
const LOOK: Duration = Duration::from_millis(1);

/// How often frames are polled for that the ring cannot wait for.
const DEAF: Duration = Duration::from_millis(10);

impl<R: Ring, P: Mailer> Core<R, P> {
    /// A port of another core tells something.
    pub(super) fn fc_branch_order(&mut self, now: Now, key: FcPortKey, order: BranchOrder) {
        if let BranchOrder::Open(way, wwpn, limits) = order {
            let branch = FcBranch::new(key, wwpn, *way, limits);
            let branch = self.fc_branches.insert(branch) as u32;
            return self.listen_to_fc_branch(branch);
        }
        let mut branches = self.fc_branches.iter();
        let Some((at, _)) = branches.find(|(_, one)| one.key == key) else {
            return;
        };
        match order {
            BranchOrder::Up(remote, peer, heard) => {
                self.branch_up(now, at as u32, remote, &peer, heard);
            }
            BranchOrder::Down(remote) => self.branch_down(now, at as u32, remote),
            BranchOrder::Frames(frames) => self.fc_branches[at].receive(now, &frames),
            // All nexuses have ended: the port waits for that.
            BranchOrder::Close => drop(self.fc_branches.remove(at)),
            BranchOrder::Open(..) => {}
        }
        self.fc_branch_events(at as u32);
    }

    /// An initiator has logged in. A core that stops has told, or is about to, that it has no
    /// sessions any more; the port logs out too.
    fn branch_up(
        &mut self,
        now: Now,
        branch: u32,
        remote: RemoteId,
        peer: &FcpPeer,
        heard: Option<AttentionHistory>,
    ) {
        if self.stop.is_stopping() {
            return;
        }
        let one = &mut self.fc_branches[branch as usize];
        let at = remote.index();
        if one.initiators.len() <= at {
            one.initiators.resize_with(at + 1, || None);
        }
        let (wwpn, own) = (peer.wwpn, one.wwpn);
        one.initiators[at] = Some(BranchInitiator { wwpn, heard: None });
        one.machine.up(now, remote, peer);
        let slot = self.connections.insert_branched(FcNexus {
            fc_port: branch,
            id: remote,
        });
        one.nexuses.begin(now, remote, slot);
        self.fc_nexus_up(slot, (own, wwpn), heard);
    }

    /// The nexus in this slot is there.
    pub(super) fn fc_nexus_up(
        &mut self,
        slot: u32,
        (own, initiator): (Wwn, Wwn),
        heard: Option<AttentionHistory>,
    ) {
        let (port, other) = (own.to_string(), initiator.to_string());
        let target = self.views.device(&port, &other, 0);
        let target = target.cloned().unwrap_or_default();
        let identity = NexusIdentity {
            initiator: transport_id::fcp(initiator.0.to_be_bytes()),
            port: target.ports.first().map_or(1, |port| port.relative_id),
        };
        let nexus = Nexus {
            identity: Arc::new(identity),
            target,
        };
        match heard {
            Some(heard) => self.device.nexus_back(NexusId(slot), nexus, &heard),
            None => self.device.nexus_up(NexusId(slot), nexus),
        }
    }

    /// Its login is over. What it has sent before, and the kernel has handed here, goes with it.
    fn branch_down(&mut self, now: Now, branch: u32, remote: RemoteId) {
        let one = &mut self.fc_branches[branch as usize];
        one.drain(now);
        one.machine.down(remote);
        let Some(slot) = one.nexuses.slot(remote) else {
            return self.branch_ended(branch, remote);
        };
        if let Some(initiator) = one.initiator(remote) {
            initiator.heard = self.device.heard(NexusId(slot));
        }
        self.device.nexus_lost(NexusId(slot));
    }

    /// The last task of a nexus has ended: its port may have another.
    pub(super) fn branched_gone(&mut self, slot: u32, nexus: FcNexus) {
        self.connections.vacate(slot);
        if let Some(one) = self.fc_branches.get_mut(nexus.fc_port as usize) {
            one.nexuses.end(nexus.id);
            self.branch_ended(nexus.fc_port, nexus.id);
        }
        self.check_stopped();
    }

    fn branch_ended(&mut self, branch: u32, remote: RemoteId) {
        let one = &mut self.fc_branches[branch as usize];
        let known = one.initiators.get_mut(remote.index());
        let heard = known.and_then(Option::take).and_then(|known| known.heard);
        if self.stop.is_stopping() {
            let key = one.key;
            return self.post(key.core, CoreMessage::FcEnded(key.port, remote, heard));
        }
        one.ended.push(EndedNexus {
            remote,
            heard,
            until: None,
        });
        one.dirty = true;
    }

    /// Carries out what the machine of a branch wants.
    pub(super) fn fc_branch_events(&mut self, branch: u32) {
        let Some(one) = self.fc_branches.get_mut(branch as usize) else {
            return;
        };
        one.dirty = true;
        while let Some(event) = one.machine.target_mut().poll() {
            one.nexuses.carry_out(&mut self.device, event);
        }
    }

    fn listen_to_fc_branch(&mut self, branch: u32) {
        let Some(one) = self.fc_branches.get_mut(branch as usize) else {
            return;
        };
        if !one.is_watched {
            let token = EventKey::FcBranch(branch).token();
            let waited = one.way.poll_fd();
            let watched = match one.way.listen() {
                PollInterest::Later => self.ring.watch_later(waited, token),
                _ => self.ring.watch(waited, token),
            };
            one.way.is_watched(&watched);
            one.is_watched = watched.is_ok();
        }
    }

    /// There is something to receive, or room to send. Frames may be of an initiator whose nexus
    /// the port has mailed, but the ring has not told yet that there is mail.
    pub(super) fn fc_branch_ready(&mut self, now: Now, branch: u32) {
        let shared = |one: &FcBranch| one.way.is_shared();
        if self.fc_branches.get(branch as usize).is_some_and(shared) {
            self.take_mail(now);
        }
        if let Some(one) = self.fc_branches.get_mut(branch as usize) {
            one.is_watched = false;
            one.way.receive(now, &mut one.machine);
        }
        self.fc_branch_events(branch);
        self.listen_to_fc_branch(branch);
    }

    pub(super) fn fc_branch_expired(&mut self, now: Now, at: Now, branch: u32) {
        let Some(one) = self.fc_branches.get_mut(branch as usize) else {
            return;
        };
        if one.timer.is_over(at) {
            one.machine.target_mut().expire(now);
            one.way.look_for_drops(now);
            if one.is_watched {
                self.fc_branch_events(branch);
            } else {
                self.fc_branch_ready(now, branch);
            }
        }
    }

    /// Sends what the branches have to say, and tells the device server what has not left.
    pub(super) fn flush_fc_branches(&mut self, now: Now) {
        if self.fc_branches.is_empty() {
            return;
        }
        let is_stopping = self.stop.is_stopping();
        let mut ended = Vec::new();
        for (at, one) in &mut self.fc_branches {
            if !std::mem::take(&mut one.dirty) {
                continue;
            }
            one.way.transmit(one.machine.target_mut());
            one.nexuses
                .tell_queued(one.machine.target(), &mut self.device);
            ended.extend(one.take_ended(now, is_stopping));
            let deadline = one.next_deadline(now);
            let timer = Timer::FcBranch(at as u32);
            self.timers.arm_by(now, &mut one.timer, deadline, timer);
        }
        for (key, nexus) in ended {
            let message = CoreMessage::FcEnded(key.port, nexus.remote, nexus.heard);
            self.post(key.core, message);
        }
    }

    /// The views of what a nexus of a branch sees.
    pub(super) fn branched_names(&mut self, nexus: FcNexus) -> Option<(String, String)> {
        let branch = self.fc_branches.get_mut(nexus.fc_port as usize)?;
        branch.names(nexus.id)
    }
}

#[cfg(test)]
mod tests;

//! Fibre Channel on a core: Ethernet ports, the N_Ports that live on them, and their nexuses.
//!
//! A port hears a batch of frames, carries out what came of them, and sends when everything else of
//! the turn is done, as connections do. Write data comes only where memory was asked for before, so
//! nothing has to stop half way through a batch.

use std::sync::Arc;

use ::io::ring::Ring;
use block::lease::BlockLease;
use fc::port::PortEvent;
use fc::remote::{Partners, RemoteId};
use fc::target::{self, FcpLimits, FcpTarget};
use fc::wire::names::Wwn;
use scsi::device::{DeviceServer, NexusCounts};
use scsi::medium::Now;
use scsi::nexus::{Nexus, NexusId, NexusIdentity};
use scsi::task::{Completed, FunctionResult, Tag};
use scsi::unit::CoreId;
use scsi::wire::transport_id;

use super::Core;
use super::event_key::EventKey;
use super::nexus_table::{DepartedInitiators, FcNexus};
use super::timers::{SHORTEST, Timer};
use crate::mailbox::Mailer;
use crate::survey::{FcLogin, LoginResult};
use runtime::n_port::{Attachment, FrameLoss, NPort, PollInterest};

/// An N_Port that serves.
pub(super) struct FcPort {
    n_port: NPort<FcpTarget<BlockLease>>,
    /// It logs out, and rests when it has.
    is_leaving: bool,
    /// By [`RemoteId`].
    seats: Vec<RemotePortSlot>,
    /// Initiators that had a nexus, by their port names.
    away: DepartedInitiators<Wwn>,
    /// Those to which data was given that may not have left.
    sending: Vec<RemoteId>,
    /// It may have something to send.
    dirty: bool,
    /// The ring will tell when frames have come.
    is_watched: bool,
    /// The instant for which it is in the heap of timers.
    timer: Option<Now>,
}

/// A remote port as the core knows it.
#[derive(Clone, Copy, Default)]
struct RemotePortSlot {
    /// The slot of its nexus.
    slot: Option<u32>,
    /// Since when.
    since: Now,
    /// It is in [`FcPort::sending`], which there are too many ports to look through for each
    /// command.
    is_sending: bool,
}

impl FcPort {
    /// A port there.
    pub(crate) fn begin(site: Attachment, now: Now) -> Self {
        Self {
            n_port: NPort::begin(site, FcpTarget::new(FcpLimits::default()), now),
            is_leaving: false,
            seats: Vec::new(),
            away: DepartedInitiators::default(),
            sending: Vec::new(),
            dirty: true,
            is_watched: false,
            timer: None,
        }
    }

    pub(super) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The transport of a nexus.
    pub(super) fn nexus(&mut self, remote: RemoteId) -> ToRemote<'_> {
        self.dirty = true;
        ToRemote {
            fc_port: self,
            remote,
        }
    }

    /// Whether it was closed, and nothing is left of it.
    fn is_gone(&self) -> bool {
        self.is_leaving
            && self.n_port.has_left()
            && self.seats.iter().all(|seat| seat.slot.is_none())
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
        (self.n_port.port().wwpn().to_string(), lost.places().into())
    }

    /// Its logins, on this core.
    pub(super) fn logins(&self, core: CoreId) -> impl Iterator<Item = (NexusId, FcLogin)> {
        let port = self.n_port.port();
        let login = move |(at, seat): (usize, &RemotePortSlot)| {
            let id = RemoteId(at as u32);
            let login = FcLogin {
                initiator: port.remote(id)?.wwpn().to_string(),
                port: port.wwpn().to_string(),
                interface: self.n_port.place().to_string(),
                core,
                since: seat.since,
                counts: NexusCounts::default(),
            };
            Some((NexusId(seat.slot?), login))
        };
        self.seats.iter().enumerate().filter_map(login)
    }

    fn slot(&self, remote: RemoteId) -> Option<u32> {
        self.seats.get(remote.index())?.slot
    }

    fn seat(&mut self, remote: RemoteId) -> &mut RemotePortSlot {
        let at = remote.index();
        if self.seats.len() <= at {
            self.seats.resize(at + 1, RemotePortSlot::default());
        }
        &mut self.seats[at]
    }

    /// Sends what there is to be sent, and tells the device server what has not left.
    fn flush(&mut self, device: &mut DeviceServer<BlockLease>) {
        self.n_port.transmit();
        let (fcp, seats) = (self.n_port.port().fc4(), &mut self.seats);
        self.sending.retain(|remote| {
            let queued = fcp.data_in_queued(*remote);
            let seat = &mut seats[remote.index()];
            if let Some(slot) = seat.slot {
                device.data_in_queued(NexusId(slot), queued);
            }
            seat.is_sending = queued > 0;
            seat.is_sending
        });
    }
}

/// A remote port as the device server knows it.
pub(super) struct ToRemote<'a> {
    fc_port: &'a mut FcPort,
    remote: RemoteId,
}

impl ToRemote<'_> {
    const fn machine(&mut self) -> &mut FcpTarget<BlockLease> {
        self.fc_port.n_port.port_mut().fc4_mut()
    }
}

impl ToRemote<'_> {
    pub(super) fn send_data_in(&mut self, tag: Tag, offset: u32, data: BlockLease) {
        let remote = self.remote;
        if !std::mem::replace(&mut self.fc_port.seat(remote).is_sending, true) {
            self.fc_port.sending.push(remote);
        }
        self.machine().send_data_in(remote, tag, offset, data);
    }

    pub(super) fn receive_data_out(&mut self, tag: Tag, offset: u32, into: BlockLease) {
        let remote = self.remote;
        self.machine().receive_data_out(remote, tag, offset, into);
    }

    pub(super) fn complete(&mut self, tag: Tag, completed: &Completed) {
        let remote = self.remote;
        self.machine().complete(remote, tag, completed);
    }

    pub(super) fn aborted(&mut self, tag: Tag) {
        let remote = self.remote;
        self.machine().aborted(remote, tag);
    }

    pub(super) fn managed(&mut self, id: u32, result: FunctionResult) {
        let remote = self.remote;
        self.machine().managed(remote, id, result);
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
        if one.timer == Some(at) {
            one.timer = None;
            one.n_port.expire(now);
            self.fc_port_events(now, fc_port);
            self.listen_to_fc_port(now, fc_port);
        }
    }

    fn arm_fc_port(&mut self, now: Now, fc_port: usize) {
        let one = &mut self.fc_ports[fc_port];
        let deadline = one.n_port.next_deadline();
        let Some(at) = deadline.map(|at| at.max(now + SHORTEST)) else {
            return;
        };
        if one.timer.is_none_or(|set| at < set) {
            one.timer = Some(at);
            self.timers.set(at, Timer::FcPort(fc_port as u32));
        }
    }

    /// Sends what the ports have to say, and tells the device server what has not left.
    pub(super) fn flush_fc_ports(&mut self, now: Now) {
        if self.fc_ports.is_empty() {
            return;
        }
        for fc_port in 0..self.fc_ports.capacity() {
            let Some(one) = self.fc_ports.get_mut(fc_port) else {
                continue;
            };
            if std::mem::take(&mut one.dirty) {
                one.flush(&mut self.device);
                self.arm_fc_port(now, fc_port);
            }
        }
        self.fc_ports.retain(|_, one| !one.is_gone());
    }

    fn fc_port_keys(&self) -> Vec<u32> {
        self.fc_ports.iter().map(|(key, _)| key as u32).collect()
    }

    /// Carries out what a port wants.
    pub(super) fn fc_port_events(&mut self, now: Now, fc_port: u32) {
        while let Some(one) = self.fc_ports.get_mut(fc_port as usize) {
            one.dirty = true;
            let Some(event) = one.n_port.poll() else {
                return;
            };
            match event {
                PortEvent::Up(remote) => self.remote_up(now, fc_port, remote),
                PortEvent::Down(remote, end) => {
                    tracing::debug!("{}: {remote:?} is down: {end:?}", one.n_port.place());
                    self.remote_down(fc_port, remote);
                }
                PortEvent::Fc4(event) => self.target_event(fc_port, event),
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

    fn target_event(&mut self, fc_port: u32, event: target::FcpTargetEvent<BlockLease>) {
        let slots = &self.fc_ports[fc_port as usize];
        let nexus = |remote| slots.slot(remote).map(NexusId);
        match event {
            target::FcpTargetEvent::Execute {
                remote,
                mut command,
            } => {
                if let Some(nexus) = nexus(remote) {
                    command.nexus = nexus;
                    self.device.execute(command);
                }
            }
            target::FcpTargetEvent::DataOut {
                remote,
                tag,
                offset,
                data,
            } => {
                if let Some(nexus) = nexus(remote) {
                    self.device.data_out(nexus, tag, offset, data);
                }
            }
            target::FcpTargetEvent::Manage {
                remote,
                id,
                lun,
                function,
            } => {
                if let Some(nexus) = nexus(remote) {
                    self.device.manage(nexus, id, lun, function);
                }
            }
        }
    }

    /// An initiator has logged in.
    fn remote_up(&mut self, now: Now, fc_port: u32, id: RemoteId) {
        let one = &mut self.fc_ports[fc_port as usize];
        let Some(remote) = one.n_port.port().remote(id) else {
            return;
        };
        let names = (
            one.n_port.port().wwpn().to_string(),
            remote.wwpn().to_string(),
        );
        let target = self.views.device(&names.0, &names.1, 0);
        let target = target.cloned().unwrap_or_default();
        let identity = NexusIdentity {
            initiator: transport_id::fcp(remote.wwpn().0.to_be_bytes()),
            port: target.ports.first().map_or(1, |port| port.relative_id),
        };
        let nexus = Nexus {
            identity: Arc::new(identity),
            target,
        };
        tracing::debug!("{}: {} has logged in", one.n_port.place(), remote.wwpn());
        let heard = one.away.come_back(Some(&remote.wwpn()));
        let slot = self.connections.insert_remote(FcNexus { fc_port, id });
        let seat = one.seat(id);
        (seat.slot, seat.since) = (Some(slot), now);
        self.counts.login(names.0, LoginResult::Accepted);
        match heard {
            Some(heard) => self.device.nexus_back(NexusId(slot), nexus, &heard),
            None => self.device.nexus_up(NexusId(slot), nexus),
        }
    }

    /// The login of an initiator is over. When it comes back it is told of no more than that, as
    /// long as it missed nothing else (SAM-5 §6.3.4).
    fn remote_down(&mut self, fc_port: u32, id: RemoteId) {
        let one = &mut self.fc_ports[fc_port as usize];
        let Some(slot) = one.slot(id) else {
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
            one.seat(remote.id).slot = None;
            one.n_port.port_mut().ended(now, remote.id);
            self.fc_port_events(now, remote.fc_port);
        }
        self.check_stopped();
    }

    /// A port comes to this core.
    pub(super) fn open_fc_port(&mut self, now: Now, attachment: Attachment) {
        let fc_port = self.fc_ports.insert(FcPort::begin(attachment, now)) as u32;
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

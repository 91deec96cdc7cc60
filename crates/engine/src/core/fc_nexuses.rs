//! The nexuses of a Fibre Channel port on one core, as the device server knows them.

use ::io::ether::Place;
use block::lease::BlockLease;
use fc::remote::RemoteId;
use fc::target::{FcpTarget, FcpTargetEvent};
use fc::wire::names::Wwn;
use scsi::device::{DeviceServer, NexusCounts};
use scsi::medium::Now;
use scsi::nexus::NexusId;
use scsi::task::{Completed, FunctionResult, Tag};
use scsi::unit::CoreId;

use crate::survey::FcLogin;

/// The nexuses of a port that are on this core.
#[derive(Default)]
pub(super) struct FcNexuses {
    /// By [`RemoteId`].
    remotes: Vec<RemotePortSlot>,
    /// Those to which data was given that may not have left.
    sending: Vec<RemoteId>,
}

/// A remote port as the core knows it.
#[derive(Clone, Copy, Default)]
struct RemotePortSlot {
    /// The slot of its nexus.
    slot: Option<u32>,
    /// Since when.
    since: Now,
    /// It is in [`FcNexuses::sending`], which there are too many ports to look through for each
    /// command.
    is_sending: bool,
}

impl FcNexuses {
    /// There is a nexus, in this slot.
    pub(super) fn begin(&mut self, now: Now, remote: RemoteId, slot: u32) {
        let known = self.remote(remote);
        (known.slot, known.since) = (Some(slot), now);
    }

    /// Its last task has ended.
    pub(super) fn end(&mut self, remote: RemoteId) {
        self.remote(remote).slot = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.remotes.iter().all(|known| known.slot.is_none())
    }

    pub(super) fn slot(&self, remote: RemoteId) -> Option<u32> {
        self.remotes.get(remote.index())?.slot
    }

    /// All of them at the port of this name, with the initiators' names as `name` has them.
    pub(super) fn logins(
        &self,
        core: CoreId,
        (port, place): (Wwn, &Place),
        name: impl Fn(RemoteId) -> Option<Wwn>,
    ) -> impl Iterator<Item = (NexusId, FcLogin)> {
        let remotes = self.remotes.iter().enumerate();
        remotes.filter_map(move |(at, known)| {
            let nexus = NexusId(known.slot?);
            let login = FcLogin {
                initiator: name(RemoteId(at as u32))?.to_string(),
                port: port.to_string(),
                interface: place.to_string(),
                core,
                since: known.since,
                counts: NexusCounts::default(),
            };
            Some((nexus, login))
        })
    }

    /// The transport of a nexus, whose exchanges that machine has.
    pub(super) const fn nexus<'a>(
        &'a mut self,
        machine: &'a mut FcpTarget<BlockLease>,
        remote: RemoteId,
    ) -> ToRemote<'a> {
        ToRemote {
            machine,
            nexuses: self,
            remote,
        }
    }

    fn remote(&mut self, remote: RemoteId) -> &mut RemotePortSlot {
        let at = remote.index();
        if self.remotes.len() <= at {
            self.remotes.resize(at + 1, RemotePortSlot::default());
        }
        &mut self.remotes[at]
    }

    /// Tells the device server what has not left.
    pub(super) fn tell_queued(
        &mut self,
        machine: &FcpTarget<BlockLease>,
        device: &mut DeviceServer<BlockLease>,
    ) {
        let remotes = &mut self.remotes;
        self.sending.retain(|remote| {
            let queued = machine.data_in_queued(*remote);
            let known = &mut remotes[remote.index()];
            if let Some(slot) = known.slot {
                device.data_in_queued(NexusId(slot), queued);
            }
            known.is_sending = queued > 0;
            known.is_sending
        });
    }

    /// Tells the device server what the machine wants done.
    pub(super) fn carry_out(
        &self,
        device: &mut DeviceServer<BlockLease>,
        event: FcpTargetEvent<BlockLease>,
    ) {
        let nexus = |remote| self.slot(remote).map(NexusId);
        match event {
            FcpTargetEvent::Execute {
                remote,
                mut command,
            } => {
                if let Some(nexus) = nexus(remote) {
                    command.nexus = nexus;
                    device.execute(command);
                }
            }
            FcpTargetEvent::DataOut {
                remote,
                tag,
                offset,
                data,
            } => {
                if let Some(nexus) = nexus(remote) {
                    device.data_out(nexus, tag, offset, data);
                }
            }
            FcpTargetEvent::Manage {
                remote,
                id,
                lun,
                function,
            } => {
                if let Some(nexus) = nexus(remote) {
                    device.manage(nexus, id, lun, function);
                }
            }
        }
    }
}

/// A remote port as the device server knows it.
pub(super) struct ToRemote<'a> {
    machine: &'a mut FcpTarget<BlockLease>,
    nexuses: &'a mut FcNexuses,
    remote: RemoteId,
}

impl ToRemote<'_> {
    pub(super) fn send_data_in(&mut self, tag: Tag, offset: u32, data: BlockLease) {
        let remote = self.remote;
        if !std::mem::replace(&mut self.nexuses.remote(remote).is_sending, true) {
            self.nexuses.sending.push(remote);
        }
        self.machine.send_data_in(remote, tag, offset, data);
    }

    pub(super) fn receive_data_out(&mut self, tag: Tag, offset: u32, into: BlockLease) {
        self.machine
            .receive_data_out(self.remote, tag, offset, into);
    }

    pub(super) fn complete(&mut self, tag: Tag, completed: &Completed) {
        self.machine.complete(self.remote, tag, completed);
    }

    pub(super) fn aborted(&mut self, tag: Tag) {
        self.machine.aborted(self.remote, tag);
    }

    pub(super) fn managed(&mut self, id: u32, result: FunctionResult) {
        self.machine.managed(self.remote, id, result);
    }
}

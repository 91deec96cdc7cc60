//! SCSI commands: how they are taken in, and how they end.

use scsi::medium::Lease;
use scsi::nexus::NexusId;
use scsi::residual::Residual;
use scsi::task::{Attribute, Command, Completed};
use scsi::wire::asc;
use scsi::wire::sense::{Format, Sense, SenseKey, Status};

use super::exchanges::{Exchange, ExchangeEnding, ExchangeSlot, ExchangeStage};
use super::transmit::ExchangeOutput;
use super::{FcpTarget, FcpTargetEvent};
use crate::remote::RemoteId;
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fcp::{self, Cmnd, ManagementFlags, response};
use crate::wire::frame::FrameHeader;

impl<L: Lease> FcpTarget<L> {
    /// An FCP_CMND.
    pub(super) fn command(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let Some(retry_id) = self.retry_id(remote, header) else {
            return;
        };
        if self.is_repeated(remote, header, retry_id) {
            return;
        }
        let is_full = u64::from(self.open) >= self.limits.commands();
        let Some(slot) = self.tasks.insert(remote, header.ox_id) else {
            // So many are remembered that there is no name for it: its initiator finds out by REC.
            return;
        };
        self.open += 1;
        let task = &mut self.tasks[slot];
        (task.retry_id, task.touched) = (retry_id, self.now);
        let Ok(cmnd) = Cmnd::parse(frame.payload) else {
            return self.end(slot, ExchangeEnding::coded(response::FIELDS_INVALID));
        };
        task.lun = cmnd.lun;
        // A reset may be what clears the way.
        if cmnd.management != ManagementFlags::NONE {
            return self.function(slot, cmnd.management);
        }
        if is_full {
            let residual = Residual::of(cmnd.data_len, 0);
            return self.end(slot, ExchangeEnding::of(Status::TaskSetFull, residual));
        }
        self.execute(slot, &cmnd);
    }

    /// The task retry identifier, which travels in the parameter field (FCP-4); 0 where it was not
    /// agreed upon.
    fn retry_id(&self, remote: RemoteId, header: &FrameHeader) -> Option<u32> {
        let fcp = self.peer(remote)?.fcp;
        Some(if fcp.retry_identifier {
            header.parameter
        } else {
            0
        })
    }

    /// Whether a command is one that came before; if it is another one with the same OX_ID, that
    /// is forgotten. So may be one that a reset has ended: Linux uses the OX_IDs of all such
    /// commands again as soon as the reset is answered.
    fn is_repeated(&mut self, remote: RemoteId, header: &FrameHeader, retry_id: u32) -> bool {
        let Some(slot) = self.tasks.by_ox_id(remote, header.ox_id) else {
            return false;
        };
        let task = &self.tasks[slot];
        let is_same = retry_id != 0 && task.retry_id == retry_id;
        if !task.stage.is_over() || task.rests || is_same {
            return true;
        }
        self.forget(slot);
        false
    }

    fn execute(&mut self, slot: ExchangeSlot, cmnd: &Cmnd<'_>) {
        let Some(attribute) = attribute(cmnd.attribute) else {
            return self.end(slot, ExchangeEnding::coded(response::FIELDS_INVALID));
        };
        let task = &mut self.tasks[slot];
        task.expected_in = if cmnd.read { cmnd.data_len } else { 0 };
        task.expected_out = if cmnd.write { cmnd.data_len } else { 0 };
        let mut cdb = [0; 32];
        // No command here is bidirectional, or has a CDB that is longer.
        if cmnd.read && cmnd.write || cmnd.cdb.len() > cdb.len() {
            let ending = task.refusal();
            return self.end(slot, ending);
        }
        cdb[..cmnd.cdb.len()].copy_from_slice(cmnd.cdb);
        let command = Command {
            nexus: NexusId(0),
            tag: task.tag(),
            lun: cmnd.lun,
            cdb,
            cdb_len: cmnd.cdb.len() as u8,
            attribute,
            priority: cmnd.priority,
            expected_in: task.expected_in,
            expected_out: task.expected_out,
        };
        let remote = task.remote;
        self.events
            .push_back(FcpTargetEvent::Execute { remote, command });
    }

    /// *Send Command Complete*.
    pub(super) fn device_ended(&mut self, slot: ExchangeSlot, completed: &Completed) {
        let task = &mut self.tasks[slot];
        match task.stage {
            ExchangeStage::Executing => {
                let ending = task.device_ending(completed);
                self.end(slot, ending);
            }
            // It ended before the device server heard that it is to be aborted.
            ExchangeStage::Aborting => self.device_aborted(slot),
            _ => {}
        }
    }

    /// Queues the response.
    pub(super) fn end(&mut self, slot: ExchangeSlot, ending: ExchangeEnding) {
        self.asks_no_more(slot);
        let task = &mut self.tasks[slot];
        task.stage = ExchangeStage::Answered;
        task.ending = Some(ending);
        task.grants.clear();
        task.burst = None;
        self.open -= 1;
        self.queue.push(ExchangeOutput::Status(slot));
    }

    /// Forgets an exchange, in whatever stage. Nothing of it is in the queue.
    pub(super) fn forget(&mut self, slot: ExchangeSlot) {
        self.asks_no_more(slot);
        self.drop_kept(slot);
        self.open -= u32::from(self.tasks[slot].stage.is_open());
        self.tasks.forget(slot);
    }
}

impl<L: Lease> Exchange<L> {
    /// What is told when the device server ended the command.
    fn device_ending(&self, completed: &Completed) -> ExchangeEnding {
        let good = matches!(completed.status, Status::Good | Status::ConditionMet);
        let residual = match (self.expected_in, self.expected_out) {
            (0, 0) => Residual::of(0, completed.length_in.saturating_add(completed.length_out)),
            (read, 0) if good => Residual::of(read, completed.length_in),
            // Data that was cut short is told whatever the status (FCP-4, FCP_RESID_OVER).
            (0, write) if good || completed.length_out > u64::from(write) => {
                Residual::of(write, completed.length_out)
            }
            // Where a command fails, the initiator is told what has really moved: libfc takes a
            // read without all its data for one that lost some (FCP-4, FCP_RESID).
            (read, 0) => Residual::of(read, u64::from(self.presented)),
            (_, write) => Residual::of(write, u64::from(self.cover.next())),
        };
        ExchangeEnding {
            qualifier: completed.qualifier,
            sense: completed.sense.clone(),
            ..ExchangeEnding::of(completed.status, residual)
        }
    }

    /// The end of a command that cannot be carried out here.
    fn refusal(&self) -> ExchangeEnding {
        let sense = Sense::new(
            SenseKey::IllegalRequest,
            asc::INVALID_COMMAND_OPERATION_CODE,
        );
        let residual = Residual::of(self.expected_in.max(self.expected_out), 0);
        ExchangeEnding {
            sense: sense.encode(Format::Fixed),
            ..ExchangeEnding::of(Status::CheckCondition, residual)
        }
    }
}

/// FCP-4, TASK ATTRIBUTE; `None` for a reserved one. Untagged is obsolete, and taken as SIMPLE.
const fn attribute(code: u8) -> Option<Attribute> {
    match code {
        fcp::SIMPLE | UNTAGGED => Some(Attribute::Simple),
        fcp::HEAD_OF_QUEUE => Some(Attribute::HeadOfQueue),
        fcp::ORDERED => Some(Attribute::Ordered),
        fcp::ACA => Some(Attribute::Aca),
        _ => None,
    }
}

const UNTAGGED: u8 = 5;

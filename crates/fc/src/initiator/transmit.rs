//! The way out: link services first, then commands, then Data-Out, so that no command waits behind
//! a long write.

use scsi::medium::Lease;
use scsi::task::Attribute;

use super::exchanges::{CommandStage, InitiatorExchange, InitiatorSlot};
use super::{Data, FcpInitiator};
use crate::frames::{self, FrameSink, Single};
use crate::remote::{FcpPeer, RemoteId};
use crate::wire::fcp::{self, Cmnd, ManagementFlags};
use crate::wire::frame::{FCtl, FrameHeader, FrameType, OxId, RCtl, RxId};

impl<L: Lease> FcpInitiator<L> {
    pub(super) fn queue_control(
        &mut self,
        remote: RemoteId,
        header: FrameHeader,
        payload: Vec<u8>,
    ) {
        let Some(peer) = self.peer(remote) else {
            return;
        };
        let single = Single {
            ethernet: peer.ethernet(),
            header,
            payload,
        };
        self.controls.push_back((remote, single));
    }

    /// FCP_CONF: nothing of the command was lost.
    pub(super) fn confirm(&mut self, task: &InitiatorExchange<L>) {
        let Some(peer) = self.peer(task.remote) else {
            return;
        };
        let header = FrameHeader {
            f_ctl: FCtl::LAST_SEQUENCE.with(FCtl::END_SEQUENCE),
            seq_id: task.next_seq_id.wrapping_add(1),
            ..peer.header(
                RCtl::SOLICITED_CONTROL,
                FrameType::FCP,
                task.ox_id,
                task.rx_id,
            )
        };
        self.queue_control(task.remote, header, Vec::new());
    }

    pub(super) fn send(&mut self, out: &mut impl FrameSink) -> bool {
        let mut any = false;
        while let Some((_, control)) = self.controls.front() {
            if !control.put(out) {
                return any;
            }
            any = true;
            self.controls.pop_front();
        }
        while let Some(slot) = self.ready.front().copied() {
            if !self.is_in_window(slot) {
                break;
            }
            if !self.send_command(out, slot) {
                return any;
            }
            any = true;
            self.ready.pop_front();
        }
        while let Some((slot, mut sequence)) = self.sequences.pop_front() {
            let before = sequence.at;
            let is_whole = self.send_data(out, slot, &mut sequence);
            any |= sequence.at > before;
            if !is_whole {
                self.sequences.push_front((slot, sequence));
                return any;
            }
        }
        any
    }

    /// Whether there is room for what a command asks for.
    fn is_in_window(&mut self, slot: InitiatorSlot) -> bool {
        let wanted = self.tasks.at(slot).map_or(0, |task| task.awaits());
        wanted == 0 || self.awaited == 0 || self.awaited + wanted <= self.config.window
    }

    fn send_command(&mut self, out: &mut impl FrameSink, slot: InitiatorSlot) -> bool {
        let now = self.now;
        let Some(task) = self.tasks.at(slot) else {
            return true;
        };
        let Some(Some(nexus)) = self.nexuses.get(task.remote.index()) else {
            return true;
        };
        let header = function_header(&nexus.peer, task.ox_id, task.number);
        let cmnd = Cmnd {
            lun: task.lun,
            crn: 0,
            priority: 0,
            attribute: attribute(task.attribute),
            management: ManagementFlags::NONE,
            read: matches!(task.data, Data::In(_)),
            write: matches!(task.data, Data::Out(_)),
            cdb: &task.cdb,
            data_len: task.len,
            read_len: None,
        };
        let ethernet = nexus.peer.ethernet();
        let fill = |bytes: &mut [u8]| cmnd.put(bytes);
        if !frames::put_single(out, &ethernet, &header, cmnd.len(), fill) {
            return false;
        }
        (task.stage, task.touched) = (CommandStage::Open, now);
        self.awaited += task.awaits();
        self.expected += task.awaits();
        let silence = nexus.patience.first();
        self.look_by(now.saturating_add(silence));
        true
    }

    /// Sends frames of Data-Out; whether that was all.
    fn send_data(
        &mut self,
        out: &mut impl FrameSink,
        slot: InitiatorSlot,
        sequence: &mut crate::exchange::data::DataSequence<L>,
    ) -> bool {
        let Some(task) = self.tasks.at(slot) else {
            return true;
        };
        let Some(Some(nexus)) = self.nexuses.get(task.remote.index()) else {
            return true;
        };
        let peer = &nexus.peer;
        let header = peer.header(RCtl::SOLICITED_DATA, FrameType::FCP, task.ox_id, task.rx_id);
        let ending = FCtl::END_SEQUENCE.with(FCtl::SEQUENCE_INITIATIVE);
        let is_whole = sequence.send(out, peer, &header, ending);
        task.sent = task.sent.max(sequence.offset());
        task.touched = self.now;
        is_whole
    }
}

/// The header of an FCP_CMND. The parameter field holds the task retry identifier (FCP-4).
pub(super) fn function_header(peer: &FcpPeer, ox_id: OxId, number: u32) -> FrameHeader {
    FrameHeader {
        f_ctl: FCtl::REQUEST,
        parameter: if peer.fcp.retry_identifier { number } else { 0 },
        ..peer.header(
            RCtl::UNSOLICITED_COMMAND,
            FrameType::FCP,
            ox_id,
            RxId::UNASSIGNED,
        )
    }
}

const fn attribute(attribute: Attribute) -> u8 {
    match attribute {
        Attribute::Simple => fcp::SIMPLE,
        Attribute::Ordered => fcp::ORDERED,
        Attribute::HeadOfQueue => fcp::HEAD_OF_QUEUE,
        Attribute::Aca => fcp::ACA,
    }
}

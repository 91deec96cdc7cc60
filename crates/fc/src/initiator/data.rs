//! FCP_DATA from a target, copied to where it belongs as it comes; FCP_XFER_RDY, and the FCP_DATA
//! that answers it.

use scsi::medium::Lease;

use super::{Data, FcpInitiator};
use crate::exchange::data::DataSequence;
use crate::remote::RemoteId;
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fcp::XferRdy;

impl<L: Lease> FcpInitiator<L> {
    pub(super) fn data_in(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let Some((slot, task)) = self.tasks.open(remote, header) else {
            return;
        };
        let Data::In(into) = &mut task.data else {
            return;
        };
        let start = header.parameter;
        let end = start.checked_add(frame.payload.len() as u32);
        // Beyond what was asked for: the response will tell, as an overrun.
        let Some(end) = end.filter(|end| *end <= task.len && header.f_ctl.relative_offset()) else {
            return;
        };
        into.copy_in(start as usize, frame.payload);
        task.touched = self.now;
        let was_next = task.cover.next();
        let _noted = task.cover.add(start, end);
        let came = task.cover.next() - was_next;
        self.expected -= u64::from(came);
        if came > 0 {
            (task.recoveries, task.inquiries) = (0, 0);
        }
        if task.ending.is_some() {
            self.finish_if_whole(slot);
        } else if start > was_next {
            self.note_gap(slot);
        }
    }
}

impl<L: Lease> FcpInitiator<L> {
    pub(super) fn xfer_rdy(&mut self, remote: RemoteId, frame: &ReceivedFrame<'_>) {
        let header = &frame.header;
        let Ok(asked) = XferRdy::parse(frame.payload) else {
            return;
        };
        let Some((slot, task)) = self.tasks.open(remote, header) else {
            return;
        };
        let Data::Out(from) = &task.data else {
            return;
        };
        let end = asked.offset.checked_add(asked.burst);
        let Some(end) = end.filter(|end| *end <= task.len && asked.burst > 0) else {
            return;
        };
        let waited = self.now.saturating_sub(task.touched);
        let is_first = task.asked.is_none() && task.inquiries == 0;
        (task.touched, task.inquiries) = (self.now, 0);
        if task.asked == Some((header.seq_id, asked)) {
            return;
        }
        let mut sequence = DataSequence::new(from.clone(), 0, 0);
        (sequence.at, sequence.end) = (asked.offset, end);
        sequence.seq_id = task.next_seq_id();
        // One is in flight still if the target has not waited for its end: it wants another one.
        if task.asked.replace((header.seq_id, asked)).is_some() {
            self.sequences.retain(|(waiting, _)| *waiting != slot);
        }
        self.sequences.push_back((slot, sequence));
        if is_first && let Some(nexus) = self.nexus(remote) {
            nexus.patience.is_at_most(waited);
        }
    }
}

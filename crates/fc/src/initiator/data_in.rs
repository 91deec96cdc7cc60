//! FCP_DATA from a target, copied to where it belongs as it comes.

use scsi::medium::Lease;

use super::{Data, FcpInitiator};
use crate::remote::RemoteId;
use crate::wire::fcoe::ReceivedFrame;

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
            task.recoveries = 0;
        }
        if task.ending.is_some() {
            self.finish_if_whole(slot);
        } else if start > was_next {
            self.note_gap(slot);
        }
    }
}

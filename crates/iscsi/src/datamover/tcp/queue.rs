//! What waits to be sent over TCP, in order.

use std::collections::VecDeque;

use scsi::medium::Lease;

use crate::datamover::{ControlPdu, TaskSlot};
use crate::wire::bhs::Ttt;

/// Something that waits to be sent.
#[derive(Debug)]
pub(super) enum TcpPdu<L> {
    /// Data of a command, to be cut into Data-In PDUs.
    Data {
        slot: TaskSlot,
        offset: u32,
        data: L,
    },
    /// The response of a command.
    Status(TaskSlot),
    /// A request for data.
    R2t { slot: TaskSlot, ttt: Ttt },
    /// Any other PDU.
    Control(Box<ControlPdu>),
}

/// What waits to be sent, in order.
#[derive(Debug)]
pub(super) struct SendQueue<L> {
    entries: VecDeque<TcpPdu<L>>,
    controls: usize,
    /// Bytes of Data-In.
    data: usize,
}

/// Responses other than those of SCSI commands (which the window bounds) that may wait before the
/// session takes nothing more from the wire.
const MAX_CONTROLS: usize = 32;

impl<L: Lease> SendQueue<L> {
    pub(super) const fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            controls: 0,
            data: 0,
        }
    }

    pub(super) fn push(&mut self, out: TcpPdu<L>) {
        match &out {
            TcpPdu::Control(_) => self.controls += 1,
            TcpPdu::Data { data, .. } => self.data += data.len(),
            TcpPdu::Status(_) | TcpPdu::R2t { .. } => {}
        }
        self.entries.push_back(out);
    }

    /// Puts what is left of data back to the front.
    pub(super) fn put_back(&mut self, slot: TaskSlot, offset: u32, data: L) {
        self.data += data.len();
        self.entries.push_front(TcpPdu::Data { slot, offset, data });
    }

    pub(super) fn pop(&mut self) -> Option<TcpPdu<L>> {
        let out = self.entries.pop_front()?;
        match &out {
            TcpPdu::Control(_) => self.controls -= 1,
            TcpPdu::Data { data, .. } => self.data -= data.len(),
            TcpPdu::Status(_) | TcpPdu::R2t { .. } => {}
        }
        Some(out)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of Data-In that wait.
    pub(super) const fn data(&self) -> usize {
        self.data
    }

    pub(super) const fn is_crowded(&self) -> bool {
        self.controls >= MAX_CONTROLS
    }

    /// Drops all that belongs to SCSI commands which are not to be kept.
    pub(super) fn retain(&mut self, keep: impl Fn(TaskSlot) -> bool) {
        let left = &mut self.data;
        self.entries.retain(|out| match out {
            TcpPdu::Control(_) => true,
            TcpPdu::Status(slot) | TcpPdu::R2t { slot, .. } => keep(*slot),
            TcpPdu::Data { slot, data, .. } => {
                let kept = keep(*slot);
                if !kept {
                    *left -= data.len();
                }
                kept
            }
        });
    }

    pub(super) fn trim(&mut self) {
        self.entries.shrink_to_fit();
    }
}

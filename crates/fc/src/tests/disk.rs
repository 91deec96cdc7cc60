//! A device behind a target: a disk with blocks of 512 bytes, which stops when it is told to.

use std::collections::HashMap;

use scsi::medium::{HeapLease, Lease};
use scsi::task::{Command, Completed, Function, FunctionResult, SenseBytes, Tag};
use scsi::wire::sense::Status;

use super::good;
use crate::remote::RemoteId;
use crate::target::{FcpTarget, FcpTargetEvent};

/// The disk.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) bytes: Vec<u8>,
    /// So often did a command begin.
    pub(crate) executed: usize,
    /// It answers nothing by itself.
    pub(crate) is_stopped: bool,
    /// Commands that were stopped.
    pub(crate) stopped: Vec<Tag>,
    /// Task management that came, but for ABORT TASK.
    pub(crate) managed: Vec<Function>,
    /// How that ends.
    pub(crate) functions_end: FunctionResult,
    /// What has not ended of it.
    functions: Vec<(RemoteId, u32)>,
    /// What is to be aborted.
    aborting: Vec<(RemoteId, Tag)>,
    writing: HashMap<Tag, Writing>,
}

/// A write under way.
#[derive(Debug)]
struct Writing {
    start: usize,
    len: usize,
    come: usize,
}

/// What the disk moves at once.
const PIECE: usize = 8 << 10;

impl Disk {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            executed: 0,
            is_stopped: false,
            stopped: Vec::new(),
            managed: Vec::new(),
            functions_end: FunctionResult::Complete,
            functions: Vec::new(),
            aborting: Vec::new(),
            writing: HashMap::new(),
        }
    }

    /// Does what the target wants done.
    pub(crate) fn serve(
        &mut self,
        target: &mut FcpTarget<HeapLease>,
        event: FcpTargetEvent<HeapLease>,
    ) {
        match event {
            FcpTargetEvent::Execute { remote, command } => self.begin(target, remote, &command),
            FcpTargetEvent::DataOut {
                remote,
                tag,
                offset,
                data,
            } => self.store(target, (remote, tag), offset, &data),
            FcpTargetEvent::Manage {
                remote,
                id,
                function,
                ..
            } => self.manage(target, (remote, id), function),
        }
    }

    fn begin(&mut self, target: &mut FcpTarget<HeapLease>, remote: RemoteId, command: &Command) {
        self.executed += 1;
        let tag = command.tag;
        let [opcode, _, a, b, c, d, _, e, f, ..] = command.cdb;
        let start = u32::from_be_bytes([a, b, c, d]) as usize * 512;
        let len = usize::from(u16::from_be_bytes([e, f])) * 512;
        if self.is_stopped {
            self.stopped.push(tag);
            return;
        }
        let is_beyond = opcode != 0x12 && start + len > self.bytes.len();
        if is_beyond || opcode == 0x2a && len > command.expected_out as usize {
            let refused = Completed {
                status: Status::CheckCondition,
                sense: SenseBytes::EMPTY,
                ..good(0, 0)
            };
            return target.complete(remote, tag, &refused);
        }
        match opcode {
            0x12 => {
                let len = command.expected_in as usize;
                let data = HeapLease::from_bytes(b"LUNAR".repeat(1 + len / 5)[..len].to_vec());
                target.send_data_in(remote, tag, 0, data);
                target.complete(remote, tag, &good(len as u64, 0));
            }
            0x28 => {
                for offset in (0..len).step_by(PIECE) {
                    let piece = start + offset..start + len.min(offset + PIECE);
                    let data = HeapLease::from_bytes(self.bytes[piece].to_vec());
                    target.send_data_in(remote, tag, offset as u32, data);
                }
                target.complete(remote, tag, &good(len as u64, 0));
            }
            0x2a => {
                let come = 0;
                self.writing.insert(tag, Writing { start, len, come });
                for offset in (0..len).step_by(PIECE) {
                    let into = HeapLease::from_bytes(vec![0; PIECE.min(len - offset)]);
                    target.receive_data_out(remote, tag, offset as u32, into);
                }
            }
            _ => target.complete(remote, tag, &good(0, 0)),
        }
    }

    fn store(
        &mut self,
        target: &mut FcpTarget<HeapLease>,
        (remote, tag): (RemoteId, Tag),
        offset: u32,
        data: &HeapLease,
    ) {
        let Some(writing) = self.writing.get_mut(&tag) else {
            return;
        };
        let at = writing.start + offset as usize;
        data.copy_out(0, &mut self.bytes[at..at + data.len()]);
        writing.come += data.len();
        let len = writing.len;
        if writing.come == len {
            self.writing.remove(&tag);
            target.complete(remote, tag, &good(0, len as u64));
        }
    }

    fn manage(
        &mut self,
        target: &mut FcpTarget<HeapLease>,
        (remote, id): (RemoteId, u32),
        function: Function,
    ) {
        if let Function::AbortTask(tag) = function {
            self.writing.remove(&tag);
            self.aborting.push((remote, tag));
        } else {
            self.managed.push(function);
            self.functions.push((remote, id));
        }
        if !self.is_stopped {
            self.finish(target);
        }
    }

    /// Ends what it was asked to abort or to manage.
    pub(crate) fn finish(&mut self, target: &mut FcpTarget<HeapLease>) {
        for (remote, tag) in self.aborting.drain(..) {
            target.aborted(remote, tag);
        }
        for (remote, id) in self.functions.drain(..) {
            target.managed(remote, id, self.functions_end);
        }
    }

    /// Whether it is to abort something.
    pub(crate) fn is_aborting(&self) -> bool {
        !self.aborting.is_empty()
    }
}

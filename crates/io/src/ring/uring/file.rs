//! Files: what is in flight with them.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{cqueue, opcode, squeue};

use super::UringRing;
use super::queue::Op;
use super::socket::result_of;
use crate::ring::blocking::BlockingJob;
use crate::ring::file::{PendingFile, RingFile, Transfer, TransferDirection};
use crate::ring::lend::Received;
use crate::ring::{FileOp, FileRing, RingEvent, Token};

pub(super) struct FileTask {
    pub(super) pending: PendingFile,
    pub(super) work: FileWork,
}

pub(super) enum FileWork {
    Transfer {
        transfer: Transfer,
        /// Where the kernel knows its memory, while it has it.
        fixed: Option<u16>,
    },
    DataSync(#[expect(dead_code, reason = "held until it is over")] Arc<RingFile>),
    Elsewhere,
}

impl FileRing for UringRing {
    fn file(&mut self, token: Token, op: FileOp) {
        let (pending, job) = PendingFile::new(token, op);
        let entry = self.files.vacant_entry();
        let key = entry.key() as u32;
        match job {
            job if job.never_waits() => {
                let work = FileWork::Elsewhere;
                entry.insert(FileTask { pending, work });
                self.at_once.push(key as usize, job);
            }
            BlockingJob::Transfer(transfer) => {
                let fixed = None;
                let work = FileWork::Transfer { transfer, fixed };
                entry.insert(FileTask { pending, work });
                self.submit_transfer(key);
            }
            BlockingJob::DataSync(file) => {
                let sync = opcode::Fsync::new(Fd(file.as_raw_fd())).flags(FsyncFlags::DATASYNC);
                let work = FileWork::DataSync(file);
                entry.insert(FileTask { pending, work });
                // SAFETY: it points to nothing, and the task holds the file until it is over.
                unsafe { self.queue.push(sync.build(), Op::File(key)) };
            }
            call @ (BlockingJob::Call(_) | BlockingJob::Apart(..)) => {
                let work = FileWork::Elsewhere;
                entry.insert(FileTask { pending, work });
                self.jobs.push((key as usize, call));
            }
        }
    }
}

impl UringRing {
    fn submit_transfer(&mut self, key: u32) {
        let Some(FileTask { pending, work }) = self.files.get_mut(key as usize) else {
            return;
        };
        if let FileWork::Transfer { transfer, fixed } = work {
            // What goes by the page cache is copied, and no page of it looked up.
            let buffer = pending
                .buffer
                .as_ref()
                .filter(|_| transfer.file.is_direct());
            *fixed = buffer.and_then(|buffer| self.fixed.begin(self.queue.ring(), buffer));
            let entry = transfer_entry(transfer, *fixed);
            // SAFETY: the task holds the buffer and the file until the operation is over.
            unsafe { self.queue.push(entry, Op::File(key)) };
        }
    }

    pub(super) fn transferred(
        &mut self,
        key: u32,
        completion: &cqueue::Entry,
    ) -> Option<RingEvent<Received>> {
        let moved = result_of(completion);
        let task = self.files.get_mut(key as usize)?;
        let result = match &mut task.work {
            FileWork::Transfer { transfer, fixed } => {
                if let Some(place) = fixed.take() {
                    self.fixed.end(place);
                }
                transfer.advance(moved)
            }
            FileWork::DataSync(_) | FileWork::Elsewhere => Some(moved.map(|_| 0)),
        };
        match result {
            Some(result) => Some(self.file_over(key as usize, result)),
            None => {
                self.submit_transfer(key);
                None
            }
        }
    }

    pub(super) fn file_over(&mut self, key: usize, result: io::Result<u64>) -> RingEvent<Received> {
        let PendingFile { token, buffer } = self.files.remove(key).pending;
        RingEvent::File {
            token,
            result,
            buffer,
        }
    }
}

fn transfer_entry(transfer: &Transfer, fixed: Option<u16>) -> squeue::Entry {
    let fd = Fd(transfer.file.as_raw_fd());
    let len = u32::try_from(transfer.remaining()).unwrap_or(u32::MAX);
    let (memory, offset) = (transfer.address(), transfer.position());
    match (transfer.direction, fixed) {
        (TransferDirection::Read, None) => {
            let read = opcode::Read::new(fd, memory, len);
            read.offset(offset).build()
        }
        (TransferDirection::Read, Some(place)) => {
            let read = opcode::ReadFixed::new(fd, memory, len, place);
            read.offset(offset).build()
        }
        (TransferDirection::Write { flags }, None) => {
            let write = opcode::Write::new(fd, memory, len);
            write.offset(offset).rw_flags(flags).build()
        }
        (TransferDirection::Write { flags }, Some(place)) => {
            let write = opcode::WriteFixed::new(fd, memory, len, place);
            write.offset(offset).rw_flags(flags).build()
        }
    }
}

//! What is in flight with files.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use crate::ring::file::{PendingFile, RingFile, Transfer, TransferDirection};

pub(super) struct FileTask {
    pub(super) pending: PendingFile,
    pub(super) work: FileWork,
}

pub(super) enum FileWork {
    Transfer(Transfer),
    DataSync(#[expect(dead_code, reason = "held until it is over")] Arc<RingFile>),
    Elsewhere,
}

pub(super) fn transfer_entry(transfer: &Transfer) -> squeue::Entry {
    let fd = Fd(transfer.file.as_raw_fd());
    let len = u32::try_from(transfer.remaining()).unwrap_or(u32::MAX);
    let offset = transfer.position();
    match transfer.direction {
        TransferDirection::Read => {
            let read = opcode::Read::new(fd, transfer.address(), len);
            read.offset(offset).build()
        }
        TransferDirection::Write { flags } => {
            let write = opcode::Write::new(fd, transfer.address(), len);
            write.offset(offset).rw_flags(flags).build()
        }
    }
}

//! What an entry of the queue is for, and what is in flight with files.

use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::Fd;
use io_uring::{opcode, squeue};

use crate::ring::file::{PendingFile, RingFile, Transfer, TransferDirection};

/// What an entry is for, and how the kernel carries it.
#[derive(Clone, Copy)]
pub(super) enum Op {
    Bell,
    Cancel,
    Accept(u32),
    Receive(u32),
    Send(u32),
    File(u32),
    Watch(u32),
    Pause(u32),
}

impl Op {
    pub(super) fn data(self) -> u64 {
        let (kind, key) = match self {
            Self::Bell => (0, 0),
            Self::Cancel => (1, 0),
            Self::Accept(key) => (2, key),
            Self::Receive(key) => (3, key),
            Self::Send(key) => (4, key),
            Self::File(key) => (5, key),
            Self::Watch(key) => (6, key),
            Self::Pause(key) => (7, key),
        };
        kind << 32 | u64::from(key)
    }

    pub(super) fn of(data: u64) -> Self {
        let key = data as u32;
        match data >> 32 {
            0 => Self::Bell,
            2 => Self::Accept(key),
            3 => Self::Receive(key),
            4 => Self::Send(key),
            5 => Self::File(key),
            6 => Self::Watch(key),
            7 => Self::Pause(key),
            _ => Self::Cancel,
        }
    }
}

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

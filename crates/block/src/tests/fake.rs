//! A ring that does everything at once, or fails as it is told to.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

use ::io::memory::Buffer;
use ::io::ring::{FileOp, FileRing, SendBatch, SocketId, SocketRing, Token};
use rustix::io::{Errno, ReadWriteFlags};

use super::rig::{Ended, Files};

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Read,
    Write,
    DurableWrite,
    DataSync,
    Blocking,
}

#[derive(Default)]
pub(super) struct FakeRing {
    queue: VecDeque<(Token, FileOp)>,
    /// The next operation of a sort fails so, in place of being done.
    faults: Vec<(Sort, Errno)>,
    /// Everything that was done or failed.
    pub(super) log: Vec<Sort>,
}

impl FakeRing {
    pub(super) fn fail(&mut self, sort: Sort, error: Errno) {
        self.faults.push((sort, error));
    }

    fn fault(&mut self, sort: Sort) -> Option<Errno> {
        let at = self.faults.iter().position(|(of, _)| *of == sort)?;
        Some(self.faults.remove(at).1)
    }
}

/// There is no network.
impl SocketRing for FakeRing {
    fn adopt(&mut self, _: OwnedFd) -> io::Result<SocketId> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn receive(&mut self, _: SocketId, _: Token) {}

    fn send(&mut self, _: SocketId, _: Token, _: Box<SendBatch>) {}

    fn close(&mut self, _: SocketId) {}
}

impl FileRing for FakeRing {
    fn file(&mut self, token: Token, op: FileOp) {
        self.queue.push_back((token, op));
    }
}

impl Files for FakeRing {
    fn ring(&mut self) -> &mut dyn SocketRing {
        self
    }

    /// One operation, so that stories know what ends when.
    fn ended(&mut self) -> Vec<Ended> {
        let (token, op) = self.queue.pop_front().expect("something is under way");
        let sort = sort(&op);
        self.log.push(sort);
        let (result, buffer) = match self.fault(sort) {
            Some(error) => (Err(error.into()), buffer(op)),
            None => perform(op),
        };
        vec![(token, result, buffer)]
    }
}

fn sort(op: &FileOp) -> Sort {
    match op {
        FileOp::Read { .. } => Sort::Read,
        FileOp::Write { dsync: false, .. } => Sort::Write,
        FileOp::Write { .. } => Sort::DurableWrite,
        FileOp::DataSync { .. } => Sort::DataSync,
        FileOp::Blocking(_) | FileOp::Apart { .. } => Sort::Blocking,
    }
}

fn buffer(op: FileOp) -> Option<Buffer> {
    match op {
        FileOp::Read { buffer, .. } | FileOp::Write { buffer, .. } => Some(buffer),
        FileOp::DataSync { .. } | FileOp::Blocking(_) | FileOp::Apart { .. } => None,
    }
}

fn perform(op: FileOp) -> (io::Result<u64>, Option<Buffer>) {
    match op {
        FileOp::Read {
            file,
            offset,
            buffer,
        } => (read(&file, offset, &buffer), Some(buffer)),
        FileOp::Write {
            file,
            offset,
            buffer,
            dsync,
            ..
        } => (write(&file, offset, &buffer, dsync), Some(buffer)),
        FileOp::DataSync { file } => {
            let synced = rustix::fs::fdatasync(&**file);
            (synced.map(|()| 0).map_err(Into::into), None)
        }
        FileOp::Blocking(call) | FileOp::Apart { call, .. } => (call(), None),
    }
}

fn read(file: &OwnedFd, offset: u64, buffer: &Buffer) -> io::Result<u64> {
    let mut bytes = vec![0; buffer.len()];
    if rustix::io::pread(file, &mut bytes, offset)? < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    buffer.copy_in(0, &bytes);
    Ok(bytes.len() as u64)
}

fn write(file: &OwnedFd, offset: u64, buffer: &Buffer, dsync: bool) -> io::Result<u64> {
    let mut bytes = Vec::new();
    buffer.append_to(&mut bytes);
    let flags = if dsync {
        ReadWriteFlags::DSYNC
    } else {
        ReadWriteFlags::empty()
    };
    let written = rustix::io::pwritev2(file, &[io::IoSlice::new(&bytes)], offset, flags)?;
    Ok(written as u64)
}

//! Requests to netlink, with one answer or with a dump of many: what is asked and set by rtnetlink,
//! dcbnl and ethtool is written and read here.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::link::{ATTRIBUTE, HEADER, part};

/// A message to the kernel: its kind, what follows `nlmsghdr`, and what attributes follow that.
#[derive(Debug)]
pub(crate) struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    /// A request of this kind, with the fixed part `head`; its answer is a dump if `flags` say so.
    pub(super) fn new(kind: u16, flags: i32, head: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        let flags = (libc::NLM_F_REQUEST | flags) as u16;
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(head);
        Self(bytes)
    }

    /// The same with one more attribute.
    pub(super) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let Self(bytes) = &mut self;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self
    }

    /// The bytes that are sent.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// An attribute by itself, to be nested in another one.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let NetlinkRequest(bytes) = NetlinkRequest(Vec::new()).attribute(kind, value);
    bytes
}

/// Asks, and gives each message of the answer to `take`: its kind, and what follows its header.
///
/// # Errors
///
/// What the kernel answers, and `TimedOut` if it does not.
pub(super) fn ask(
    socket: &OwnedFd,
    request: NetlinkRequest,
    mut take: impl FnMut(u16, &[u8]),
) -> io::Result<()> {
    send(socket, &request.finish(), SendFlags::empty())?;
    let mut answer = vec![0; ANSWER_MAX];
    loop {
        let len = receive(socket, &mut answer)?;
        if read(&answer[..len], &mut take)? {
            return Ok(());
        }
    }
}

fn receive(socket: &OwnedFd, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(socket, &mut *into, RecvFlags::empty()) {
            Ok((len, _)) => return Ok(len),
            Err(Errno::AGAIN) => wait(socket)?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait(socket: &OwnedFd) -> io::Result<()> {
    let mut list = [PollFd::new(socket, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: PATIENCE_SECONDS,
        tv_nsec: 0,
    };
    match poll(&mut list, Some(&patience)) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads the messages of one datagram. Returns whether the answer ends with it.
fn read(mut messages: &[u8], take: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    while !messages.is_empty() {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let len = u32::from_ne_bytes(part(messages, 0).ok_or_else(broken)?) as usize;
        let kind = u16::from_ne_bytes(part(messages, 4).ok_or_else(broken)?);
        let flags = u16::from_ne_bytes(part(messages, 6).ok_or_else(broken)?);
        let body = messages.get(HEADER..len).ok_or_else(broken)?;
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR => {
                return match i32::from_ne_bytes(part(body, 0).ok_or_else(broken)?) {
                    0 => Ok(true),
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
            }
            _ => take(kind, body),
        }
        if i32::from(flags) & libc::NLM_F_MULTI == 0 {
            return Ok(true);
        }
        messages = messages.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

/// More than the kernel puts into one datagram of a dump (NLMSG_GOODSIZE, or 32 KiB).
const ANSWER_MAX: usize = 64 << 10;

const PATIENCE_SECONDS: i64 = 5;

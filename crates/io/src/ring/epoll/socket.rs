//! A socket, what is known of it, and what is in flight.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::event::epoll::EventFlags;

use crate::ring::batch::send_once;
use crate::ring::lend::{LENT_BYTES, Lender, Received};
use crate::ring::{RingEvent, SendBatch, Token};

/// A socket, registered edge-triggered. A flag of readiness is set by an edge, and cleared when
/// the kernel says EAGAIN or moves less than was asked for: there will be another edge then.
pub(super) struct EpollSocket {
    fd: OwnedFd,
    readable: bool,
    writable: bool,
    /// The peer will send no more, or an error is there: then no edge may follow, and it stays
    /// readable.
    ended: bool,
    receive: Option<Token>,
    send: Option<(Token, Box<SendBatch>)>,
}

impl EpollSocket {
    /// Nothing is known but that the first edges come by themselves; to try a send is worth it.
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            readable: false,
            writable: true,
            ended: false,
            receive: None,
            send: None,
        }
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.receive.is_none() && self.send.is_none()
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        self.fd
    }

    pub(super) fn note(&mut self, flags: EventFlags) {
        let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.ended |= flags.intersects(ended);
        self.readable |= flags.contains(EventFlags::IN) || self.ended;
        let writable = EventFlags::OUT | EventFlags::HUP | EventFlags::ERR;
        self.writable |= flags.intersects(writable);
    }

    pub(super) fn may_receive(&self) -> bool {
        self.readable && self.receive.is_some()
    }

    pub(super) fn may_send(&self) -> bool {
        self.writable && self.send.is_some()
    }

    pub(super) fn ask_receive(&mut self, token: Token) {
        assert!(self.receive.is_none(), "two receives on a socket");
        self.receive = Some(token);
    }

    pub(super) fn ask_send(&mut self, token: Token, mut batch: Box<SendBatch>) {
        assert!(self.send.is_none(), "two sends on a socket");
        batch.start();
        self.send = Some((token, batch));
    }

    /// Receives into a buffer that was taken; `None` when nothing is there, and the buffer still
    /// the caller's.
    pub(super) fn receive(&mut self, lender: &Rc<Lender>, id: u16) -> Option<RingEvent<Received>> {
        let token = self.receive?;
        let received = loop {
            match receive_once(&self.fd, lender, id) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return None;
                }
                received => break received,
            }
        };
        self.receive = None;
        let bytes = match received {
            Ok(len) => {
                self.readable = len == LENT_BYTES || self.ended;
                // SAFETY: the buffer was taken for us, and is not used again before it is back.
                Ok(unsafe { lender.lend(id, len) })
            }
            Err(error) => {
                lender.give_back(id);
                Err(error)
            }
        };
        Some(RingEvent::Received { token, bytes })
    }

    /// Sends as much as the kernel takes. Returns the event when the batch has left, or cannot.
    pub(super) fn send(&mut self) -> Option<RingEvent<Received>> {
        let (_, batch) = self.send.as_mut()?;
        let mut more = !batch.is_empty();
        let mut result = Ok(());
        while more {
            match send_once(&self.fd, batch) {
                Ok(sent) => more = batch.advance(sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable = false;
                    return None;
                }
                Err(error) if batch.mend(&error) => {}
                Err(error) => {
                    result = Err(error);
                    more = false;
                }
            }
        }
        let (token, mut batch) = self.send.take()?;
        batch.clear();
        Some(RingEvent::Sent {
            token,
            batch,
            result,
        })
    }

    /// Ends what is in flight; the socket is closed.
    pub(super) fn cancel(self) -> [Option<RingEvent<Received>>; 2] {
        let canceled = || io::Error::from_raw_os_error(libc::ECANCELED);
        let received = self.receive.map(|token| RingEvent::Received {
            token,
            bytes: Err(canceled()),
        });
        let sent = self.send.map(|(token, mut batch)| {
            batch.clear();
            RingEvent::Sent {
                token,
                batch,
                result: Err(canceled()),
            }
        });
        [received, sent]
    }
}

impl AsFd for EpollSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn receive_once(fd: &OwnedFd, lender: &Lender, id: u16) -> io::Result<usize> {
    let to = lender.address(id).as_ptr();
    // SAFETY: the buffer is mapped, of that length, and was taken for this call.
    let received = unsafe { libc::recv(fd.as_raw_fd(), to.cast(), LENT_BYTES, 0) };
    usize::try_from(received).map_err(|_| io::Error::last_os_error())
}

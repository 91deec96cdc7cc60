//! A socket, and what of it the kernel has.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use io_uring::{cqueue, opcode, squeue, types};

use super::buffers::{Buffers, GROUP};
use super::zero_copy::{self, ZeroCopy, ZeroCopySends, ZeroCopyState};
use crate::ring::batch::send_once;
use crate::ring::lend::Received;
use crate::ring::{RingEvent, SendBatch, Token};

/// A socket.
pub(super) struct UringSocket {
    fd: OwnedFd,
    receive: Option<Token>,
    send: Option<(Token, Box<SendBatch>)>,
    /// The send without a copy that reads this batch.
    lent_to: Option<usize>,
    zero_copy: ZeroCopyState,
    /// Events are those of cancellation from now on; when the last is told, the socket goes.
    closing: bool,
}

/// What a completion leads to.
pub(super) enum CompletionStep {
    /// An event.
    Event(RingEvent<Received>),
    /// The same operation again, for the rest.
    Again,
    /// The same again when there is a buffer.
    Starved,
}

impl UringSocket {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            receive: None,
            send: None,
            lent_to: None,
            zero_copy: ZeroCopyState::default(),
            closing: false,
        }
    }

    /// Lets large sends be tried without a copy.
    pub(super) fn lend_sends(&self) {
        self.zero_copy.set(ZeroCopy::Untried);
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.receive.is_none() && self.send.is_none()
    }

    pub(super) fn into_parts(self) -> (OwnedFd, ZeroCopyState) {
        (self.fd, self.zero_copy)
    }

    pub(super) fn ask_receive(&mut self, token: Token) {
        assert!(self.receive.is_none(), "two receives on a socket");
        self.receive = Some(token);
    }

    /// Returns whether there is anything to send.
    pub(super) fn ask_send(&mut self, token: Token, mut batch: Box<SendBatch>) -> bool {
        assert!(self.send.is_none(), "two sends on a socket");
        batch.start();
        let any = !batch.is_empty();
        self.send = Some((token, batch));
        any
    }

    /// The entry for the receive that was asked for.
    pub(super) fn receive_entry(&self) -> squeue::Entry {
        let receive = opcode::Recv::new(types::Fd(self.fd.as_raw_fd()), std::ptr::null_mut(), 0);
        let receive = receive.buf_group(GROUP).build();
        receive.flags(squeue::Flags::BUFFER_SELECT)
    }

    /// The entry for what is still to be sent. It points into the batch.
    pub(super) fn send_entry(&mut self) -> Option<squeue::Entry> {
        let (_, batch) = self.send.as_mut()?;
        let send = opcode::SendMsg::new(types::Fd(self.fd.as_raw_fd()), batch.message());
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        Some(send.flags(flags as u32).build())
    }

    /// Whether the send that was asked for may be worth doing without a copy.
    pub(super) fn may_lend(&self) -> bool {
        let is_large = |batch: &SendBatch| batch.bytes_in_buffers() >= zero_copy::WORTH;
        self.send.as_ref().is_some_and(|(_, batch)| is_large(batch))
            && self.zero_copy.get() != ZeroCopy::Off
    }

    /// What is to be sent without a copy, if `begin` takes it and gives it a number.
    pub(super) fn lend<T>(
        &mut self,
        begin: impl FnOnce(&OwnedFd, &ZeroCopyState, &mut SendBatch) -> Option<(usize, T)>,
    ) -> Option<(usize, T)> {
        let (_, batch) = self.send.as_mut()?;
        let begun = begin(&self.fd, &self.zero_copy, batch)?;
        self.lent_to = Some(begun.0);
        Some(begun)
    }

    /// The kernel has let go of the batch.
    pub(super) fn lends_no_more(&mut self) {
        self.lent_to = None;
    }

    /// Sends what the socket takes without waiting; gives the batch back if that was all.
    pub(super) fn send_now(&mut self) -> Option<Box<SendBatch>> {
        let (_, batch) = self.send.as_mut()?;
        // What is wrong with the socket is reported by the send of the rest.
        let all = send_once(&self.fd, batch).is_ok_and(|sent| !batch.advance(sent));
        let (_, mut batch) = self.send.take_if(|_| all)?;
        batch.clear();
        Some(batch)
    }

    /// Sends what the socket takes without waiting; tells of it as an event if that was all.
    pub(super) fn sent_now(&mut self) -> Option<RingEvent<Received>> {
        let token = self.send.as_ref()?.0;
        let batch = self.send_now()?;
        let result = Ok(());
        Some(RingEvent::Sent {
            token,
            batch,
            result,
        })
    }

    /// Receives what is there, if anything is, for a receive that the kernel does not have.
    pub(super) fn received_now(&mut self, buffers: &Buffers) -> Option<RingEvent<Received>> {
        let bytes = buffers.receive_now(&self.fd)?;
        let token = self.receive.take()?;
        Some(RingEvent::Received { token, bytes })
    }

    /// `late` says that the completion has waited behind many others.
    pub(super) fn received(
        &mut self,
        completion: &cqueue::Entry,
        buffers: &mut Buffers,
        late: bool,
    ) -> Option<CompletionStep> {
        let result = result_of(completion);
        let len = *result.as_ref().unwrap_or(&0);
        // A buffer may come with nothing in it.
        let chosen = cqueue::buffer_select(completion.flags());
        let bytes = chosen.map(|id| buffers.received(id, len, late.then_some(&self.fd)));
        let bytes = match result {
            _ if self.closing => Err(canceled()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                buffers.ran_out();
                return Some(CompletionStep::Starved);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Some(CompletionStep::Again);
            }
            Err(error) => Err(error),
            Ok(_) => Ok(bytes.unwrap_or_else(|| buffers.nothing())),
        };
        let token = self.receive.take()?;
        Some(CompletionStep::Event(RingEvent::Received { token, bytes }))
    }

    pub(super) fn sent(
        &mut self,
        completion: &cqueue::Entry,
        lent: &mut ZeroCopySends,
    ) -> Option<CompletionStep> {
        let (_, batch) = self.send.as_mut()?;
        let result = match result_of(completion) {
            Ok(sent) if !batch.advance(sent) => Ok(()),
            _ if self.closing => Err(canceled()),
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Ok(_) => return Some(CompletionStep::Again),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Some(CompletionStep::Again);
            }
            Err(error) if batch.mend(&error) => return Some(CompletionStep::Again),
            Err(error) => Err(error),
        };
        self.end_send(result, lent).map(CompletionStep::Event)
    }

    /// The send is over.
    pub(super) fn end_send(
        &mut self,
        result: io::Result<()>,
        lent: &mut ZeroCopySends,
    ) -> Option<RingEvent<Received>> {
        let (token, mut batch) = self.send.take()?;
        if let Some(number) = self.lent_to.take() {
            batch = lent.keep(number, batch);
        } else {
            batch.clear();
        }
        Some(RingEvent::Sent {
            token,
            batch,
            result,
        })
    }

    /// A receive that the kernel does not have is over.
    pub(super) fn cancel_receive(&mut self) -> Option<RingEvent<Received>> {
        let token = self.receive.take()?;
        let bytes = Err(canceled());
        Some(RingEvent::Received { token, bytes })
    }

    /// Shuts the socket down, by which all operations end.
    pub(super) fn close(&mut self) {
        self.closing = true;
        // It fails only when the peer was faster.
        let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Both);
    }

    /// Shuts the socket down; what is lent for it is let go of, sent or not.
    pub(super) fn abort(&mut self) {
        self.close();
        zero_copy::end_lending(&self.fd, &self.zero_copy);
    }

    /// Whether the socket is closed and all operations are over.
    pub(super) fn is_over(&self) -> bool {
        self.closing && self.is_idle()
    }
}

impl AsFd for UringSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A completion's result as a number of bytes, or whatever it counts.
pub(super) fn result_of(completion: &cqueue::Entry) -> io::Result<usize> {
    let result = completion.result();
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()))
}

fn canceled() -> io::Error {
    io::Error::from_raw_os_error(libc::ECANCELED)
}

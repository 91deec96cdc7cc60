//! A session in its full-feature phase, at the target (RFC 7143 §4.2, §11).
//!
//! Above it is a device server, to which it presents SAM's protocol services; below it one
//! connection (ErrorRecoveryLevel 0).

use std::collections::VecDeque;
use std::sync::Arc;

use scsi::medium::{Lease, Now};
use scsi::task::{Command, Completed, Function, FunctionResult, Tag};
use scsi::wire::lun::Lun;

use crate::datamover::Outgoing;
use crate::login::Violation;
use crate::parameters::Parameters;
use crate::target::Config;

/// A session.
#[derive(Debug)]
pub struct Session<L> {
    events: VecDeque<Event<L>>,
}

/// What a session wants of the device server and of its surroundings. The `nexus` of a
/// [`Command`] is filled in by whoever joins the two.
#[derive(Debug)]
pub enum Event<L> {
    /// *Execute Command*.
    Execute(Command),
    /// Data-Out that was asked for has come.
    DataOut {
        /// For which command.
        tag: Tag,
        /// Where in its data.
        offset: u32,
        /// The lease that was given to be filled.
        data: L,
    },
    /// *Task management*, to be answered by [`Session::managed`].
    Manage {
        /// Names the answer.
        id: u32,
        /// On which LUN.
        lun: Lun,
        /// What.
        function: Function,
    },
    /// Close the connection once what is queued has been transmitted: the session has ended.
    Close(Violation),
    /// Close it in good order: a logout. Nothing for the log.
    LoggedOut,
    /// Worth a line in the log, though the session goes on.
    Remark(Violation),
}

impl<L: Lease> Session<L> {
    /// The session that a login led to.
    #[must_use]
    pub fn new(_parameters: Parameters, _config: Arc<Config>, _now: Now) -> Self {
        Self {
            events: VecDeque::new(),
        }
    }

    /// Takes octets from the wire, as many as can be used now; the rest is to be given again
    /// after `poll` has given `None` and what came of it is done. Stops after each event.
    pub fn receive(&mut self, _now: Now, octets: &[u8]) -> usize {
        octets.len()
    }

    /// What to do next.
    pub fn poll(&mut self) -> Option<Event<L>> {
        self.events.pop_front()
    }

    /// *Receive Data-Out* of the device server: fill `into`.
    pub fn receive_data_out(&mut self, _tag: Tag, _offset: u32, _into: L) {}

    /// *Send Data-In*.
    pub fn send_data_in(&mut self, _tag: Tag, _offset: u32, _data: L) {}

    /// *Send Command Complete*.
    pub fn complete(&mut self, _tag: Tag, _completed: &Completed) {}

    /// The device server aborted the task.
    pub fn aborted(&mut self, _tag: Tag) {}

    /// The answer to [`Event::Manage`].
    pub fn managed(&mut self, _id: u32, _result: FunctionResult) {}

    /// A unit attention became pending on `lun` (RFC 7144 §5: told to those who asked).
    pub fn attention(&mut self, _lun: Lun, _code: u16) {}

    /// The target goes down: asks the initiator to log out within `seconds` (async event 1).
    pub fn request_logout(&mut self, _seconds: u16) {}

    /// Puts what is to be sent into `out`; returns whether there was anything.
    pub fn transmit(&mut self, _out: &mut impl Outgoing<L>) -> bool {
        false
    }

    /// When [`Session::timeout`] wants to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Now> {
        None
    }

    /// The deadline passed.
    pub fn timeout(&mut self, _now: Now) {}
}

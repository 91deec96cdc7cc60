//! The boundary between an initiator's session and what carries its PDUs and its data: the
//! Datamover of RFC 5047, as an initiator sees it.
//!
//! Above it an [`Initiator`](super::Initiator) owns the login, commands, CmdSN, task management and
//! everything that waits for an answer. Below it a mover knows how the data of a command is moved,
//! and keeps its part of the command's state. How a mover is fed and emptied is its own: bytes over
//! TCP ([`super::tcp`]), a queue pair over RDMA.
//!
//! A mover is a type parameter, so that the path over TCP is compiled as if there were no other.

use std::fmt::Debug;

use super::config::OperationalOffer;
pub use super::tasks::InitiatorTaskSlot;
use crate::parameters::Operational;

/// What carries the PDUs and the data of an initiator's connection.
pub trait InitiatorMover: Debug {
    /// What it knows of one command; the default before the command is sent.
    type Transfer: Debug + Default;

    /// After a logout the connection is closed by the target; else whoever is first closes it.
    const TARGET_CLOSES: bool;

    /// A status may come before one that has a lower StatSN.
    const MAY_OVERTAKE: bool;

    /// A Login Response may count its request in ExpCmdSN, though it was immediate.
    const MAY_COUNT_LOGINS: bool;

    /// Commands at once, whatever is configured and however wide the target's window is.
    const MAX_TASKS: usize;

    /// For a connection on which these keys hold.
    fn new(keys: &Operational) -> Self;

    /// What a login offers, of what is configured.
    fn offer(configured: &OperationalOffer) -> OperationalOffer;

    /// *Notice_Key_Values*: the login is over, and these keys hold from the next PDU on.
    fn notice_keys(&mut self, keys: &Operational);

    /// *Deallocate_Task_Resources*: a command is over. Returns whether something of it waits to be
    /// sent: [`Self::retain`] is to be called then.
    fn deallocate(&mut self, transfer: &Self::Transfer) -> bool;

    /// Drops what waits to be sent for commands that are not to be kept.
    fn retain(&mut self, keep: impl FnMut(InitiatorTaskSlot) -> bool);

    /// Whether it stands between two PDUs, with nothing to do.
    fn is_at_rest(&self) -> bool;

    /// The session has ended: what still comes is dropped.
    fn end(&mut self);

    /// Gives back the memory that a busy session needed.
    fn trim(&mut self);
}

//! Why a remote unit cannot be used, and what to do about it.

use std::io;

use runtime::n_port::NoPort;
use scsi::client::UnitRefusal;
use scsi::task::SenseBytes;

use super::LinkEnd;

/// Why a remote unit cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No connection.
    #[error("cannot connect: {0}{way_out}", way_out = way_out(.0))]
    Connect(io::Error),
    /// No port of our own.
    #[error(transparent)]
    Port(#[from] NoPort),
    /// No session.
    #[error(transparent)]
    Session(LinkEnd),
    /// No unit that can be used.
    #[error("LUN {lun}: {refusal}")]
    Unit {
        /// The number of the unit.
        lun: String,
        /// What the unit says.
        refusal: UnitRefusal,
    },
    /// REPORT LUNS did not go well.
    #[error(
        "the target does not report its LUNs (status {status:#04x}, sense {sense:?}): see its log, \
         and check that it admits this initiator"
    )]
    Luns {
        /// SAM-5 §5.3.1.
        status: u8,
        /// Empty where there is none.
        sense: SenseBytes,
    },
    /// The target moved us on again and again.
    #[error("the target redirected the login {0} times; give the address of its final portal")]
    Redirected(u8),
    /// Nothing came of it.
    #[error("the target did not answer within {0} s")]
    Late(u64),
    /// Room for some of the sessions, but not for all.
    #[error(
        "the target accepts {there} of {wanted} sessions, then: {cause}; give sessions={there}"
    )]
    Sessions {
        /// How many there can be.
        there: u16,
        /// How many were asked for.
        wanted: u16,
        /// Why no more.
        cause: Box<RemoteError>,
    },
    /// Our own machine.
    #[error("cannot set up I/O to reach it: {0}")]
    Ring(io::Error),
}

impl RemoteError {
    /// Whether a later attempt may do better: the target, its unit or the way to it may come.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        match self {
            Self::Connect(_)
            | Self::Port(_)
            | Self::Session(_)
            | Self::Unit { .. }
            | Self::Luns { .. }
            | Self::Late(_)
            | Self::Sessions { .. } => true,
            Self::Redirected(_) | Self::Ring(_) => false,
        }
    }
}

/// What to do about a connection that does not come about.
fn way_out(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::ConnectionRefused => ": no server listens there; check host and port",
        io::ErrorKind::TimedOut
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable => "; check the host and the network to it",
        _ => "",
    }
}

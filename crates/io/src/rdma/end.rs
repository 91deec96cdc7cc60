//! Why a queue pair ended, in plain words.

use super::sys::cm::event;
use super::sys::verbs::{
    IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR,
    IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR,
};

/// Why a queue pair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdmaEnd {
    /// This end asked for it.
    Requested,
    /// The peer disconnected.
    ByPeer,
    /// Something failed.
    Failed(RdmaFailure),
}

/// What failed: a message, and the name that the libraries have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaFailure {
    /// What it means, with who is guilty.
    pub problem: &'static str,
    /// How libibverbs or librdmacm call it.
    pub name: &'static str,
}

impl std::fmt::Display for RdmaFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.problem, self.name)
    }
}

/// A row: what a completion's status means.
struct Status(u32, &'static str, &'static str);

/// `enum ibv_wc_status`, as far as reliable connections have it.
const STATUSES: &[Status] = &[
    Status(
        IBV_WC_LOC_LEN_ERR,
        "the peer sent a message longer than what was agreed",
        "IBV_WC_LOC_LEN_ERR",
    ),
    Status(
        2,
        "the RDMA device does not take an operation",
        "IBV_WC_LOC_QP_OP_ERR",
    ),
    Status(
        IBV_WC_LOC_PROT_ERR,
        "the RDMA device does not know memory that was registered with it",
        "IBV_WC_LOC_PROT_ERR",
    ),
    Status(
        IBV_WC_WR_FLUSH_ERR,
        "the connection is gone",
        "IBV_WC_WR_FLUSH_ERR",
    ),
    Status(
        7,
        "the peer answered with what was not asked for",
        "IBV_WC_BAD_RESP_ERR",
    ),
    Status(
        8,
        "the peer reached for memory in a way that it may not",
        "IBV_WC_LOC_ACCESS_ERR",
    ),
    Status(
        9,
        "the peer does not take an operation, such as an invalidation",
        "IBV_WC_REM_INV_REQ_ERR",
    ),
    Status(
        IBV_WC_REM_ACCESS_ERR,
        "the peer does not let its memory be reached by a key that it gave",
        "IBV_WC_REM_ACCESS_ERR",
    ),
    Status(
        IBV_WC_REM_OP_ERR,
        "the peer could not do its part of an operation",
        "IBV_WC_REM_OP_ERR",
    ),
    Status(
        IBV_WC_RETRY_EXC_ERR,
        "the peer acknowledges nothing any more",
        "IBV_WC_RETRY_EXC_ERR",
    ),
    Status(
        IBV_WC_RNR_RETRY_EXC_ERR,
        "the peer has no receive for a message",
        "IBV_WC_RNR_RETRY_EXC_ERR",
    ),
    Status(19, "the RDMA device is broken", "IBV_WC_FATAL_ERR"),
    Status(20, "the peer does not answer", "IBV_WC_RESP_TIMEOUT_ERR"),
];

impl RdmaEnd {
    /// What the status of a completion means.
    pub(super) fn of_status(status: u32) -> Self {
        let known = STATUSES.iter().find(|row| row.0 == status);
        let Status(_, problem, name) = known.unwrap_or(&Status(
            0,
            "the RDMA device gave up an operation",
            "ibv_wc_status",
        ));
        Self::failed(problem, name)
    }

    /// What an event of the connection means; `None` if the connection goes on.
    pub(super) fn of_event(number: i32) -> Option<Self> {
        Some(match number {
            event::DISCONNECTED => Self::ByPeer,
            event::DEVICE_REMOVAL => Self::failed(
                "the RDMA device was taken away",
                "RDMA_CM_EVENT_DEVICE_REMOVAL",
            ),
            event::CONNECT_ERROR => Self::failed(
                "the connection failed while it was made",
                "RDMA_CM_EVENT_CONNECT_ERROR",
            ),
            event::UNREACHABLE => Self::failed(
                "the peer does not complete the connection",
                "RDMA_CM_EVENT_UNREACHABLE",
            ),
            event::REJECTED => Self::failed(
                "the peer takes the connection back",
                "RDMA_CM_EVENT_REJECTED",
            ),
            _ => return None,
        })
    }

    /// Another failure.
    pub(super) const fn failed(problem: &'static str, name: &'static str) -> Self {
        Self::Failed(RdmaFailure { problem, name })
    }
}

impl std::fmt::Display for RdmaEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Requested => f.write_str("this end asked for it"),
            Self::ByPeer => f.write_str("the peer disconnected"),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

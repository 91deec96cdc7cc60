//! Why requests are refused (FC-LS-2, LS_RJT).

use crate::wire::els::{LsRejectReason, explanation, reason};

/// The payload has not the length that it should.
pub(crate) const LENGTH: LsRejectReason =
    LsRejectReason::new(reason::PROTOCOL_ERROR, explanation::PAYLOAD_LENGTH);

/// No class 3, or less than 256 bytes of payload.
pub(crate) const SIZES: LsRejectReason = LsRejectReason::new(reason::LOGICAL_ERROR, RECEIVE_SIZE);

/// The names are not those that FIP told.
pub(crate) const OTHER_NAME: LsRejectReason = LsRejectReason::new(reason::LOGICAL_ERROR, PORT_NAME);

/// It may log in by no means.
pub(crate) const NOT_ALLOWED: LsRejectReason = LsRejectReason::new(reason::UNABLE, PORT_NAME);

/// There are as many logins as there may be.
pub(crate) const NO_PLACE: LsRejectReason =
    LsRejectReason::new(reason::UNABLE, explanation::NO_RESOURCES);

/// There is no N_Port login.
pub(crate) const NO_LOGIN: LsRejectReason =
    LsRejectReason::new(reason::UNABLE, explanation::LOGIN_REQUIRED);

/// The exchange is not known.
pub(crate) const NO_EXCHANGE: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_ERROR, explanation::INVALID_OX_RX_ID);

/// Come back soon.
pub(crate) const BUSY: LsRejectReason =
    LsRejectReason::new(reason::LOGICAL_BUSY, explanation::NONE);

/// Our own PLOGI goes first.
pub(crate) const IN_PROGRESS: LsRejectReason =
    LsRejectReason::new(reason::IN_PROGRESS, explanation::NONE);

/// Nothing that a port of our kind does.
pub(crate) const NOT_SUPPORTED: LsRejectReason =
    LsRejectReason::new(reason::NOT_SUPPORTED, explanation::NONE);

/// Explanation: service parameter error, receive data field size.
const RECEIVE_SIZE: u8 = 0x07;

/// Explanation: invalid N_Port name.
const PORT_NAME: u8 = 0x0d;

//! Status-Class and Status-Detail of a Login Response (RFC 7143 §11.13.5), and what goes with them
//! when a login fails.

use crate::auth::AuthRefusal;
use crate::keys::KeyMisuse;
use crate::text::MalformedText;
use scsi::violation::Violation;

/// Status-Class and Status-Detail, as 0xCCDD.
pub type LoginStatus = u16;

/// Login is proceeding.
pub const SUCCESS: LoginStatus = 0x0000;
/// Miscellaneous initiator errors.
pub const INITIATOR_ERROR: LoginStatus = 0x0200;
/// The initiator did not prove its identity.
pub const AUTHENTICATION_FAILURE: LoginStatus = 0x0201;
/// It may not use the target.
pub const AUTHORIZATION_FAILURE: LoginStatus = 0x0202;
/// There is no such target.
pub const NOT_FOUND: LoginStatus = 0x0203;
/// No version in common.
pub const UNSUPPORTED_VERSION: LoginStatus = 0x0205;
/// Too many connections in the session.
pub const TOO_MANY_CONNECTIONS: LoginStatus = 0x0206;
/// InitiatorName or TargetName is missing.
pub const MISSING_PARAMETER: LoginStatus = 0x0207;
/// No such SessionType.
pub const SESSION_TYPE: LoginStatus = 0x0209;
/// A connection for an unknown session.
pub const SESSION_DOES_NOT_EXIST: LoginStatus = 0x020a;
/// A PDU that is not a Login Request.
pub const INVALID_DURING_LOGIN: LoginStatus = 0x020b;
/// The target is going down.
pub const SERVICE_UNAVAILABLE: LoginStatus = 0x0301;
/// No room for another session.
pub const OUT_OF_RESOURCES: LoginStatus = 0x0302;

/// Why a login ends, for the initiator and for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoginFault {
    /// What the initiator is told before the connection is closed.
    pub(super) status: LoginStatus,
    /// What the log is told.
    pub(super) violation: Violation,
}

impl LoginFault {
    pub(super) const fn new(status: LoginStatus, rule: &'static str, clause: &'static str) -> Self {
        Self {
            status,
            violation: Violation { rule, clause },
        }
    }

    /// Of a session that the registry refuses.
    pub(super) const fn refused(status: LoginStatus) -> Self {
        let (rule, clause) = match status {
            TOO_MANY_CONNECTIONS => ("a second connection in one session", "RFC 7143 §13.2"),
            SESSION_DOES_NOT_EXIST => ("an unknown session", "RFC 7143 §6.3.1"),
            AUTHORIZATION_FAILURE => ("a login to replace another user's session", "RFC 7143 §9.2"),
            SERVICE_UNAVAILABLE => ("a login during shutdown", "RFC 7143 §11.13.5"),
            OUT_OF_RESOURCES => (
                "no room for another session",
                "--max-sessions, or max-sessions of the target",
            ),
            _ => ("the session was refused", "RFC 7143 §11.13.5"),
        };
        Self::new(status, rule, clause)
    }
}

impl From<KeyMisuse> for LoginFault {
    fn from(misuse: KeyMisuse) -> Self {
        Self {
            status: INITIATOR_ERROR,
            violation: misuse.into(),
        }
    }
}

impl From<AuthRefusal> for LoginFault {
    fn from(refusal: AuthRefusal) -> Self {
        Self {
            status: refusal.status(),
            violation: refusal.into(),
        }
    }
}

impl From<MalformedText> for LoginFault {
    fn from(malformed: MalformedText) -> Self {
        let rule = match malformed {
            MalformedText::TooLong => "a text over 16384 bytes",
            MalformedText::Unterminated => "a key=value pair without its terminating null",
            MalformedText::NoValue => "a key without a value",
            MalformedText::BadKey => "an invalid key name",
            MalformedText::NotUtf8 => "a value that is not UTF-8",
        };
        Self::new(INITIATOR_ERROR, rule, "RFC 7143 §6.1")
    }
}

pub(super) const NOT_A_LOGIN: LoginFault = LoginFault::new(
    INVALID_DURING_LOGIN,
    "a PDU other than a Login Request during login",
    "RFC 7143 §4.2.4",
);

pub(super) const TWO_AT_ONCE: LoginFault = LoginFault::new(
    INITIATOR_ERROR,
    "a Login Request before the last was answered",
    "RFC 7143 §6.3",
);

pub(super) const ADDITIONAL_HEADER: LoginFault = LoginFault::new(
    INITIATOR_ERROR,
    "an additional header segment in a Login Request",
    "RFC 7143 §11.12",
);

pub(super) const NO_RDMA_RESOURCES: LoginFault = LoginFault::new(
    OUT_OF_RESOURCES,
    "no memory can be pinned for the receives of another session",
    "RFC 7145 §10.1.3.1",
);

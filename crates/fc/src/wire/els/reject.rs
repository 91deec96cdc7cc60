//! LS_RJT in words (FC-LS-2, LS_RJT reason codes and explanations).

use std::fmt;

use super::link::{LsRejectReason, explanation, reason};

/// In words, with its codes.
impl fmt::Display for LsRejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason_words())?;
        f.write_str(self.explanation_words())?;
        write!(
            f,
            " (LS_RJT {:02x}h/{:02x}h)",
            self.reason, self.explanation
        )
    }
}

impl LsRejectReason {
    const fn reason_words(self) -> &'static str {
        match self.reason {
            reason::INVALID_COMMAND => "invalid command",
            reason::LOGICAL_ERROR => "logical error",
            reason::LOGICAL_BUSY => "busy",
            reason::PROTOCOL_ERROR => "protocol error",
            reason::UNABLE => "unable to perform",
            reason::NOT_SUPPORTED => "not supported",
            reason::IN_PROGRESS => "already in progress",
            reason::FIP_ERROR => "FIP error",
            reason::VENDOR => "a reason of its vendor",
            _ => "an unknown reason",
        }
    }

    const fn explanation_words(self) -> &'static str {
        match self.explanation {
            explanation::NONE => "",
            explanation::OPTIONS => ", service parameter error in the options",
            explanation::RECEIVE_SIZE => ", the receive data field size",
            explanation::PORT_NAME => ", invalid N_Port name",
            explanation::IN_PROGRESS => ", the request is in progress",
            explanation::LOGIN_REQUIRED => ", a login is required",
            explanation::INVALID_N_PORT_ID => ", invalid N_Port_ID",
            explanation::NO_RESOURCES => ", not enough resources for a login",
            explanation::NOT_SUPPORTED => ", the request is not supported",
            explanation::PAYLOAD_LENGTH => ", the length of the payload",
            explanation::ADDRESSING_MODE => ", the addressing mode",
            _ => ", an unknown explanation",
        }
    }
}

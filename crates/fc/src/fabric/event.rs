//! What a switch tells, and why.

use std::sync::Arc;

use super::PortNumber;
use crate::wire::els::{Code, LsRejectReason, reason};
use crate::wire::ethernet::Mac;
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// A VN_Port that is logged in to the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchLogin {
    /// Its N_Port_ID.
    pub fc_id: FcId,
    /// Its WWPN.
    pub wwpn: Wwn,
    /// Its WWNN.
    pub wwnn: Wwn,
    /// At which port of the switch.
    pub port: PortNumber,
    /// What people call that port.
    pub place: Arc<str>,
    /// The address of its ENode.
    pub enode: Mac,
    /// The address that its FCoE frames have: FC-MAP and N_Port_ID.
    pub mac: Mac,
    /// Bytes of payload that it and the switch port can take in a frame.
    pub max_payload: u16,
    /// Whether it logged in by FDISC, as a further VN_Port of its ENode.
    pub is_further: bool,
}

/// Why a VN_Port is not logged in any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogoutReason {
    /// It logged out.
    LoggedOut,
    /// Its ENode has logged in anew.
    Restarted,
    /// No keep alive of its ENode for two periods and a half.
    EnodeSilent,
    /// No keep alive of its own for two periods and a half.
    Silent,
    /// The link of the switch port is down, or the port was taken away.
    LinkDown,
    /// The MTU of the switch port is smaller than when it logged in.
    SmallerMtu,
    /// The switch ends.
    ShutDown,
    /// Another switch is active in place of this one.
    StoodDown,
}

/// A login that was rejected: FLOGI or FDISC by the FCF, PLOGI by a service of the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedLogin {
    /// At which port.
    pub place: Arc<str>,
    /// From which Ethernet address.
    pub from: Mac,
    /// FLOGI, FDISC or PLOGI.
    pub request: Code,
    /// Who wanted to log in, if that could be read.
    pub wwpn: Option<Wwn>,
    /// What it was told.
    pub reason: LsRejectReason,
}

impl RejectedLogin {
    /// Why, in words.
    #[must_use]
    pub fn why(&self) -> &'static str {
        match (self.request, self.reason) {
            (_, LsRejectReason::BUSY) if self.request == Code::PLOGI => "it asks too much",
            (_, LsRejectReason::BUSY) => "this switch is a standby",
            (_, LsRejectReason::TOO_OFTEN) => "too many hosts at its port log in again",
            (_, LsRejectReason::NOT_ALLOWED) => "its WWPN is logged in already",
            (_, LsRejectReason::NO_PLACE) => "there are as many logins as there may be",
            (_, LsRejectReason::NO_LOGIN) => "its ENode has not logged in by FLOGI",
            (_, LsRejectReason::SIZES) => "it has no class 3, or takes less than 256 bytes",
            (_, LsRejectReason::LENGTH) => "the request has a wrong length",
            (Code::PLOGI, LsRejectReason::OTHER_NAME) => "its WWPN is not that of its FLOGI",
            (_, LsRejectReason::OTHER_NAME) => "its WWPN or WWNN is zero",
            (_, reason) if reason.reason == reason::FIP_ERROR => {
                "it wants an address of its own (SPMA), where the fabric provides them"
            }
            _ => "the request is none that is served here",
        }
    }
}

/// What a switch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchEvent {
    /// A VN_Port has logged in.
    LoggedIn(SwitchLogin),
    /// A VN_Port is not logged in any more.
    LoggedOut(SwitchLogin, LogoutReason),
    /// A login was rejected. Of a port that has many, one a second is told.
    LoginRejected(RejectedLogin),
    /// N_Port_IDs were given that are to be kept: [`super::Switch::ids`] has them all.
    IdsChanged,
    /// Worth a line in the log, though all goes on.
    Remark {
        /// At which port.
        place: Arc<str>,
        /// From which Ethernet address.
        from: Mac,
        /// The rule that was broken.
        violation: Violation,
    },
    /// A standby has become active.
    Takeover {
        /// The first port of the switch that was active before, if any was heard.
        other: Option<Mac>,
    },
    /// The other switch of the pair is active too, and goes first. This one is its standby now.
    StoodDown {
        /// The first port of the other switch.
        other: Mac,
        /// At which port it was heard.
        place: Arc<str>,
        /// From which Ethernet address.
        from: Mac,
    },
}

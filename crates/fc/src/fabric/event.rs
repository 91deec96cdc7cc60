//! What a switch tells, and why.

use std::sync::Arc;

use super::PortNumber;
use crate::wire::ethernet::Mac;
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// A VN_Port that is logged in to the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricLogin {
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
    /// The switch ends.
    ShutDown,
    /// Another switch is active in place of this one.
    StoodDown,
}

/// What a switch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchEvent {
    /// A VN_Port has logged in.
    LoggedIn(FabricLogin),
    /// A VN_Port is not logged in any more.
    LoggedOut(FabricLogin, LogoutReason),
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
    Takeover,
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

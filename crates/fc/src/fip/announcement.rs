//! The messages of VN2VN, in each of which a port presents itself.

use super::{FCOE_OVERHEAD, Fip, FipConfig, LOCAL_IDS, Mode, vn_mac};
use crate::wire::ethernet::{self, Mac};
use crate::wire::fip::{Descriptor, Fc4Features, FipError, FipMessage, FipOperation, Flags};
use crate::wire::frame::MIN_PAYLOAD;
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// A port as it presents itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announcement {
    pub(super) operation: FipOperation,
    /// In which mode it is sent, if that shows.
    pub(super) mode: Option<Mode>,
    /// Of a probe: its N_Port_ID is one that it has recorded.
    pub(super) recorded: bool,
    pub(super) enode: Mac,
    pub(super) wwnn: Wwn,
    pub(super) wwpn: Wwn,
    pub(super) fc_id: FcId,
    /// In a claim and its response only, as are FC-4 attributes, which not every port sends.
    pub(super) max_fcoe: Option<u16>,
    pub(super) fc4: Option<Fc4Features>,
}

impl Announcement {
    pub(super) fn read(
        ethernet: &ethernet::EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<Self, Violation> {
        let mut found = FoundDescriptors::default();
        for descriptor in message.descriptors() {
            found.take(descriptor?)?;
        }
        let claims = is_claim(message.operation);
        if found.max_fcoe.is_some() != claims {
            return Err(DESCRIPTORS);
        }
        let (Some(enode), Some(wwnn), Some((mac, fc_id, wwpn))) =
            (found.mac, found.name, found.vx_port)
        else {
            return Err(DESCRIPTORS);
        };
        if !LOCAL_IDS.contains(&fc_id.0) || mac != vn_mac(fc_id) {
            return Err(NO_LOCAL_ID);
        }
        if enode.is_multicast() || (ethernet.src != enode && ethernet.src != mac) {
            return Err(OTHER_SENDER);
        }
        if found.max_fcoe.is_some_and(|size| size < MIN_FCOE) {
            return Err(SMALL);
        }
        Ok(Self {
            operation: message.operation,
            mode: mode(ethernet, message),
            recorded: !claims && message.flags.has(Flags::REC_P2P),
            enode,
            wwnn,
            wwpn,
            fc_id,
            max_fcoe: found.max_fcoe,
            fc4: found.fc4,
        })
    }

    /// Whether it is one of ours that has come back.
    pub(super) fn is_echo(&self, config: &FipConfig) -> bool {
        (self.enode, self.wwpn) == (config.mac, config.wwpn)
    }
}

/// Whether FC-4 attributes and Max FCoE Size belong to it.
pub(super) const fn is_claim(operation: FipOperation) -> bool {
    matches!(
        operation,
        FipOperation::ClaimNotification | FipOperation::ClaimResponse
    )
}

/// The bit that tells the mode means something else in probes; those tell it by their group.
fn mode(ethernet: &ethernet::EthernetHeader, message: &FipMessage<'_>) -> Option<Mode> {
    match (message.operation, ethernet.dst) {
        (FipOperation::ProbeRequest, Mac::ALL_VN2VN_ENODE) => Some(Mode::Multipoint),
        (FipOperation::ProbeRequest, Mac::ALL_PT2PT_ENODE) => Some(Mode::PointToPoint),
        (FipOperation::ProbeRequest | FipOperation::ProbeReply, _) => None,
        _ if message.flags.has(Flags::REC_P2P) => Some(Mode::PointToPoint),
        _ => Some(Mode::Multipoint),
    }
}

/// The descriptors that came.
#[derive(Default)]
struct FoundDescriptors {
    mac: Option<Mac>,
    name: Option<Wwn>,
    vx_port: Option<(Mac, FcId, Wwn)>,
    max_fcoe: Option<u16>,
    fc4: Option<Fc4Features>,
}

impl FoundDescriptors {
    /// Each may come once. What has to be understood, and is not, spoils the whole message.
    fn take(&mut self, descriptor: Descriptor<'_>) -> Result<(), Violation> {
        let twice = match descriptor {
            Descriptor::Mac(mac) => self.mac.replace(mac).is_some(),
            Descriptor::Name(name) => self.name.replace(name).is_some(),
            Descriptor::VxPort { mac, fc_id, wwpn } => {
                self.vx_port.replace((mac, fc_id, wwpn)).is_some()
            }
            Descriptor::MaxFcoeSize(size) => self.max_fcoe.replace(size).is_some(),
            Descriptor::Fc4(fc4) => self.fc4.replace(fc4).is_some(),
            Descriptor::Vendor { .. } => false,
            other => other.kind().is_critical(),
        };
        if twice { Err(DESCRIPTORS) } else { Ok(()) }
    }
}

impl Fip {
    /// Ours, to be sent.
    pub(super) fn present(&self, operation: FipOperation) -> Vec<u8> {
        let config = &self.config;
        let vx_port = Descriptor::VxPort {
            mac: vn_mac(self.fc_id),
            fc_id: self.fc_id,
            wwpn: config.wwpn,
        };
        let descriptors = [
            Descriptor::Mac(config.mac),
            Descriptor::Name(config.wwnn),
            vx_port,
            Descriptor::Fc4(Fc4Features::fcp(config.target, config.initiator)),
            Descriptor::MaxFcoeSize(config.max_fcoe),
        ];
        let number = if is_claim(operation) { 5 } else { 3 };
        crate::wire::fip::encode(operation, self.flags(operation), &descriptors[..number])
    }

    /// Our N_Port_ID is never a recorded one: nothing here outlives the process.
    fn flags(&self, operation: FipOperation) -> Flags {
        let probe = matches!(
            operation,
            FipOperation::ProbeRequest | FipOperation::ProbeReply
        );
        match self.mode {
            Mode::PointToPoint if !probe => Flags::REC_P2P,
            _ => Flags::default(),
        }
    }
}

impl From<FipError> for Violation {
    fn from(error: FipError) -> Self {
        let rule = match error {
            FipError::Truncated => "a truncated FIP message",
            FipError::Version(_) => "FIP of a version other than 1",
            FipError::Overrun(_) => "a FIP descriptor that exceeds the list",
            FipError::Length(_) => "a FIP descriptor of the wrong length",
        };
        Self {
            rule,
            clause: "FC-BB-6, FIP",
        }
    }
}

/// The shortest frame that may be the longest.
const MIN_FCOE: u16 = FCOE_OVERHEAD as u16 + MIN_PAYLOAD;

const DESCRIPTORS: Violation = Violation {
    rule: "a VN2VN message with a descriptor missing, twice, or out of place",
    clause: "FC-BB-6, VN2VN",
};

const NO_LOCAL_ID: Violation = Violation {
    rule: "a VN2VN N_Port_ID outside 000001h to 00FFFEh, or with a MAC address that does not match",
    clause: "FC-BB-6, VN2VN",
};

const OTHER_SENDER: Violation = Violation {
    rule: "a VN2VN message from a MAC address other than the one in it",
    clause: "FC-BB-6, VN2VN",
};

const SMALL: Violation = Violation {
    rule: "a Max FCoE Size too small for 256 bytes of payload",
    clause: "FC-BB-6, VN2VN",
};

//! The descriptors of a message that came to an FCF.

use std::time::Duration;

use super::standby::Partner;
use crate::wire::ethernet::Mac;
use crate::wire::fip::{Descriptor, DescriptorType, FipMessage};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

/// Each may come once.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) mac: Option<Mac>,
    pub(super) name: Option<Wwn>,
    pub(super) max_fcoe: Option<u16>,
    pub(super) vx_port: Option<(Mac, FcId, Wwn)>,
    pub(super) priority: Option<u8>,
    pub(super) fabric: Option<(u16, [u8; 3], Wwn)>,
    pub(super) period: Option<Duration>,
    /// What another switch of ours says to its partner.
    pub(super) partner: Option<Partner>,
}

impl Received {
    /// The descriptors of a message. One that has to be understood, and is not, spoils it.
    pub(super) fn read(message: &FipMessage<'_>) -> Result<Self, Violation> {
        let mut received = Self::default();
        for descriptor in message.descriptors() {
            if received.take(descriptor?) {
                return Err(DESCRIPTORS);
            }
        }
        Ok(received)
    }

    /// Whether it has no place in a message, or had been there.
    fn take(&mut self, descriptor: Descriptor<'_>) -> bool {
        match descriptor {
            Descriptor::Mac(mac) => self.mac.replace(mac).is_some(),
            Descriptor::Name(name) => self.name.replace(name).is_some(),
            Descriptor::MaxFcoeSize(size) => self.max_fcoe.replace(size).is_some(),
            Descriptor::VxPort { mac, fc_id, wwpn } => {
                self.vx_port.replace((mac, fc_id, wwpn)).is_some()
            }
            Descriptor::Priority(priority) => self.priority.replace(priority).is_some(),
            Descriptor::Fabric {
                vf_id,
                fc_map,
                name,
            } => self.fabric.replace((vf_id, fc_map, name)).is_some(),
            Descriptor::FkaAdvPeriod { period_ms, .. } => {
                let period = Duration::from_millis(u64::from(period_ms));
                self.period.replace(period).is_some()
            }
            Descriptor::Unknown { kind, body } if kind == PARTNER => {
                self.partner = Partner::parse(body);
                false
            }
            Descriptor::Vendor { .. } => false,
            other => other.kind().is_critical(),
        }
    }

    /// The address of the ENode, which has to be the sender's.
    pub(super) fn enode(&self, src: Mac) -> Result<Mac, Violation> {
        let enode = self.mac.ok_or(DESCRIPTORS)?;
        if enode != src || enode.is_multicast() {
            return Err(OTHER_SENDER);
        }
        Ok(enode)
    }
}

/// A descriptor that other switches of ours understand, and that all others have to ignore (types
/// 241 to 254 are left to vendors, and not critical): what it says to its partner.
pub(super) const PARTNER: DescriptorType = DescriptorType(241);

pub(super) const DESCRIPTORS: Violation = Violation {
    rule: "a FIP message to an FCF with a descriptor missing, twice, or out of place",
    clause: "FC-BB-6, FIP",
};

pub(super) const OTHER_SENDER: Violation = Violation {
    rule: "a FIP message from a MAC address other than the one in it",
    clause: "FC-BB-6, FIP",
};

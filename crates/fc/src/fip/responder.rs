//! FIP VLAN discovery (FC-BB-6): hosts ask on the interface itself, without a tag, on which VLAN
//! others are. Ports of VN2VN are answered here; what answers tell is read by [`notified`].
//!
//! | asked of | answered |
//! |---|---|
//! | all FCFs, all VN2VN ENodes, or our own address | VN2VN VLAN Notification with our VLAN, 0 for none, to whom the request names |
//! | another address | nothing |
//!
//! There is no state besides what senders may still ask.

use scsi::medium::Now;
use scsi::violation::Violation;

use super::budget::{Budget, OverBudget};
use super::transmit::{OutgoingMessages, PendingMessage};
use super::{FLOOD, FipStatistics};
use crate::frames::FrameSink;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};

/// What answers VLAN Requests at an Ethernet port.
#[derive(Debug)]
pub struct VlanResponder {
    /// The address that answers come from.
    mac: Mac,
    /// The VLAN, or 0.
    vid: u16,
    budget: Budget,
    outgoing: OutgoingMessages,
    statistics: FipStatistics,
}

impl VlanResponder {
    /// One with this address that tells this VLAN, 0 for none. `random` are fresh random bytes.
    #[must_use]
    pub fn new(mac: Mac, vid: u16, random: [u8; 8]) -> Self {
        Self {
            mac,
            vid,
            budget: Budget::new(u64::from_le_bytes(random)),
            outgoing: OutgoingMessages::default(),
            statistics: FipStatistics::default(),
        }
    }

    /// The groups that the Ethernet port has to receive.
    #[must_use]
    pub const fn groups() -> [Mac; 2] {
        [Mac::ALL_FCF, Mac::ALL_VN2VN_ENODE]
    }

    /// What was counted.
    #[must_use]
    pub const fn statistics(&self) -> FipStatistics {
        self.statistics
    }

    /// Takes the payload of an Ethernet frame of EtherType FIP that came without a tag.
    ///
    /// # Errors
    ///
    /// The rule that it broke. It has been ignored, and all goes on.
    pub fn receive(
        &mut self,
        now: Now,
        ethernet: &EthernetHeader,
        payload: &[u8],
    ) -> Result<(), Violation> {
        if ethernet.src == self.mac {
            return Ok(());
        }
        self.statistics.received += 1;
        if let Err(OverBudget { is_first }) = self.budget.take(now, ethernet.src) {
            self.statistics.dropped += 1;
            return if is_first { Err(FLOOD) } else { Ok(()) };
        }
        let taken = self.take(ethernet, payload);
        self.statistics.refused += u64::from(taken.is_err());
        taken
    }

    fn take(&mut self, ethernet: &EthernetHeader, payload: &[u8]) -> Result<(), Violation> {
        let is_to_us = ethernet.dst == self.mac || Self::groups().contains(&ethernet.dst);
        let message = FipMessage::parse(payload)?;
        if message.operation != FipOperation::VlanRequest || !is_to_us {
            return Ok(());
        }
        let asker = asker(ethernet, &message)?;
        let says = [Descriptor::Mac(self.mac), Descriptor::Vlan(self.vid)];
        self.outgoing.push(PendingMessage {
            dst: asker,
            src: self.mac,
            bytes: fip::encode(FipOperation::Vn2vnVlanNotification, Flags(0), &says),
            least: 0,
        });
        Ok(())
    }

    /// Writes what is to be sent, as far as there is room.
    pub fn transmit(&mut self, out: &mut impl FrameSink) {
        self.statistics.sent += self.outgoing.write(None, out);
    }
}

/// Whose request it is: its sender's.
fn asker(ethernet: &EthernetHeader, message: &FipMessage<'_>) -> Result<Mac, Violation> {
    let mut named = None;
    for descriptor in message.descriptors() {
        match descriptor? {
            Descriptor::Mac(mac) if named.replace(mac).is_none() => {}
            Descriptor::Mac(_) => return Err(REQUEST),
            // A name says which ENode it is, which does not matter here.
            Descriptor::Name(_) | Descriptor::Vendor { .. } => {}
            other if other.kind().is_critical() => return Err(REQUEST),
            _ => {}
        }
    }
    let asker = named.filter(|mac| *mac == ethernet.src && !mac.is_multicast());
    asker.ok_or(REQUEST)
}

/// What a FIP VLAN Notification tells: its sender's address, and VLANs in its order, of which 0 is
/// none. Those that there cannot be are left out.
///
/// # Errors
///
/// A descriptor is malformed, missing, twice, or out of place.
pub fn notified(message: &FipMessage<'_>) -> Result<(Mac, Vec<u16>), Violation> {
    let (mut from, mut vlans) = (None, Vec::new());
    for descriptor in message.descriptors() {
        match descriptor? {
            Descriptor::Mac(mac) if from.replace(mac).is_none() => {}
            Descriptor::Vlan(vid) => vlans.push(vid & VID),
            Descriptor::Vendor { .. } => {}
            other if other.kind().is_critical() => return Err(NOTIFICATION),
            _ => {}
        }
    }
    vlans.retain(|vid| *vid <= LAST_VID);
    from.map(|mac| (mac, vlans)).ok_or(NOTIFICATION)
}

/// The bits of a VLAN identifier, and the last one that may be used (IEEE 802.1Q).
const VID: u16 = 0x0fff;
const LAST_VID: u16 = 4094;

/// Of a notification, and of one from another station than it says.
pub(in crate::fip) const NOTIFICATION: Violation = Violation {
    rule: "a FIP VLAN Notification that is not from an FCF, or with a descriptor missing, twice, \
           or out of place",
    clause: "FC-BB-6, FIP VLAN discovery",
};

const REQUEST: Violation = Violation {
    rule: "a FIP VLAN Request that is not its sender's, or with a descriptor missing, twice, or \
           out of place",
    clause: "FC-BB-6, FIP VLAN discovery",
};

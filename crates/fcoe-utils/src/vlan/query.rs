//! VLAN discovery at one Ethernet port.
//!
//! | when | what |
//! |---|---|
//! | at first, then each second until the first answer | VLAN Request, untagged, to all FCFs or all ports of VN2VN |
//! | the first Notification | half a second more, for those of other FCFs |
//! | no Notification one second after the last Request | the end |

use std::time::Duration;

use fc::fip::responder::notified;
use fc::wire::ethernet::{EthernetHeader, FIP, MIN_LEN, Mac, VlanTag};
use fc::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};

use super::Forwarder;
use crate::change::FcoeMode;

/// Between two Requests, and after the first answer.
const AGAIN: Duration = Duration::from_secs(1);
const OTHERS: Duration = Duration::from_millis(500);

/// Forwarders that are kept; FCFs on an Ethernet are few.
pub const FORWARDERS_MAX: usize = 256;

/// The discovery at one port. Time is told since any moment.
#[derive(Debug)]
pub struct VlanQuery {
    mode: FcoeMode,
    mac: Mac,
    /// Requests to be sent yet.
    requests: u32,
    /// When the next thing happens; none once it is over.
    due: Option<Duration>,
    found: Vec<Forwarder>,
}

impl VlanQuery {
    /// Begins to ask from this address, and asks `retries` times again where nothing answers.
    #[must_use]
    pub const fn new(mode: FcoeMode, mac: Mac, retries: u32, now: Duration) -> Self {
        Self {
            mode,
            mac,
            requests: retries.saturating_add(1),
            due: Some(now),
            found: Vec::new(),
        }
    }

    /// The frame that is to be sent now.
    pub fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.due? > now {
            return None;
        }
        if !self.found.is_empty() || self.requests == 0 {
            self.due = None;
            return None;
        }
        self.requests -= 1;
        self.due = Some(now + AGAIN);
        Some(self.request())
    }

    /// When to poll next. `None` once the discovery is over.
    #[must_use]
    pub const fn due(&self) -> Option<Duration> {
        self.due
    }

    /// What was found, in the order in which it was told.
    #[must_use]
    pub fn found(&self) -> &[Forwarder] {
        &self.found
    }

    /// VLAN Request: only the sender's address is in it, as Linux has it.
    fn request(&self) -> Vec<u8> {
        let to = match self.mode {
            FcoeMode::Fabric => Mac::ALL_FCF,
            FcoeMode::Vn2vn => Mac::ALL_VN2VN_ENODE,
        };
        let header = EthernetHeader::new(self.mac, to, FIP);
        let sender = Descriptor::Mac(self.mac);
        let message = fip::encode(FipOperation::VlanRequest, Flags::FPMA, &[sender]);
        let mut frame = vec![0; (header.len() + message.len()).max(MIN_LEN)];
        header.put(&mut frame)[..message.len()].copy_from_slice(&message);
        frame
    }

    /// Takes a frame that has come in, with the tag that was taken out of it. What is no answer to
    /// this discovery, or is malformed, is left.
    pub fn receive(&mut self, now: Duration, frame: &[u8], tag: Option<u16>) {
        let tag = tag.map(VlanTag::decode);
        let Ok((header, payload)) = EthernetHeader::parse_received(frame, tag) else {
            return;
        };
        let is_ours = header.dst == self.mac && header.ethertype == FIP && header.vid() == 0;
        let Some((mac, vids)) = FipMessage::parse(payload)
            .ok()
            .filter(|message| is_ours && self.is_answer(message.operation))
            .and_then(|message| notified(&message).ok())
        else {
            return;
        };
        if self.due.is_none() || vids.is_empty() {
            return;
        }
        if self.found.is_empty() {
            self.due = Some(now + OTHERS);
        }
        for vid in vids {
            let forwarder = Forwarder { vid, mac };
            if !self.found.contains(&forwarder) && self.found.len() < FORWARDERS_MAX {
                self.found.push(forwarder);
            }
        }
    }

    fn is_answer(&self, operation: FipOperation) -> bool {
        operation
            == match self.mode {
                FcoeMode::Fabric => FipOperation::VlanNotification,
                FcoeMode::Vn2vn => FipOperation::Vn2vnVlanNotification,
            }
    }
}

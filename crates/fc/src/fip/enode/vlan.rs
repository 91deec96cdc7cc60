//! FIP VLAN discovery (FC-BB-6): on which VLANs there are FCFs, asked for without a tag.

use std::time::Duration;

use super::soliciting::REST;
use super::{Enode, EnodeState, FabricNotice, SETTLING};
use crate::fip::responder::{NOTIFICATION, notified};
use crate::wire::ethernet::{EthernetHeader, Mac, VlanTag};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use scsi::violation::Violation;

impl Enode {
    /// Begins with the VLAN, or with the FCF where no VLAN is discovered.
    pub(super) fn look_for_fabric(&mut self) {
        if self.config.fabric.discovers_vlan {
            self.set_vlan(0);
            self.state = EnodeState::Vlan {
                request_at: self.now + REQUESTS,
                settled_at: None,
                untagged_at: self.now + PATIENCE,
            };
            self.request_vlans();
        } else {
            self.tag = self.given_tag;
            self.solicit();
        }
    }

    fn request_vlans(&mut self) {
        let (mac, wwnn) = (self.config.mac, self.config.wwnn);
        let says = [Descriptor::Mac(mac), Descriptor::Name(wwnn)];
        self.send((Mac::ALL_FCF, mac), FipOperation::VlanRequest, &says);
    }

    pub(super) fn vlan_step(&mut self) {
        let now = self.now;
        let EnodeState::Vlan {
            request_at,
            settled_at,
            untagged_at,
        } = &mut self.state
        else {
            return;
        };
        if settled_at.is_some_and(|at| at <= now) {
            self.next_vlan();
        } else if *untagged_at <= now {
            self.tell_problem(FabricNotice::NoVlan);
            self.vlans.push_back(0);
            self.next_vlan();
        } else if *request_at <= now {
            *request_at = now + REQUESTS;
            self.request_vlans();
        }
    }

    /// Tries the next VLAN; after the last one they are asked for again, after a rest if FCFs have
    /// refused us.
    pub(super) fn next_vlan(&mut self) {
        match self.vlans.pop_front() {
            Some(vid) => {
                self.set_vlan(vid);
                self.solicit();
            }
            None if self.has_refusal => self.rest(REST),
            None => self.look_for_fabric(),
        }
    }

    /// What is known of FCFs was of another VLAN.
    fn set_vlan(&mut self, vid: u16) {
        let tag = (vid != 0).then_some(VlanTag {
            priority: PRIORITY,
            dei: false,
            vid,
        });
        if tag != self.tag {
            self.tag = tag;
            self.fcfs = super::Fcfs::default();
            self.outgoing.clear();
        }
    }

    /// A VLAN Notification.
    pub(super) fn vlans_told(
        &mut self,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let EnodeState::Vlan { settled_at, .. } = &mut self.state else {
            return Ok(());
        };
        if !message.flags.has(Flags::F_PORT) || ethernet.dst != self.config.mac {
            return Err(NOTIFICATION);
        }
        // A switch whose FCFs have no VLAN tells 0.
        let (from, vlans) = notified(message)?;
        if from != ethernet.src || from.is_multicast() {
            return Err(NOTIFICATION);
        }
        if !vlans.is_empty() {
            settled_at.get_or_insert(self.now + SETTLING);
        }
        for vid in vlans {
            if self.vlans.len() < MAX_VLANS && !self.vlans.contains(&vid) {
                self.vlans.push_back(vid);
            }
        }
        Ok(())
    }
}

/// Between VLAN Requests.
const REQUESTS: Duration = Duration::from_millis(500);

/// How long VLANs are asked for, before no VLAN is tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// As many VLANs are tried.
const MAX_VLANS: usize = 16;

/// The priority of FCoE by custom.
const PRIORITY: u8 = 3;

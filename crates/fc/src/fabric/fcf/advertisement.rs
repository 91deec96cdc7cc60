//! Discovery: VLANs, Advertisements, and who asks for them (FC-BB-6, FIP).

use std::collections::BTreeMap;
use std::time::Duration;

use scsi::medium::Now;

use super::super::PortNumber;
use super::received::{DESCRIPTORS, PARTNER, Received};
use super::{Fcf, Identity};
use crate::fip::FCOE_OVERHEAD;
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{self, Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::frame::MIN_PAYLOAD;
use crate::wire::names::Wwn;
use scsi::violation::Violation;

/// Other FCFs on the Ethernet of a port, and when they were heard last.
#[derive(Debug, Default)]
pub(super) struct OtherFcfs(BTreeMap<Mac, Now>);

impl OtherFcfs {
    pub(super) fn records(&self) -> usize {
        self.0.len()
    }

    /// One was heard. Whether that is to be told: it was not there for a while.
    pub(super) fn hear(&mut self, now: Now, fcf: Mac) -> bool {
        let is_full = self.0.len() >= OTHERS && !self.0.contains_key(&fcf);
        if is_full {
            self.0.retain(|_, heard| now < heard.saturating_add(FORGET));
        }
        if self.0.len() >= OTHERS && is_full {
            return false;
        }
        let before = self.0.insert(fcf, now);
        before.is_none_or(|heard| now >= heard.saturating_add(FORGET))
    }
}

impl Fcf {
    /// The VLAN of the fabric, to who asks. Neither the question nor the answer carries a tag.
    pub(super) fn vlan_request(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let asker = Received::read(message)?.enode(ethernet.src)?;
        let Some(port) = self.ports.get(&number) else {
            return Ok(());
        };
        let vlan = self.identity.vlan.unwrap_or(port.config.vid());
        let flags = Flags::FPMA.with(Flags::F_PORT);
        let descriptors = [Descriptor::Mac(port.config.mac), Descriptor::Vlan(vlan)];
        let bytes = fip::encode(FipOperation::VlanNotification, flags, &descriptors);
        self.send_as(number, asker, bytes, (0, false));
        Ok(())
    }

    /// An ENode looks for FCFs. The answer is as long as the longest frame that both can take, so
    /// that it arrives only if such frames do.
    pub(super) fn solicitation(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        if message.flags.has(Flags::F_PORT) {
            // An FCF that looks for others, to make ISLs.
            return Ok(());
        }
        let received = Received::read(message)?;
        let enode = received.enode(ethernet.src)?;
        let (Some(_), Some(size)) = (received.name, received.max_fcoe) else {
            return Err(DESCRIPTORS);
        };
        if usize::from(size) < FCOE_OVERHEAD + usize::from(MIN_PAYLOAD) {
            return Err(SMALL);
        }
        let now = self.now;
        if let Some(port) = self.ports.get_mut(&number) {
            port.soliciting.renew(now, enode);
            let fcf = port.config.mac;
            let least = usize::from(size.min(port.max_fcoe));
            let bytes = self.advertise_as(fcf, Flags::SOLICITED);
            self.send_as(number, enode, bytes, (least, true));
        }
        Ok(())
    }

    /// What it says of itself at one of its ports; to FCFs, also what a partner has to know.
    fn advertise_as(&self, fcf: Mac, flags: Flags) -> Vec<u8> {
        let identity = &self.identity;
        let number = if flags.has(Flags::FCF) { 6 } else { 5 };
        let mut flags = flags.with(Flags::FPMA).with(Flags::F_PORT);
        if self.is_active() {
            flags = flags.with(Flags::AVAILABLE);
        }
        let partner = self.as_partner().encode();
        let (vf_id, fc_map, name) = identity.fabric();
        let descriptors = [
            Descriptor::Priority(identity.priority),
            Descriptor::Mac(fcf),
            Descriptor::Name(identity.switch_name),
            Descriptor::Fabric {
                vf_id,
                fc_map,
                name,
            },
            Descriptor::FkaAdvPeriod {
                disabled: false,
                period_ms: identity.period.as_millis() as u32,
            },
            Descriptor::Unknown {
                kind: PARTNER,
                body: &partner,
            },
        ];
        fip::encode(FipOperation::Advertisement, flags, &descriptors[..number])
    }

    /// Tells all ENodes and all FCFs at a port, and again after a period and 0 to 100 ms by lot.
    pub(super) fn advertise(&mut self, number: PortNumber) {
        let fuzz = Duration::from_micros(self.random.u64(..FUZZ.as_micros() as u64));
        let next = self.now.saturating_add(self.identity.period + fuzz);
        let Some(port) = self.ports.get_mut(&number).filter(|port| port.is_up) else {
            return;
        };
        port.next = Some(next);
        let fcf = port.config.mac;
        let to_enodes = self.advertise_as(fcf, Flags::default());
        self.send(number, Mac::ALL_ENODE, to_enodes);
        let to_fcfs = self.advertise_as(fcf, Flags::FCF);
        self.send(number, Mac::ALL_FCF, to_fcfs);
    }

    pub(super) fn advertise_everywhere(&mut self) {
        let numbers: Vec<_> = self.ports.keys().copied().collect();
        for number in numbers {
            self.advertise(number);
        }
    }

    pub(super) fn advertise_due(&mut self) {
        let now = self.now;
        let due = self.ports.iter();
        let due = due.filter(|(_, port)| port.next.is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(number, _)| *number).collect();
        for number in due {
            self.advertise(number);
        }
    }

    /// Another FCF tells that it is there.
    pub(super) fn advertisement(
        &mut self,
        number: PortNumber,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let is_ours = |mac| self.ports.values().any(|port| port.config.mac == mac);
        if !message.flags.has(Flags::F_PORT) || is_ours(ethernet.src) {
            return Ok(());
        }
        let received = Received::read(message)?;
        let fcf = received.enode(ethernet.src)?;
        let (Some(name), Some(fabric), Some(_)) = (received.name, received.fabric, received.period)
        else {
            return Err(DESCRIPTORS);
        };
        if name == self.identity.switch_name {
            return self.namesake(number, ethernet, (message.flags, &received));
        }
        self.other_fcf(number, fcf, fabric == self.identity.fabric())
    }

    fn other_fcf(&mut self, number: PortNumber, fcf: Mac, same: bool) -> Result<(), Violation> {
        let now = self.now;
        let port = self.ports.get_mut(&number);
        let is_news = port.is_some_and(|port| port.others.hear(now, fcf));
        match (is_news, same) {
            (false, _) => Ok(()),
            (true, true) => Err(NO_LINK),
            (true, false) => Err(OTHER_FABRIC),
        }
    }
}

impl Identity {
    /// As an Advertisement has it: VF_ID, FC-MAP, Fabric_Name.
    pub(super) const fn fabric(&self) -> (u16, [u8; 3], Wwn) {
        (VF_ID, self.fc_map, self.fabric_name)
    }
}

/// There are no virtual fabrics on an Ethernet.
const VF_ID: u16 = 0;

const FUZZ: Duration = Duration::from_millis(100);

/// Other FCFs that are remembered at a port.
const OTHERS: usize = 16;

/// After so long without a word, another FCF is told again. It is longer than the longest period.
const FORGET: Duration = Duration::from_secs(300);

const SMALL: Violation = Violation {
    rule: "a Max FCoE Size too small for 256 bytes of payload",
    clause: "FC-BB-6, FIP",
};

const OTHER_FABRIC: Violation = Violation {
    rule: "an FCF of another fabric on this Ethernet; Linux then chooses neither",
    clause: "FC-BB-6, FCF discovery",
};

const NO_LINK: Violation = Violation {
    rule: "another FCF of this fabric; there is no link to it, so its ports are not seen here",
    clause: "a limit of Lunar",
};

//! What a Linux ENode makes of an Advertisement.

use std::time::Duration;

use fc::wire::ethernet::{EthernetHeader, Mac};
use fc::wire::fip::{Descriptor, FipMessage, Flags};
use fc::wire::names::Wwn;
use scsi::medium::Now;

/// An FCF.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinuxFcf {
    pub(super) mac: Mac,
    pub(super) switch_name: Wwn,
    fabric_name: Wwn,
    vf_id: u16,
    fc_map: [u8; 3],
    pub(super) priority: u8,
    pub(super) period: Duration,
    pub(super) keeps_alive: bool,
    flags: Flags,
    heard: Now,
}

impl LinuxFcf {
    /// `None` if a descriptor is missing, twice, or one that has to be understood and is not.
    pub(super) fn read(
        now: Now,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Option<Self> {
        let mut fcf = Self {
            mac: Mac::default(),
            switch_name: Wwn(0),
            fabric_name: Wwn(0),
            vf_id: 0,
            fc_map: [1; 3],
            priority: 0,
            period: Duration::ZERO,
            keeps_alive: false,
            flags: message.flags,
            heard: now,
        };
        let mut missing = 0b1_1111_u8;
        for descriptor in message.descriptors() {
            let bit = fcf.take(&descriptor.ok()?)?;
            if bit != 0 && missing & bit == 0 {
                return None;
            }
            missing &= !bit;
        }
        let is_named = fcf.switch_name != Wwn(0) && fcf.fc_map[0] & 1 == 0;
        let is_sound = missing == 0 && is_named && fcf.mac == ethernet.src;
        Some(fcf).filter(|_| is_sound && message.flags.has(Flags::F_PORT))
    }

    /// Takes a descriptor, and gives the bit of its kind.
    fn take(&mut self, descriptor: &Descriptor<'_>) -> Option<u8> {
        match *descriptor {
            Descriptor::Priority(priority) => self.priority = priority,
            Descriptor::Mac(mac) => {
                self.mac = mac;
                return Some(2);
            }
            Descriptor::Name(name) => {
                self.switch_name = name;
                return Some(4);
            }
            Descriptor::Fabric {
                vf_id,
                fc_map,
                name,
            } => {
                (self.vf_id, self.fc_map, self.fabric_name) = (vf_id, fc_map, name);
                return Some(8);
            }
            Descriptor::FkaAdvPeriod {
                disabled,
                period_ms,
            } => {
                let period = Duration::from_millis(period_ms.into());
                let is_short = period < SHORTEST;
                self.period = if is_short { USUAL } else { period };
                self.keeps_alive = !disabled;
                return Some(16);
            }
            _ => return (!descriptor.kind().is_critical()).then_some(0),
        }
        Some(1)
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let name = |fcf: &Self| (fcf.mac, fcf.switch_name, fcf.fabric_name, fcf.fc_map);
        name(self) == name(other)
    }

    /// Whether both are of one fabric.
    pub(super) fn is_of_fabric(&self, other: &Self) -> bool {
        let fabric = |fcf: &Self| (fcf.fabric_name, fcf.vf_id, fcf.fc_map);
        fabric(self) == fabric(other)
    }

    pub(super) const fn is_solicited(&self) -> bool {
        self.flags.has(Flags::SOLICITED)
    }

    pub(super) const fn is_usable(&self) -> bool {
        self.is_solicited() && self.flags.has(Flags::AVAILABLE)
    }

    /// It is heard again. Its flags count as long as it cannot be used.
    pub(super) fn hear(&mut self, again: &Self) {
        self.heard = again.heard;
        self.keeps_alive = again.keeps_alive;
        self.period = self.period.min(again.period);
        if !self.is_usable() {
            self.flags = again.flags;
        }
    }

    /// When it has been silent for too long.
    pub(super) fn until(&self) -> Now {
        self.heard + self.period * 5 / 2
    }
}

/// A period that is shorter is taken for the usual one.
const SHORTEST: Duration = Duration::from_millis(500);
const USUAL: Duration = Duration::from_secs(8);

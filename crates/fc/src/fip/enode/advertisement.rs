//! Discovery Advertisements: what an FCF says of itself, and whether it can be used (FC-BB-6).

use std::time::Duration;

use super::fcf::Fcf;
use super::keep_alive::PORT_PERIOD;
use super::{Enode, EnodeState, UnlinkReason};
use crate::wire::ethernet::EthernetHeader;
use crate::wire::fip::{Descriptor, FKA_PERIODS, FipMessage, Flags};
use crate::wire::names::Wwn;
use scsi::medium::Now;
use scsi::violation::Violation;

impl Enode {
    /// An Advertisement.
    pub(super) fn advertised(
        &mut self,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        if matches!(self.state, EnodeState::Vlan { .. }) {
            return Ok(());
        }
        let advertised = read(self.now, ethernet, message)?;
        let fcf = self.fcfs.hear(&advertised, &self.config.fabric)?;
        let (is_usable, is_solicited) = (fcf.is_usable(), fcf.is_solicited);
        let fabric = fcf.fabric();
        if !is_solicited && !self.is_leaving {
            self.solicit_from(advertised.mac);
        }
        if is_usable {
            self.may_choose(fabric);
        }
        self.heard_own(&advertised);
        Ok(())
    }

    /// The FCF of the login keeps its names, or it is another one.
    fn heard_own(&mut self, fcf: &Fcf) {
        let EnodeState::Up {
            login,
            keep_alive_at,
            port_keep_alive_at,
        } = &mut self.state
        else {
            return;
        };
        if login.fcf != fcf.mac {
            return;
        }
        let mac = fcf.mac_of_port(login.fc_id, self.config.mac);
        if (
            login.switch_name,
            login.fabric_name,
            login.fc_map,
            login.mac,
        ) != (fcf.switch_name, fcf.fabric_name, fcf.fc_map, mac)
        {
            return self.lost(UnlinkReason::Restarted);
        }
        // The period, and whether keep alives are wanted, may be other ones from now on.
        let sooner = |before: Option<Now>, period| {
            let at = self.now.saturating_add(period);
            let at = before.map_or(at, |before| before.min(at));
            fcf.wants_keep_alives.then_some(at)
        };
        if self.further.is_none() {
            *keep_alive_at = sooner(*keep_alive_at, fcf.period);
        }
        *port_keep_alive_at = sooner(*port_keep_alive_at, PORT_PERIOD);
    }
}

/// What an Advertisement says, if an FCF that says so can be used at all.
fn read(now: Now, ethernet: &EthernetHeader, message: &FipMessage<'_>) -> Result<Fcf, Violation> {
    let mut found = FoundDescriptors::default();
    for descriptor in message.descriptors() {
        found.take(descriptor?)?;
    }
    let (Some(priority), Some(mac), Some(switch_name), Some(fabric), Some(fka)) = (
        found.priority,
        found.mac,
        found.name,
        found.fabric,
        found.period,
    ) else {
        return Err(DESCRIPTORS);
    };
    let (vf_id, fc_map, fabric_name) = fabric;
    let (disabled, period) = fka;
    if !message.flags.has(Flags::F_PORT) || mac != ethernet.src || mac.is_multicast() {
        return Err(NOT_FROM_FCF);
    }
    let provides_mac = message.flags.has(Flags::FPMA);
    if !provides_mac && !message.flags.has(Flags::SPMA) {
        return Err(NO_ADDRESSES);
    }
    if fc_map[0] & 1 != 0 || fc_map == [0; 3] {
        return Err(FC_MAP);
    }
    if switch_name == Wwn(0) || fabric_name == Wwn(0) {
        return Err(NO_NAME);
    }
    if !FKA_PERIODS.contains(&period) {
        return Err(PERIOD);
    }
    Ok(Fcf {
        mac,
        priority,
        switch_name,
        fabric_name,
        vf_id,
        fc_map,
        provides_mac,
        period,
        wants_keep_alives: !disabled,
        is_available: message.flags.has(Flags::AVAILABLE),
        is_solicited: message.flags.has(Flags::SOLICITED),
        heard: now,
        is_tried: false,
    })
}

/// The descriptors that came.
#[derive(Default)]
struct FoundDescriptors {
    priority: Option<u8>,
    mac: Option<crate::wire::ethernet::Mac>,
    name: Option<Wwn>,
    fabric: Option<(u16, [u8; 3], Wwn)>,
    period: Option<(bool, Duration)>,
}

impl FoundDescriptors {
    /// Each may come once. What has to be understood, and is not, spoils the whole message.
    fn take(&mut self, descriptor: Descriptor<'_>) -> Result<(), Violation> {
        let is_twice = match descriptor {
            Descriptor::Priority(priority) => self.priority.replace(priority).is_some(),
            Descriptor::Mac(mac) => self.mac.replace(mac).is_some(),
            Descriptor::Name(name) => self.name.replace(name).is_some(),
            Descriptor::Fabric {
                vf_id,
                fc_map,
                name,
            } => self.fabric.replace((vf_id, fc_map, name)).is_some(),
            Descriptor::FkaAdvPeriod {
                disabled,
                period_ms,
            } => {
                let period = Duration::from_millis(period_ms.into());
                self.period.replace((disabled, period)).is_some()
            }
            Descriptor::Vendor { .. } => false,
            other => other.kind().is_critical(),
        };
        if is_twice { Err(DESCRIPTORS) } else { Ok(()) }
    }
}

const DESCRIPTORS: Violation = Violation {
    rule: "a FIP Advertisement with a descriptor missing, twice, or out of place",
    clause: "FC-BB-6, Discovery Advertisement",
};

const NOT_FROM_FCF: Violation = Violation {
    rule: "a FIP Advertisement without the F flag, or from a MAC address other than the one in it",
    clause: "FC-BB-6, Discovery Advertisement",
};

const NO_ADDRESSES: Violation = Violation {
    rule: "an FCF that grants neither fabric-provided nor server-provided MAC addresses; it is not \
           used",
    clause: "FC-BB-6, FPMA and SPMA",
};

const FC_MAP: Violation = Violation {
    rule: "an FCF whose FC-MAP is 0 or has the group bit; it is not used",
    clause: "FC-BB-6, FC-MAP",
};

const NO_NAME: Violation = Violation {
    rule: "an FCF whose Switch_Name or Fabric_Name is 0; it is not used",
    clause: "FC-BB-6, Discovery Advertisement",
};

const PERIOD: Violation = Violation {
    rule: "an FCF whose FKA_ADV_PERIOD is outside 250 ms to 90 s; it is not used",
    clause: "FC-BB-6, FKA_ADV_PERIOD",
};

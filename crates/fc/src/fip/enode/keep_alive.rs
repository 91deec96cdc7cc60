//! FIP Keep Alive, and Clear Virtual Links (FC-BB-6): how a login is kept, and how an FCF ends it.

use std::time::Duration;

use super::{Enode, EnodeState, FabricLogin, UnlinkReason};
use crate::wire::ethernet::{EthernetHeader, Mac};
use crate::wire::fip::{Descriptor, FipMessage, FipOperation, Flags};
use crate::wire::names::{FcId, Wwn};
use scsi::violation::Violation;

impl Enode {
    /// Sends the keep alives that are due: of the ENode each FKA_ADV_PERIOD, of the VN_Port each
    /// 90 s. Neither is sent while the FCF sets the D bit.
    pub(super) fn keep_alive(&mut self) {
        let now = self.now;
        let EnodeState::Up {
            login,
            keep_alive_at,
            port_keep_alive_at,
        } = &mut self.state
        else {
            return;
        };
        let login = *login;
        let fcf = self.fcfs.get(login.fcf).copied();
        // After our LOGO an FCF would answer a keep alive by Clear Virtual Links.
        let wanted = fcf.filter(|fcf| fcf.wants_keep_alives && !self.is_leaving);
        let is_due = keep_alive_at.is_some_and(|at| at <= now);
        if is_due {
            *keep_alive_at = wanted.map(|fcf| now.saturating_add(fcf.period));
        }
        let is_port_due = port_keep_alive_at.is_some_and(|at| at <= now);
        if is_port_due {
            *port_keep_alive_at = Some(now.saturating_add(PORT_PERIOD));
        }
        let enode = Descriptor::Mac(self.config.mac);
        if is_due && wanted.is_some() {
            let way = (login.fcf, self.config.mac);
            self.send(way, FipOperation::KeepAlive, &[enode]);
        }
        if is_port_due && wanted.is_some() {
            let port = Descriptor::VxPort {
                mac: login.mac,
                fc_id: login.fc_id,
                wwpn: self.config.wwpn,
            };
            let way = (login.fcf, login.mac);
            self.send(way, FipOperation::KeepAlive, &[enode, port]);
        }
    }

    /// Clear Virtual Links. What another FCF says, or this one of other ports, is passed over.
    pub(super) fn cleared(
        &mut self,
        ethernet: &EthernetHeader,
        message: &FipMessage<'_>,
    ) -> Result<(), Violation> {
        let cleared = ClearedLinks::read(ethernet, message)?;
        let Some(login) = self.login().copied() else {
            return Ok(());
        };
        let is_from_ours = cleared.fcf == login.fcf && cleared.switch_name == login.switch_name;
        if is_from_ours && cleared.concern(&login, self.config.wwpn) {
            self.fcfs.doubt(login.fcf);
            self.lost(UnlinkReason::Cleared);
        }
        Ok(())
    }
}

/// What an FCF clears.
struct ClearedLinks {
    fcf: Mac,
    switch_name: Wwn,
    /// VN_Ports; none are all.
    ports: Vec<(Mac, FcId, Wwn)>,
}

impl ClearedLinks {
    fn read(ethernet: &EthernetHeader, message: &FipMessage<'_>) -> Result<Self, Violation> {
        let (mut fcf, mut name) = (None, None);
        let mut ports = Vec::new();
        for descriptor in message.descriptors() {
            match descriptor? {
                Descriptor::Mac(mac) if fcf.replace(mac).is_none() => {}
                Descriptor::Name(wwn) if name.replace(wwn).is_none() => {}
                Descriptor::VxPort { mac, fc_id, wwpn } => ports.push((mac, fc_id, wwpn)),
                Descriptor::Vendor { .. } => {}
                other if other.kind().is_critical() => return Err(CLEARED),
                _ => {}
            }
        }
        match (fcf, name) {
            (Some(fcf), Some(switch_name))
                if fcf == ethernet.src && message.flags.has(Flags::F_PORT) =>
            {
                Ok(Self {
                    fcf,
                    switch_name,
                    ports,
                })
            }
            _ => Err(CLEARED),
        }
    }

    fn concern(&self, login: &FabricLogin, wwpn: Wwn) -> bool {
        self.ports.is_empty() || self.ports.contains(&(login.mac, login.fc_id, wwpn))
    }
}

/// Between two keep alives of a VN_Port (FC-BB-6, VN_Port keep alive period).
pub(super) const PORT_PERIOD: Duration = Duration::from_secs(90);

const CLEARED: Violation = Violation {
    rule: "a FIP Clear Virtual Links that is not from an FCF, or with a descriptor missing, twice, \
           or out of place",
    clause: "FC-BB-6, Clear Virtual Links",
};

//! What a switch tells other programs of its user: `lunar ls switch` shows it.

use std::process;

use fc::fabric::SwitchLogin;
use fc::fabric::zones::{ZoneMember, Zones};
use fc::wire::ct::name_server::SymbolicName;
use runtime::n_port::{ANSWER_BYTES, StatusKind, StatusSocket, answer_len};
use scsi::medium::Now;
use serde::{Deserialize, Serialize};

use super::ReadyPort;
use super::machine::SwitchMachine;
use super::options::SwitchOptions;
use super::ports::CorePorts;

/// A switch that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchStatus {
    /// The process.
    pub pid: u32,
    /// Switch_Name.
    pub switch_name: String,
    /// Fabric_Name.
    pub fabric_name: String,
    /// Domain_ID.
    pub domain: u8,
    /// Priority in Advertisements; the lower, the better.
    pub priority: u8,
    /// FKA_ADV_PERIOD.
    pub fka_ms: u64,
    /// The VLAN of the fabric.
    pub vlan: Option<u16>,
    /// Whether it accepts logins; a standby does not.
    pub active: bool,
    /// Its ports.
    pub ports: Vec<SwitchPortStatus>,
    /// The VN_Ports that are logged in, up to 256, and as many as an answer has room for.
    pub logins: Vec<LoginStatus>,
    /// How many there are.
    pub logins_total: usize,
    /// The active zone set.
    pub zone_set: Option<String>,
    /// Whether ports that are in no zone see each other.
    pub default_permit: bool,
    /// The zones of all sets, up to 256.
    pub zones: Vec<String>,
}

/// A port of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPortStatus {
    /// The interface or cable.
    pub place: String,
    /// FCF-MAC.
    pub fcf_mac: String,
    /// Bytes that a frame may carry behind its Ethernet header, when the switch began.
    pub mtu: u32,
    /// Frames that came in there and were forwarded.
    pub forwarded_frames: u64,
    /// Bytes of them.
    pub forwarded_bytes: u64,
    /// Frames that came in there and were dropped.
    pub dropped_frames: u64,
}

/// A VN_Port that is logged in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginStatus {
    /// N_Port_ID.
    pub fc_id: String,
    /// WWPN.
    pub port_name: String,
    /// WWNN.
    pub node_name: String,
    /// The port of the switch.
    pub place: String,
    /// The address of its frames.
    pub mac: String,
    /// The address of its ENode.
    pub enode: String,
    /// The most bytes of payload in a frame to it.
    pub max_frame: u16,
    /// Whether it logged in by FDISC (NPIV).
    pub further: bool,
    /// What it calls itself.
    pub symbolic_name: String,
    /// The active zones that it is in, up to 8.
    pub zones: Vec<String>,
}

/// What tells of a switch, with what of it does not change.
#[derive(Debug)]
pub(super) struct SwitchTeller {
    socket: StatusSocket,
    lasting: SwitchStatus,
}

impl SwitchTeller {
    pub(super) fn new(
        options: &SwitchOptions,
        ports: &[ReadyPort],
        names: [String; 2],
    ) -> std::io::Result<Self> {
        let [switch_name, fabric_name] = names;
        let ports = ports.iter().map(|port| SwitchPortStatus {
            place: port.place.clone(),
            fcf_mac: port.mac.clone(),
            mtu: port.mtu,
            ..SwitchPortStatus::default()
        });
        Ok(Self {
            socket: StatusSocket::open(StatusKind::Switch)?,
            lasting: SwitchStatus {
                pid: process::id(),
                switch_name,
                fabric_name,
                domain: options.domain,
                priority: options.priority,
                fka_ms: options.fka.as_millis() as u64,
                vlan: options.vlan,
                ports: ports.collect(),
                ..SwitchStatus::default()
            },
        })
    }

    /// What becomes readable when a program asks.
    pub(super) const fn socket(&self) -> &StatusSocket {
        &self.socket
    }
}

impl SwitchMachine {
    /// Answers programs that ask what the switch is like.
    pub(super) fn answer(&mut self, now: Now, ports: &mut CorePorts) {
        if let Some(mut teller) = self.teller.take() {
            let SwitchTeller { socket, lasting } = &mut teller;
            socket.answer(now, || self.status(lasting, ports));
            self.teller = Some(teller);
        }
    }

    fn status(&mut self, lasting: &SwitchStatus, ports: &mut CorePorts) -> SwitchStatus {
        let mut status = lasting.clone();
        status.active = self.switch.is_active();
        for (port, counted) in status.ports.iter_mut().zip(self.survey_ports(ports)) {
            port.forwarded_frames = counted.frames;
            port.forwarded_bytes = counted.bytes;
            port.dropped_frames = counted.dropped.iter().map(|(_, frames)| frames).sum();
        }
        let zones = &self.zones;
        status.zone_set = zones.active().map(str::to_owned);
        status.default_permit = zones.permits();
        let all = zones.zones().iter().take(LISTED_MAX);
        status.zones = all.map(|zone| zone.name.to_string()).collect();
        status.logins_total = self.switch.logins().count();
        // Both are by N_Port_ID.
        let registered = self.switch.registered();
        let named = registered.map(|port| (port.login.fc_id, port.symbolic_port));
        let mut named = named.peekable();
        status.list(self.switch.logins().map(|login| {
            while named.next_if(|(id, _)| *id < login.fc_id).is_some() {}
            let name = named.next_if(|(id, _)| *id == login.fc_id);
            login_status(login, zones, name.map(|(_, name)| name))
        }));
        status
    }
}

impl SwitchStatus {
    /// Lists logins, as many as the answer has room for.
    pub(super) fn list(&mut self, logins: impl Iterator<Item = LoginStatus>) {
        let mut room = ANSWER_BYTES.saturating_sub(answer_len(self));
        for login in logins.take(LISTED_MAX) {
            // And the comma.
            let Some(left) = room.checked_sub(answer_len(&login) + 1) else {
                return;
            };
            room = left;
            self.logins.push(login);
        }
    }
}

fn login_status(
    login: &SwitchLogin,
    zones: &Zones,
    symbolic: Option<&SymbolicName>,
) -> LoginStatus {
    let member = ZoneMember {
        wwpn: login.wwpn,
        wwnn: login.wwnn,
        fc_id: login.fc_id,
        place: &login.place,
    };
    let membership = zones.membership(&member);
    let names = zones.names_of(&membership).take(ZONES_MAX);
    LoginStatus {
        fc_id: login.fc_id.to_string(),
        port_name: login.wwpn.to_string(),
        node_name: login.wwnn.to_string(),
        place: login.place.to_string(),
        mac: login.mac.to_string(),
        enode: login.enode.to_string(),
        max_frame: login.max_payload,
        further: login.is_further,
        symbolic_name: symbolic.map(SymbolicName::to_string).unwrap_or_default(),
        zones: names.map(str::to_owned).collect(),
    }
}

/// Ports and zones that are told of: the thread that moves frames spends its time on each.
const LISTED_MAX: usize = 256;

/// Zones that are told of each port.
const ZONES_MAX: usize = 8;

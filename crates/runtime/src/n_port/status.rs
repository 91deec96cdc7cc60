//! What an N_Port tells other programs of its user.

use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::io::ether::PRIORITY;
use fc::fip::enode::Enode;
use fc::port::{Fc4Layer, Port};
use fc::remote::{RemotePort, Role};
use fc::wire::names::Wwn;
use serde::{Deserialize, Serialize};

use super::NPort;
use super::branch::BranchCounts;
use super::status_socket::{StatusAnswers, StatusKind, ask_all};

/// An N_Port of a process of this machine. Names and addresses are in their usual form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// The process.
    pub pid: u32,
    /// What it was started as, as far as that says what it does: `lunar serve`.
    pub program: String,
    /// `FCP Target` or `FCP Initiator`.
    pub role: String,
    /// The interface or cable.
    pub place: String,
    /// The interface, if it is one.
    pub interface: Option<String>,
    /// `fabric` or `vn2vn`.
    pub mode: String,
    /// WWPN.
    pub port_name: String,
    /// WWNN.
    pub node_name: String,
    /// The address of the ENode.
    pub mac: String,
    /// The address of the VN_Port, while it has one.
    pub vn_port_mac: Option<String>,
    /// N_Port_ID, while it has one.
    pub fc_id: Option<String>,
    /// `Online`, `Offline` or `Linkdown`.
    pub state: String,
    /// Fabric_Name, while it is logged in to a fabric.
    pub fabric_name: Option<String>,
    /// The VLAN in the tags of its frames.
    pub vlan: Option<u16>,
    /// The 802.1p priority of its frames.
    pub user_priority: u32,
    /// The MTU of the Ethernet.
    pub mtu: u32,
    /// The most bytes of payload in a frame.
    pub max_frame: u16,
    /// What was counted.
    pub statistics: PortCounts,
    /// FCFs that are known.
    pub fcfs: Vec<FcfStatus>,
    /// The socket by which it sends queries of other programs, if it does.
    #[serde(default)]
    pub query_socket: Option<PathBuf>,
    /// Other ports that are known, up to 256.
    pub remotes: Vec<RemoteStatus>,
    /// How many there are.
    pub remotes_total: usize,
}

/// Counted since the port was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounts {
    /// Seconds since then.
    pub seconds: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes of them.
    pub rx_bytes: u64,
    /// Frames received that were of no use.
    pub error_frames: u64,
    /// Frames whose CRC was wrong.
    pub invalid_crc: u64,
    /// How often the link went down.
    pub link_failures: u64,
    /// How often a virtual link ended by silence.
    pub virtual_link_failures: u64,
}

/// An FCF that an N_Port knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FcfStatus {
    /// FCF-MAC.
    pub mac: String,
    /// Switch_Name.
    pub switch_name: String,
    /// Fabric_Name.
    pub fabric_name: String,
    /// The lower, the better.
    pub priority: u8,
    /// FKA_ADV_PERIOD.
    pub fka_ms: u64,
    /// Whether the port is logged in there.
    pub selected: bool,
}

/// Another port that an N_Port knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteStatus {
    /// WWPN.
    pub port_name: String,
    /// WWNN.
    pub node_name: String,
    /// N_Port_ID.
    pub fc_id: String,
    /// The most bytes of payload in a frame to it.
    pub max_frame: u16,
    /// `FCP Target`, `FCP Initiator`, both, or empty while it is not known.
    pub role: String,
    /// Whether there is an I_T nexus.
    pub online: bool,
    /// Its logical units that are used by way of the port.
    #[serde(default)]
    pub units: Vec<UnitStatus>,
}

/// A logical unit, as it was when it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// LUN.
    pub lun: u16,
    /// T10 VENDOR IDENTIFICATION (SPC-5 §6.7.2).
    pub vendor: String,
    /// PRODUCT IDENTIFICATION.
    pub product: String,
    /// PRODUCT REVISION LEVEL.
    pub revision: String,
    /// Capacity in bytes.
    pub bytes: u64,
    /// Bytes of a logical block.
    pub block_size: u32,
}

/// Other ports that are told of. With all of them an answer would be longer than a socket has room
/// for.
const REMOTES_MAX: usize = 256;

/// Logical units that are told of, for the same reason.
const UNITS_MAX: usize = 256;

/// All N_Ports of this user and network namespace, in the order of their places.
#[must_use]
pub fn ports_here() -> StatusAnswers<PortStatus> {
    let mut answers: StatusAnswers<PortStatus> = ask_all(StatusKind::Port);
    answers.told.sort_by(|one, other| {
        let key = |port: &PortStatus| (port.place.clone(), port.pid, port.port_name.clone());
        key(one).cmp(&key(other))
    });
    answers
}

impl<F: Fc4Layer> NPort<F> {
    /// What it tells other programs.
    pub(super) fn status(&self, seconds: u64) -> PortStatus {
        let port = &self.port;
        let address = port.address();
        let enode = port.enode();
        let login = enode.and_then(Enode::login);
        let link = self.ether.link();
        let interface = self.place.interface();
        PortStatus {
            pid: process::id(),
            program: program(),
            role: role(F::ROLE).to_owned(),
            place: self.place.to_string(),
            interface: interface.map(str::to_owned),
            mode: if enode.is_some() { "fabric" } else { "vn2vn" }.to_owned(),
            port_name: port.wwpn().to_string(),
            node_name: port.wwnn().to_string(),
            mac: self.names.mac.to_string(),
            vn_port_mac: address.map(|address| address.mac.to_string()),
            fc_id: address.map(|address| address.fc_id.to_string()),
            state: match (link.up, address) {
                (false, _) => "Linkdown",
                (true, None) => "Offline",
                (true, Some(_)) => "Online",
            }
            .to_owned(),
            fabric_name: login.map(|login| login.fabric_name.to_string()),
            vlan: enode.map_or(self.given_tag, Enode::tag).map(|tag| tag.vid),
            user_priority: PRIORITY,
            mtu: link.mtu,
            max_frame: port.payload_max(),
            statistics: counts(port, seconds, &self.branch_counts),
            fcfs: enode.map_or_else(Vec::new, fcfs),
            query_socket: self.queries.as_ref().map(|socket| socket.path().to_owned()),
            remotes: self.remotes(),
            remotes_total: port.remotes().count(),
        }
    }

    fn remotes(&self) -> Vec<RemoteStatus> {
        let all = self.port.remotes().take(REMOTES_MAX);
        let told = all.map(|one| RemoteStatus {
            units: self.units_of(one.wwpn()),
            ..remote(one)
        });
        told.collect()
    }

    fn units_of(&self, target: Wwn) -> Vec<UnitStatus> {
        let units = self.units.iter().filter(|(wwpn, _)| *wwpn == target);
        units.map(|(_, unit)| unit.clone()).collect()
    }

    /// These units are used now, each of the target of this WWPN.
    pub fn show_units(&mut self, mut units: Vec<(Wwn, UnitStatus)>) {
        units.sort_by_key(|(wwpn, unit)| (*wwpn, unit.lun));
        units.dedup_by_key(|(wwpn, unit)| (*wwpn, unit.lun));
        units.truncate(UNITS_MAX);
        self.units = units;
    }
}

/// The name of the program and of its verb.
fn program() -> String {
    let words = std::env::args_os().take(2);
    let words = words.map(|word| {
        let word = PathBuf::from(word);
        word.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    });
    let words: Vec<String> = words.collect();
    words.join(" ")
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Initiator => "FCP Initiator",
        Role::Target => "FCP Target",
    }
}

fn counts<F: Fc4Layer>(port: &Port<F>, seconds: u64, branches: &[Arc<BranchCounts>]) -> PortCounts {
    let (told, fip) = (port.statistics(), port.fip_statistics());
    let all = |count: fn(&BranchCounts) -> &AtomicU64| -> u64 {
        let counts = branches.iter().map(|one| count(one).load(Relaxed));
        counts.sum()
    };
    PortCounts {
        seconds,
        tx_frames: told.sent_frames + all(|one| &one.tx_frames),
        tx_bytes: told.sent_bytes + all(|one| &one.tx_bytes),
        rx_frames: told.received_frames + all(|one| &one.rx_frames),
        rx_bytes: told.received_bytes + all(|one| &one.rx_bytes),
        error_frames: told.malformed + told.unknown + told.unexpected + all(|one| &one.unknown),
        invalid_crc: told.bad_crc,
        link_failures: fip.link_downs,
        virtual_link_failures: fip.link_failures,
    }
}

fn fcfs(enode: &Enode) -> Vec<FcfStatus> {
    let selected = enode.login().map(|login| login.fcf);
    let told = enode.fcfs().iter().map(|fcf| FcfStatus {
        mac: fcf.mac.to_string(),
        switch_name: fcf.switch_name.to_string(),
        fabric_name: fcf.fabric_name.to_string(),
        priority: fcf.priority,
        fka_ms: fcf.period.as_millis() as u64,
        selected: selected == Some(fcf.mac),
    });
    told.collect()
}

fn remote(remote: &RemotePort) -> RemoteStatus {
    let neighbour = remote.neighbour();
    let role = match (neighbour.target, neighbour.initiator) {
        (Some(true), Some(true)) => "FCP Target, FCP Initiator",
        (_, Some(true)) => "FCP Initiator",
        (Some(true), _) => "FCP Target",
        _ => "",
    };
    RemoteStatus {
        port_name: neighbour.wwpn.to_string(),
        node_name: neighbour.wwnn.to_string(),
        fc_id: neighbour.fc_id.to_string(),
        max_frame: remote.payload_max(),
        role: role.to_owned(),
        online: remote.is_up(),
        units: Vec::new(),
    }
}

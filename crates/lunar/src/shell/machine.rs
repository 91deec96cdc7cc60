//! What the shell asks about the machine and the daemon.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;

use control::client::{ApiClient, ApiRequest, Method};
use control::metrics::VolumeStats;
use control::plane::Session;
use control::shell::{Machine, SessionFact, VolumeFact};

use crate::VerbError;
use crate::client::default_name;
use crate::manage::failure;

/// The machine of a daemon, when a line was typed.
pub(super) struct DaemonMachine {
    volumes: BTreeMap<String, VolumeFact>,
    sessions: Vec<SessionFact>,
}

impl DaemonMachine {
    pub(super) fn new(client: &ApiClient) -> Result<Self, VerbError> {
        let stats: Vec<VolumeStats> = client
            .ask(Method::GET, &ApiRequest::new("/v1/stats"))
            .map_err(|error| failure(&error))?;
        let sessions: Vec<Session> = client
            .ask(Method::GET, &ApiRequest::new("/v1/sessions"))
            .map_err(|error| failure(&error))?;
        let fact = |one: VolumeStats| {
            let size = (one.capacity_bytes > 0).then_some(one.capacity_bytes);
            let is_present = !one.absent;
            (one.volume, VolumeFact { size, is_present })
        };
        let session = |one: Session| SessionFact {
            id: one.id.unwrap_or_default().into(),
            initiator: one.initiator,
            alias: String::new(),
            target: one.target.unwrap_or_default(),
            address: one.address,
            is_authenticated: one.user.is_some(),
        };
        Ok(Self {
            volumes: stats.into_iter().map(fact).collect(),
            sessions: sessions.into_iter().map(session).collect(),
        })
    }
}

impl Machine for DaemonMachine {
    fn volume(&self, name: &str) -> Option<VolumeFact> {
        self.volumes.get(name).copied()
    }

    fn sessions(&self) -> Vec<SessionFact> {
        self.sessions.clone()
    }

    fn interfaces(&self) -> Vec<(String, [u8; 6])> {
        let Ok(entries) = fs::read_dir("/sys/class/net") else {
            return Vec::new();
        };
        let interface = |entry: fs::DirEntry| {
            let address = fs::read_to_string(entry.path().join("address")).ok()?;
            Some((entry.file_name().into_string().ok()?, mac(address.trim())?))
        };
        entries.flatten().filter_map(interface).collect()
    }

    fn addresses(&self) -> Option<Vec<IpAddr>> {
        let interfaces = if_addrs::get_if_addrs().ok()?;
        Some(interfaces.iter().map(if_addrs::Interface::ip).collect())
    }

    fn iqn_base(&self) -> String {
        default_name().replace(':', ".")
    }

    fn serial(&self) -> String {
        let bytes: [u8; 6] = std::array::from_fn(|_| fastrand::u8(..));
        bytes.map(|byte| format!("{byte:02x}")).concat()
    }

    fn initiator_name(&self, path: &str) -> Result<String, String> {
        let text = fs::read_to_string(path).map_err(|cause| format!("cannot be read: {cause}"))?;
        let mut lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("InitiatorName="));
        let name = lines.next().map(str::trim).filter(|name| !name.is_empty());
        name.map(str::to_owned)
            .ok_or_else(|| "holds no line InitiatorName=".to_owned())
    }
}

/// The octets of an Ethernet address.
fn mac(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        *octet = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

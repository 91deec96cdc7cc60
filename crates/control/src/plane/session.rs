//! Who is logged in, as people and programs are told.

use std::time::Duration;

use engine::mailbox::SessionInfo;
use engine::survey::FcLogin;
use iscsi::parameters::Transport;
use scsi::device::NexusCounts;
use scsi::statistics::CoarseLatency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A session, as its users are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// Its number, by which it is ended; none for a login by Fibre Channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u16>,
    /// The initiator.
    pub initiator: String,
    /// The initiator's ISID, in hexadecimal digits; none by Fibre Channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isid: Option<String>,
    /// The target; none for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The initiator's address; by Fibre Channel its port name.
    pub address: String,
    /// The portal, as the initiator has addressed it; by Fibre Channel the interface.
    pub portal: String,
    /// What carries it: `iscsi`, `iser`, or `fcoe`.
    pub transport: String,
    /// The RDMA device that it came by; none over software iWARP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The CHAP user that was proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How the initiator proved who it is: `none`, `chap sha256`, `mutual chap sha256`.
    pub proof: String,
    /// What is guarded by a CRC32C of its own: `none`, `header`, `data` or `header, data`.
    pub digests: String,
    /// The core that it lives on.
    pub core: u16,
    /// For how long there has been a session, in seconds.
    pub age_s: u64,
    /// Commands that have ended.
    pub commands: u64,
    /// Bytes that they asked to read.
    pub read_bytes: u64,
    /// Bytes that they asked to write.
    pub written_bytes: u64,
    /// How long they took, for metrics.
    #[serde(skip)]
    pub latency: CoarseLatency,
}

impl Session {
    pub(super) fn of(info: SessionInfo, counts: NexusCounts, uptime: Duration) -> Self {
        let isid = info.initiator.isid.iter();
        let digests = [(info.header_digest, "header"), (info.data_digest, "data")];
        let digests: Vec<_> = digests.iter().filter(|(is_on, _)| *is_on).collect();
        let digests: Vec<_> = digests.iter().map(|(_, name)| *name).collect();
        Self {
            id: Some(info.tsih),
            initiator: info.initiator.name,
            isid: Some(isid.map(|byte| format!("{byte:02x}")).collect()),
            target: info.target,
            address: info.endpoints.peer.to_string(),
            portal: info.endpoints.local.to_string(),
            transport: name(info.transport).to_owned(),
            device: info.device,
            user: info.user,
            proof: info.proof.to_string(),
            digests: if digests.is_empty() {
                "none".to_owned()
            } else {
                digests.join(", ")
            },
            core: info.core.0,
            age_s: uptime.saturating_sub(info.since).as_secs(),
            commands: counts.commands(),
            latency: counts.latency,
            read_bytes: counts.bytes_in,
            written_bytes: counts.bytes_out,
        }
    }

    /// Fibre Channel guards each frame by a CRC, and has no proof of names.
    pub(super) fn of_fc(login: FcLogin, uptime: Duration) -> Self {
        Self {
            id: None,
            isid: None,
            target: Some(login.port),
            address: login.initiator.clone(),
            initiator: login.initiator,
            portal: login.interface,
            transport: "fcoe".to_owned(),
            device: None,
            user: None,
            proof: "none".to_owned(),
            digests: "none".to_owned(),
            core: login.core.0,
            age_s: uptime.saturating_sub(login.since).as_secs(),
            commands: login.counts.commands(),
            latency: login.counts.latency,
            read_bytes: login.counts.bytes_in,
            written_bytes: login.counts.bytes_out,
        }
    }
}

/// As addresses have it.
const fn name(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "iscsi",
        Transport::Iser { .. } => "iser",
    }
}

#[cfg(test)]
mod tests;

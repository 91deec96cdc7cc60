//! Fabrics of switches that run, as people and programs are told.

use std::collections::BTreeMap;

use engine::switch::{SwitchPortSurvey, SwitchSurvey};
use fc::fabric::SwitchLogin;
use runtime::n_port::FrameLosses;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a switch has and has counted since it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fabric {
    /// The name of the row.
    pub switch: String,
    /// Switch_Name.
    pub switch_name: String,
    /// Fabric_Name.
    pub fabric_name: String,
    /// It accepts logins; a standby does not.
    pub active: bool,
    /// Its ports, in the order of the row.
    pub ports: Vec<FabricPort>,
    /// The ports that are logged in, by N_Port_ID.
    pub logins: Vec<FabricMember>,
}

/// What was counted of frames that came in at a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FabricPort {
    /// The interface or cable.
    pub place: String,
    /// Frames can pass.
    pub up: bool,
    /// Frames that were forwarded.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames for the switch itself.
    pub taken: u64,
    /// Frames that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Frames that were lost at the interface or cable, by where.
    pub lost: BTreeMap<String, u64>,
}

/// A port that is logged in to a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FabricMember {
    /// WWPN.
    pub wwpn: String,
    /// WWNN.
    pub wwnn: String,
    /// N_Port_ID, six hexadecimal digits behind `0x`.
    pub fc_id: String,
    /// The port of the switch that it is at.
    pub place: String,
    /// The MAC address of its host.
    pub enode: String,
}

impl Fabric {
    pub(super) fn of((switch, survey): (String, SwitchSurvey)) -> Self {
        Self {
            switch,
            switch_name: survey.switch_name.to_string(),
            fabric_name: survey.fabric_name.to_string(),
            active: survey.is_active,
            ports: survey.ports.into_iter().map(FabricPort::of).collect(),
            logins: survey.logins.iter().map(FabricMember::of).collect(),
        }
    }
}

impl FabricPort {
    fn of(port: SwitchPortSurvey) -> Self {
        let dropped = port.dropped.iter();
        let lost = port.lost.iter().flat_map(FrameLosses::places);
        let lost = lost.filter(|one| one.frames > 0);
        Self {
            place: port.place,
            up: port.is_up,
            frames: port.frames,
            bytes: port.bytes,
            taken: port.taken,
            dropped: dropped
                .map(|(reason, frames)| (reason.name().to_owned(), *frames))
                .collect(),
            lost: lost.map(|one| (one.place.to_owned(), one.frames)).collect(),
        }
    }
}

impl FabricMember {
    fn of(login: &SwitchLogin) -> Self {
        Self {
            wwpn: login.wwpn.to_string(),
            wwnn: login.wwnn.to_string(),
            fc_id: login.fc_id.to_string(),
            place: login.place.to_string(),
            enode: login.enode.to_string(),
        }
    }
}

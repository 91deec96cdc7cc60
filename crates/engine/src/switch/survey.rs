//! What a switch has at a moment, for those who ask it while it runs.

use fc::fabric::{DropReason, PortCounters, SwitchLogin};
use fc::wire::names::Wwn;
use runtime::n_port::FrameLosses;

use super::core::number;
use super::machine::SwitchMachine;
use super::ports::CorePorts;

/// What a switch has at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchSurvey {
    /// Switch_Name.
    pub switch_name: Wwn,
    /// Fabric_Name.
    pub fabric_name: Wwn,
    /// It accepts logins: it is no standby.
    pub is_active: bool,
    /// Its ports, in the order of its options.
    pub ports: Vec<SwitchPortSurvey>,
    /// The VN_Ports that are logged in, by N_Port_ID.
    pub logins: Vec<SwitchLogin>,
}

/// What a switch has counted at a port of frames that came in there, since it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchPortSurvey {
    /// The interface or cable.
    pub place: String,
    /// Frames can pass.
    pub is_up: bool,
    /// Frames that were forwarded.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames for the switch itself.
    pub taken: u64,
    /// Frames that were dropped, by reason, of those that there were.
    pub dropped: Vec<(DropReason, u64)>,
    /// Frames that were lost at the Ethernet port, if the kernel tells.
    pub lost: Option<FrameLosses>,
}

impl SwitchMachine {
    /// What it has now.
    pub(super) fn survey(&mut self, own: &mut CorePorts) -> SwitchSurvey {
        SwitchSurvey {
            ports: self.survey_ports(own),
            switch_name: self.switch.switch_name(),
            fabric_name: self.switch.fabric_name(),
            is_active: self.switch.is_active(),
            logins: self.switch.logins().cloned().collect(),
        }
    }

    /// What has been counted at its ports.
    pub(super) fn survey_ports(&mut self, own: &mut CorePorts) -> Vec<SwitchPortSurvey> {
        own.tell(&self.board);
        let mut ports = Vec::with_capacity(self.places.len());
        for (at, place) in self.places.iter().enumerate() {
            let counters = self.counters(at);
            let forwarded = self.fast_path.forwarded(at, &counters);
            let dropped = DropReason::ALL.map(|reason| (reason, counters.dropped(reason)));
            let dropped = dropped.into_iter().filter(|(_, frames)| *frames > 0);
            let facts = self.board.at(at);
            ports.push(SwitchPortSurvey {
                place: place.to_string(),
                is_up: facts.is_usable,
                frames: forwarded.frames,
                bytes: forwarded.bytes,
                taken: counters.taken,
                dropped: dropped.collect(),
                lost: facts.lost(),
            });
        }
        ports
    }

    /// What came in at a port: the counts of all cores.
    pub(super) fn counters(&self, at: usize) -> PortCounters {
        let mut counters = self.board.at(at).counters.clone();
        if let Some(own) = self.switch.counted(number(at)) {
            counters.add(own);
        }
        counters
    }
}

//! What a core has counted, for whoever asks; and how it spends its time.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use ::io::ring::Ring;
use scsi::medium::Now;
use scsi::nexus::NexusId;

use super::Core;
use super::connection::{ConnectionPhase, CoreConnection, NexusState};
use crate::mailbox::Mailer;
use crate::survey::{CoreSurvey, CoreTime, FcLogin, LoginResult};

/// What a core counts beside its device server.
#[derive(Debug, Default)]
pub(super) struct CoreCounts {
    idle: Now,
    pub(super) completed: u64,
    logins: BTreeMap<(String, LoginResult), u64>,
}

impl CoreCounts {
    /// A login has ended. `at` is one of our own addresses or ports, so that there are few.
    pub(super) fn login(&mut self, at: String, result: LoginResult) {
        *self.logins.entry((at, result)).or_default() += 1;
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// The core had nothing to do for so long.
    pub fn was_idle(&mut self, time: Now) {
        self.counts.idle += time;
    }

    /// How many commands were completed.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.counts.completed
    }

    /// Who asked may have left.
    pub(super) fn tell_survey(&mut self, now: Now, reply: &Sender<CoreSurvey>) {
        let idle = self.counts.idle.min(now);
        let mut survey = CoreSurvey {
            time: CoreTime {
                core: self.id.0,
                busy: now - idle,
                idle,
            },
            buffers: self.context.pool.resident() as u64,
            uncopied: self.ring.uncopied(),
            logins: self.counts.logins.clone(),
            ..CoreSurvey::default()
        };
        for unit in self.device.queue() {
            *survey.queued.entry(unit).or_default() += 1;
        }
        let sessions = self.connections.iter().filter_map(session_of);
        let counted = |(tsih, nexus)| Some((tsih, self.device.nexus_counts(nexus)?));
        survey.sessions = sessions.filter_map(counted).collect();
        for fc_port in self.fc_ports.iter_mut().map(|(_, port)| port) {
            survey.lost_frames.push(fc_port.lost());
            for (nexus, login) in fc_port.logins(self.id) {
                let counts = self.device.nexus_counts(nexus).unwrap_or_default();
                survey.fc_logins.push(FcLogin { counts, ..login });
            }
        }
        for branch in self.fc_branches.iter_mut().map(|(_, branch)| branch) {
            survey.lost_frames.push(branch.lost());
            for (nexus, login) in branch.logins(self.id) {
                let counts = self.device.nexus_counts(nexus).unwrap_or_default();
                survey.fc_logins.push(FcLogin { counts, ..login });
            }
        }
        let _ = reply.send(survey);
    }
}

/// The TSIH and the nexus of a session that has one.
fn session_of(connection: &CoreConnection) -> Option<(u16, NexusId)> {
    match connection.phase {
        ConnectionPhase::Session {
            tsih,
            nexus: NexusState::Yes,
            ..
        } => Some((tsih, NexusId(connection.key.slot))),
        _ => None,
    }
}

//! The control plane of a server that runs: what all of its front ends use.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use engine::server::ServerHandle;
use serde::{Deserialize, Serialize};

use crate::gate::{Author, ChangeRequest, Gate, GateError, Generation, Outcome, Store};
use crate::metrics::VolumeStats;
use crate::serving::ServedTree;
use crate::store::FileStore;
use crate::tree::Tree;

/// What is served: one generation, whole.
#[derive(Debug)]
pub struct Served {
    /// Its number.
    pub generation: u64,
    /// Its document.
    pub text: String,
    /// Its tree.
    pub tree: Tree,
}

/// A session, as its users are told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its number, by which it is ended.
    pub id: u16,
    /// The initiator.
    pub initiator: String,
    /// The initiator's ISID, in hexadecimal digits.
    pub isid: String,
    /// The target; none for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The initiator's address.
    pub address: String,
    /// The portal, as the initiator has addressed it.
    pub portal: String,
    /// The core that it lives on.
    pub core: u16,
    /// For how long there has been a session, in seconds.
    pub age_s: u64,
}

/// The control plane.
pub struct Plane {
    gate: Mutex<Gate<FileStore, ServedTree>>,
    served: RwLock<Arc<Served>>,
    server: ServerHandle,
    alarms: Mutex<Vec<String>>,
}

impl Plane {
    /// The control plane of a server that serves what is behind the gate.
    #[must_use]
    pub fn new(
        gate: Gate<FileStore, ServedTree>,
        server: ServerHandle,
        alarms: Vec<String>,
    ) -> Self {
        Self {
            served: RwLock::new(Arc::new(served(&gate))),
            gate: Mutex::new(gate),
            server,
            alarms: Mutex::new(alarms),
        }
    }

    /// What is served. It does not wait for a change that is being made.
    #[must_use]
    pub fn served(&self) -> Arc<Served> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a change, or tells what would come of it. It blocks for as long as volumes need to be
    /// opened.
    ///
    /// # Errors
    ///
    /// Why nothing has changed.
    pub fn change(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = gate.change(request, author, SystemTime::now())?;
        if outcome.generation == gate.generation() && !request.dry_run {
            let mut served_now = self.served.write().unwrap_or_else(PoisonError::into_inner);
            *served_now = Arc::new(served(&gate));
            self.alarms
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clear();
        }
        Ok(outcome)
    }

    /// Keeps a secret as `state:NAME`, which a tree may name; logins go by it from now on.
    ///
    /// # Errors
    ///
    /// It is not a secret, or cannot be kept.
    pub fn put_secret(&self, name: &str, secret: &str) -> Result<(), GateError> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.put_secret(name, secret)
    }

    /// Whether the file says something that is not served.
    #[must_use]
    pub fn is_edited(&self) -> bool {
        self.gate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_edited()
    }

    /// The generations that are kept, from the first.
    #[must_use]
    pub fn history(&self) -> Vec<Generation> {
        self.gate
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .store()
            .generations()
    }

    /// The document of a generation that is kept.
    #[must_use]
    pub fn text_of(&self, generation: u64) -> Option<String> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if generation == gate.generation() {
            return Some(gate.text().to_owned());
        }
        gate.store().text(generation)
    }

    /// What somebody should look at.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        self.alarms
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What each volume is and has done, by name.
    #[must_use]
    pub fn stats(&self) -> Vec<VolumeStats> {
        self.server.units().into_iter().map(Into::into).collect()
    }

    /// The sessions that there are, in the order of their targets and initiators.
    #[must_use]
    pub fn sessions(&self) -> Vec<Session> {
        let uptime = self.server.uptime();
        let session = |info: engine::mailbox::SessionInfo| Session {
            id: info.tsih,
            initiator: info.initiator.name,
            isid: info
                .initiator
                .isid
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            target: info.target,
            address: info.endpoints.peer.to_string(),
            portal: info.endpoints.local.to_string(),
            core: info.core.0,
            age_s: uptime.saturating_sub(info.since).as_secs(),
        };
        let mut sessions: Vec<_> = self.server.sessions().into_iter().map(session).collect();
        sessions.sort_by(|one, other| {
            (&one.target, &one.initiator, one.id).cmp(&(&other.target, &other.initiator, other.id))
        });
        sessions
    }

    /// Whether every core that serves answers within 5 s.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.server.is_alive()
    }

    /// Ends a session, whatever its peer does; returns whether there was one.
    #[must_use]
    pub fn drop_session(&self, id: u16) -> bool {
        let mut sessions = self.server.sessions().into_iter();
        sessions.any(|session| session.tsih == id) && self.server.drop_session(id)
    }
}

fn served(gate: &Gate<FileStore, ServedTree>) -> Served {
    Served {
        generation: gate.generation(),
        text: gate.text().to_owned(),
        tree: gate.tree().clone(),
    }
}

//! The control plane of a server that runs: what all of its front ends use.
//!
//! A change may take as long as a volume takes to be opened. Who only looks never waits for it: it
//! reads the files of the store, asks the cores, and takes what is served as a whole.

mod turns;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use engine::server::ServerHandle;
use serde::{Deserialize, Serialize};

use crate::gate::{Author, Candidate, ChangeRequest, Gate, GateError, Generation, Outcome, Store};
use crate::metrics::VolumeStats;
use crate::plan::Allowed;
use crate::serving::ServedTree;
use crate::store::FileStore;
use crate::tree::Tree;
use turns::Turns;

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
    turns: Turns,
    /// Locked in a turn alone.
    gate: Mutex<Gate<FileStore, ServedTree>>,
    served: RwLock<Arc<Served>>,
    /// The files of the gate's store, and its engine, for those who only look.
    store: FileStore,
    engine: ServedTree,
    server: ServerHandle,
    alarms: Mutex<Vec<String>>,
}

/// How long a change waits for the one before.
const PATIENCE: Duration = Duration::from_secs(20);

impl Plane {
    /// The control plane of a server that serves what is behind the gate.
    #[must_use]
    pub fn new(
        gate: Gate<FileStore, ServedTree>,
        server: ServerHandle,
        alarms: Vec<String>,
    ) -> Self {
        Self {
            turns: Turns::default(),
            served: RwLock::new(Arc::new(served(&gate))),
            store: gate.store().clone(),
            engine: gate.engine().onlooker(),
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
    /// opened, and those of the change before.
    ///
    /// # Errors
    ///
    /// Why nothing has changed.
    pub fn change(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        if request.dry_run {
            return self.look(request, author);
        }
        let _turn = self.turns.take(author, PATIENCE)?;
        let mut gate = self.gate();
        let outcome = gate.change(request, author, SystemTime::now())?;
        let now = Arc::new(served(&gate));
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = now;
        self.stored_alarms().clear();
        Ok(outcome)
    }

    /// Tells what would come of a change, of what is served now.
    fn look(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        let served = self.served();
        let (store, engine) = (self.store.clone(), self.engine.onlooker());
        let (text, tree) = (served.text.clone(), served.tree.clone());
        let mut gate = Gate::new(store, engine, served.generation, text, tree);
        gate.change(request, author, SystemTime::now())
    }

    /// Takes the file as it is now, if nothing of it cuts or loses anything. What comes of it is
    /// logged, and where it is not taken there is an alarm.
    pub fn reload(&self) {
        let author = Author {
            who: "root".to_owned(),
            by: "SIGHUP".to_owned(),
        };
        let request = ChangeRequest {
            candidate: Candidate::File,
            based_on: None,
            allowed: Allowed::default(),
            absent_ok: false,
            dry_run: false,
        };
        match self.change(&request, &author) {
            Ok(Outcome {
                generation, worst, ..
            }) => tracing::info!("generation {generation} is served ({worst})"),
            Err(error) => {
                let alarm = format!("the file is not applied: {error}");
                tracing::error!("{alarm}");
                let mut alarms = self.stored_alarms();
                if !alarms.contains(&alarm) {
                    alarms.push(alarm);
                }
            }
        }
    }

    /// Keeps a secret as `state:NAME`, which a tree may name; logins go by it from now on.
    ///
    /// # Errors
    ///
    /// It is not a secret, or cannot be kept.
    pub fn put_secret(&self, name: &str, secret: &str) -> Result<(), GateError> {
        let author = Author {
            who: "root".to_owned(),
            by: format!("the secret state:{name}"),
        };
        let _turn = self.turns.take(&author, PATIENCE)?;
        self.gate().put_secret(name, secret)
    }

    /// Whether the file says something that is not served. What is just being applied is in the
    /// history first, and no edit.
    #[must_use]
    pub fn is_edited(&self) -> bool {
        let served = self.served();
        let is_coming = |file: &String| {
            let next = self.store.text(served.generation + 1);
            next.as_ref() == Some(file)
        };
        let file = self.store.file();
        file.is_ok_and(|file| file != served.text && !is_coming(&file))
    }

    /// The generations that are kept, from the first.
    #[must_use]
    pub fn history(&self) -> Vec<Generation> {
        self.store.generations()
    }

    /// The document of a generation that is kept.
    #[must_use]
    pub fn text_of(&self, generation: u64) -> Option<String> {
        let served = self.served();
        if generation == served.generation {
            return Some(served.text.clone());
        }
        self.store.text(generation)
    }

    /// What somebody should look at.
    #[must_use]
    pub fn alarms(&self) -> Vec<String> {
        let mut alarms = self.stored_alarms().clone();
        let missing = self.server.missing_portals().into_iter();
        alarms.extend(missing.map(|(portal, cause)| {
            format!("nothing listens on {portal} ({cause}): it is tried again every few seconds")
        }));
        alarms
    }

    fn stored_alarms(&self) -> MutexGuard<'_, Vec<String>> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> MutexGuard<'_, Gate<FileStore, ServedTree>> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
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

//! `lunar daemon`: from a file to a server that can be asked and told.
//!
//! ```text
//!   main thread     reads the file, starts the server, waits for signals
//!   control         tokio: the API; what blocks goes to its pool
//!   cores           I/O; they know nothing of this
//! ```

mod thread;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use ::io::memory::MemoryLimit;
use ::io::ring::RingKind;
use address::{Size, Time};
use block::file::{ReservedPlaces, UndoLog};
use engine::server::{Server, ServerConfig, ServerHandle};
use runtime::lockfile::{Attempt, LockFile};
use tokio::sync::watch;

use crate::alarm::{Alarm, AlarmBoard, AlarmKind};
use crate::api::{self, ApiListeners, ApiState, PreparedListeners, Tokens};
use crate::audit::Audit;
use crate::check::{TreeProblem, check};
use crate::document::{parse, write};
use crate::gate::{Author, Candidate, Gate, Generation, Store};
use crate::panics;
use crate::plan::{Impact, plan};
use crate::plane::Plane;
use crate::serving::{Places, ServedTree, api_alarm};
use crate::store::{FileStore, RealFiles};
use crate::switches::Switches;
use crate::tree::{Tree, VolumeRow};
use thread::ControlSocket;

/// Where a daemon finds and keeps things.
#[derive(Clone)]
pub struct DaemonOptions {
    /// The configuration file.
    pub config: PathBuf,
    /// Where history, secrets and reservations are kept.
    pub state: PathBuf,
    /// The Unix socket of the API.
    pub socket: PathBuf,
    /// The folder of credentials that the service manager gave.
    pub credentials: Option<PathBuf>,
    /// What tells this machine from others.
    pub machine: String,
    /// The InitiatorName by which volumes of other targets are opened, if the tree gives none.
    pub initiator: String,
    /// How cores wait for I/O.
    pub ring: RingKind,
    /// Told what has ended, by order or not: a core, or the control plane.
    pub ended: Ended,
}

/// Hears what has ended.
pub type Ended = Arc<dyn Fn(&'static str) + Send + Sync>;

/// A daemon that serves.
pub struct Daemon {
    plane: Arc<Plane>,
    server: ServerHandle,
    listeners: Arc<ApiListeners>,
    switches: Arc<Switches>,
    stop: watch::Sender<bool>,
    control: JoinHandle<()>,
    /// For as long as anything writes there.
    state: Option<Arc<LockFile>>,
}

/// Why a daemon has not started.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The file says nothing that could be served, and nothing was served before.
    #[error("{file}: {cause}")]
    Config {
        /// The file.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Something that is needed cannot be had.
    #[error("{0}")]
    Failed(String),
}

/// What is served first.
struct First {
    generation: u64,
    text: String,
    tree: Tree,
    alarms: Vec<Alarm>,
    /// The volumes that were served last: their files are there, or missed.
    known: BTreeMap<String, VolumeRow>,
    /// It is not in the history yet.
    is_new: bool,
    /// What was applied last.
    before: Tree,
    /// A generation that was never made.
    dropped: Option<u64>,
}

impl Daemon {
    /// Serves what the file says, or, where that is nothing valid, what was served last.
    ///
    /// # Errors
    ///
    /// Nothing can be served.
    pub fn start(options: &DaemonOptions) -> Result<Self, DaemonError> {
        // The socket first: a second daemon changes nothing of what the first one has.
        let socket = thread::listen(&options.socket).map_err(DaemonError::Failed)?;
        let started = Self::start_behind(socket, options);
        started.inspect_err(|_| drop(fs::remove_file(&options.socket)))
    }

    fn start_behind(socket: ControlSocket, options: &DaemonOptions) -> Result<Self, DaemonError> {
        let failed = DaemonError::Failed;
        let state = claim(&options.state).map_err(failed)?;
        let files = RealFiles::default();
        let store = FileStore::new(&options.config, &options.state, files);
        let audit = Arc::new(Audit::new(&options.state));
        let mut store = store.map_err(failed)?.audited(Arc::clone(&audit));
        let mut first = first(&mut store, &options.config)?;
        let board = Arc::new(AlarmBoard::default());
        let tokens = Tokens::read(options.state.join("tokens.json"), Arc::clone(&board));
        let switches = Switches::new(options.state.clone(), options.ring, Arc::clone(&board));
        let switches = switches.map_err(|cause| failed(format!("no thread: {cause}")))?;
        let places = Places {
            state: options.state.clone(),
            credentials: options.credentials.clone(),
            machine: options.machine.clone(),
        };
        let inventory = places.first_inventory(&first.tree, &first.known);
        let (inventory, alarms) = inventory.map_err(|causes| failed(causes.join("\n")))?;
        let alarms = first.alarms.drain(..).chain(alarms);
        alarms.for_each(|alarm| board.raise(alarm));
        let config = server_config(&first.tree, options).map_err(failed)?;
        let undo = UndoLog::default();
        let server = Server::start(config, inventory, &undo);
        let server = server.map_err(|error| failed(error.to_string()))?;
        undo.forget();
        let kept = keep(&first, &mut store, &audit);
        kept.unwrap_or_else(|cause| board.raise(Alarm::new(AlarmKind::History, cause)));
        let listeners = Arc::new(ApiListeners::new(socket.0.handle().clone()));
        let prepared = listeners.prepare(&first.tree.api, &places);
        let prepared = prepared.unwrap_or_else(|cause| {
            board.raise(api_alarm(&cause));
            PreparedListeners::default()
        });
        switches.start(&first.tree);
        let tree = Arc::new(first.tree);
        let engine = ServedTree::new(
            Arc::clone(&server),
            places,
            Arc::clone(&tree),
            (Arc::clone(&listeners), Arc::clone(&switches)),
            Arc::clone(&board),
        );
        let gate = Gate::new(store, engine, first.generation, first.text, tree);
        let plane = Arc::new(Plane::new(gate, Arc::clone(&server), board, audit));
        let router = api::router(ApiState::new(Arc::clone(&plane), Arc::new(tokens)));
        listeners.start(router.clone(), prepared);
        let started = thread::start(options, socket, router);
        let ends = |_: &String| {
            server.stop();
            switches.stop();
        };
        let (stop, control) = started.inspect_err(ends).map_err(failed)?;
        Ok(Self {
            plane,
            server,
            listeners,
            switches,
            stop,
            control,
            state: state.map(Arc::new),
        })
    }

    /// What its front ends use.
    #[must_use]
    pub fn plane(&self) -> &Arc<Plane> {
        &self.plane
    }

    /// Takes the file as it is now, if nothing of it cuts or loses anything, and calls `done`. It
    /// does not wait for that: volumes may take their time to be opened.
    pub fn reload(&self, done: impl FnOnce(&Plane) + Send + 'static) {
        let (plane, state) = (Arc::clone(&self.plane), self.state.clone());
        let reload = move || {
            let _state = state;
            thread::begin();
            if panics::contained(|| plane.reload()).is_none() {
                tracing::error!("the file is not applied: its reader has panicked");
            }
            done(&plane);
        };
        let thread = std::thread::Builder::new().name("reload".to_owned());
        if let Err(cause) = thread.spawn(reload) {
            tracing::error!("the file is not applied: no thread ({cause})");
        }
    }

    /// Ends the control plane, then the server: initiators are asked to log out, and volumes
    /// flushed. Switches end last.
    ///
    /// # Errors
    ///
    /// What was not flushed, or failed before.
    pub fn stop(self) -> Result<(), String> {
        self.listeners.close();
        // It may have ended by itself.
        let _ = self.stop.send(true);
        self.server.stop();
        let _ = self.control.join();
        let ended = self.server.wait().map_err(|error| error.to_string());
        // Targets of this daemon may have logged out of their fabrics until now.
        self.switches.stop();
        ended
    }
}

/// Two daemons would overwrite each other's history. Where nothing can be written it cannot be, and
/// what was served last is served on.
fn claim(state: &Path) -> Result<Option<LockFile>, String> {
    let path = state.join("daemon.lock");
    let cannot = |cause: io::Error| format!("cannot lock {}: {cause}", path.display());
    fs::create_dir_all(state).map_err(cannot)?;
    let until = Instant::now() + LOCK_WAIT;
    loop {
        let attempt = match LockFile::acquire(&path) {
            Err(cause) if takes_nothing(&cause) => {
                tracing::error!("{}", cannot(cause));
                return Ok(None);
            }
            attempt => attempt.map_err(cannot)?,
        };
        match attempt {
            Attempt::Locked(lock) => return Ok(Some(lock)),
            Attempt::HeldBy(holder) if Instant::now() >= until => {
                let state = state.display();
                return Err(format!(
                    "{holder} uses the state directory {state}: stop it, or give another \
                     --state-dir"
                ));
            }
            Attempt::HeldBy(_) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// The file system is full, or can only be read.
fn takes_nothing(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
    )
}

fn server_config(tree: &Tree, options: &DaemonOptions) -> Result<ServerConfig, String> {
    // Fewer descriptors only mean fewer sessions.
    let _ = ::io::limits::raise_open_files();
    let name = tree.daemon.initiator_name.as_ref();
    let config = ServerConfig::new(name.unwrap_or(&options.initiator).clone());
    let mut config =
        config.map_err(|cause| format!("cannot determine the available memory: {cause}"))?;
    if let Some(Size(limit)) = tree.daemon.memory_limit {
        config.open.memory = Arc::new(MemoryLimit::new(limit));
    }
    config.open.memory.start();
    let threads = tree.daemon.threads.map(usize::from);
    config.threads = threads.and_then(NonZeroUsize::new);
    config.pin = tree.daemon.pin.as_ref().and_then(|list| list.parse().ok());
    config.busy_poll = tree.daemon.busy_poll.map(|Time(time)| time);
    config.ring = options.ring;
    config.portals_may_be_missing = true;
    config.open.reserved = reserved(options);
    config.state_dir = Some(options.state.clone());
    let ended = Arc::clone(&options.ended);
    config.ended = Arc::new(move |_| ended("a core"));
    Ok(config)
}

/// Where no volume may be: who may change what is served would have tokens, secrets and the
/// configuration itself by it.
fn reserved(options: &DaemonOptions) -> ReservedPlaces {
    let folder = match options.config.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The file may be a link to one that lies elsewhere.
    let (folder, file) = (folder.to_owned(), options.config.clone());
    let credentials = options.credentials.clone().into_iter();
    ReservedPlaces::new(
        [options.state.clone(), folder, file]
            .into_iter()
            .chain(credentials),
    )
}

/// The file counts if it is valid. If not, the last applied generation is served: a typo does not
/// take a SAN down at the next start.
fn first(store: &mut FileStore, config: &Path) -> Result<First, DaemonError> {
    let found = store.find().map_err(DaemonError::Failed)?;
    let number = found.last.as_ref().map_or(0, |(number, _)| *number);
    let served = found.served.as_ref().and_then(|text| read(text).ok());
    let known = served.map(|tree| tree.volume).unwrap_or_default();
    let is_missing = found.text.is_none();
    // A file that has gone is as wrong as one that was spoilt, but at the first start.
    let first = found.last.is_none().then(|| write(&Tree::default()));
    let text = found.text.or(first).ok_or("it is missing");
    let wrong = match text
        .map_err(str::to_owned)
        .and_then(|text| Ok((read(&text)?, text)))
    {
        Ok((tree, text)) => {
            let is_new = found.last.as_ref().is_none_or(|(_, last)| *last != text);
            let before = found.last.and_then(|(_, last)| read(&last).ok());
            return Ok(First {
                generation: number + u64::from(is_new),
                text,
                tree,
                alarms: Vec::new(),
                known,
                is_new,
                before: before.unwrap_or_default(),
                dropped: found.dropped,
            });
        }
        Err(wrong) => wrong,
    };
    let file = config.display().to_string();
    let last = found
        .last
        .and_then(|(number, text)| Some((number, read(&text).ok()?, text)));
    let Some((generation, tree, text)) = last else {
        return Err(DaemonError::Config { file, cause: wrong });
    };
    let detail = format!("{file} is not valid, and generation {generation} is served: {wrong}");
    let way_out = format!("correct it and lunar apply it, or lunar rollback {generation} drops it");
    let alarms = if is_missing {
        // There is an alarm as long as it is.
        tracing::error!("there is no {file} that can be read: generation {generation} is served");
        Vec::new()
    } else {
        vec![Alarm::new(AlarmKind::Configuration, detail).way_out(way_out)]
    };
    Ok(First {
        generation,
        text,
        tree,
        alarms,
        known,
        is_new: false,
        before: Tree::default(),
        dropped: found.dropped,
    })
}

fn read(text: &str) -> Result<Tree, String> {
    let tree = parse(text).map_err(|problem| problem.to_string())?;
    let problems = check(&tree).problems;
    if problems.is_empty() {
        return Ok(tree);
    }
    let lines: Vec<_> = problems.iter().map(TreeProblem::to_string).collect();
    Err(lines.join("\n"))
}

/// Keeps what is served first, where it is new, with its line in the audit log.
fn keep(first: &First, store: &mut FileStore, audit: &Audit) -> Result<(), String> {
    let author = Author {
        who: "root".to_owned(),
        from: "start".to_owned(),
        by: "start".to_owned(),
    };
    if let Some(number) = first.dropped {
        audit.killed(&author, number);
    }
    if first.is_new {
        audit.begin(&author, &Candidate::File);
        let kept = store.commit(&generation(first), &first.text);
        let told = audit.end(kept.as_ref().err().map(String::as_str));
        kept.and(told)?;
    }
    store.serves(first.generation)
}

fn generation(first: &First) -> Generation {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let plan = plan(&first.before, &first.tree, &[]).at_start();
    Generation {
        number: first.generation,
        at: since.map_or(0, |since| since.as_secs()),
        who: "root".to_owned(),
        by: "start".to_owned(),
        impact: Impact::Quiet,
        differences: crate::gate::told(&plan),
    }
}

/// How long a daemon waits for the state directory: one that was told to stop may have it still for
/// a moment.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

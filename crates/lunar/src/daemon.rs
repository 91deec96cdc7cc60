//! `lunar daemon`: a server that is configured by a file, and can be asked and told.

use process::ExitCode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;
use std::{env, fs, io, process, thread};

use clap::Args;
use control::daemon::{Daemon, DaemonError, DaemonOptions};
use control::plane::{Plane, Session, Unanswered};
use engine::serve::options::RingKind;
use rustix::process::geteuid;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::manage::SocketArgs;
use crate::serve::args::RINGS;
use crate::units::{choice, counted};
use crate::{VerbError, client, log};

/// Serve what a configuration file says, until told to stop
///
/// Volumes, groups of initiators, targets and switches are rows of one file. lunar plan tells what
/// a change of it would do to whom, lunar apply makes it, while hosts go on working. SIGHUP applies
/// the file if that ends no session and loses nothing; SIGTERM or ^C asks the initiators to log
/// out, flushes the volumes and exits with 0.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "/etc/lunar/lunar.toml")]
    config: PathBuf,

    /// Where history, secrets and reservations are kept [default: /var/lib/lunar]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    #[command(flatten)]
    socket: SocketArgs,

    /// How to wait for I/O
    #[arg(long, value_name = "RING", default_value = "auto", value_parser = choice(RINGS))]
    ring: RingKind,
}

/// What the main thread hears.
enum Heard {
    Stop,
    Reload,
    /// This has ended by itself.
    Ended(&'static str),
}

pub(crate) fn run(args: &DaemonArgs) -> Result<ExitCode, VerbError> {
    log::start();
    let (told, heard) = channel();
    signals(told.clone()).map_err(VerbError::signals)?;
    let state = args.state_dir.clone().or_else(client::state_dir);
    let state = state
        .ok_or_else(|| VerbError::usage("there is no state directory: give --state-dir DIR"))?;
    let options = DaemonOptions {
        machine: machine(&state)?,
        config: args.config.clone(),
        state,
        socket: args.socket.path(),
        credentials: env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from),
        initiator: format!("{}:initiator", client::default_name()),
        ring: args.ring,
        ended: Arc::new(move |what| {
            // While it stops, nobody listens.
            let _ = told.send(Heard::Ended(what));
        }),
    };
    let daemon = Daemon::start(&options).map_err(|error| failure(&error))?;
    let served = daemon.plane().served();
    tracing::info!(
        "generation {} is served: {}, {}; it listens to {}",
        served.generation,
        counted(served.tree.volume.len() as u64, "volume"),
        counted(served.tree.target.len() as u64, "target"),
        options.socket.display()
    );
    notify(daemon.plane(), NotifyState::Ready);
    let ended = wait(&daemon, &heard);
    notify(daemon.plane(), NotifyState::Stopping);
    daemon.stop().and(ended).map_err(VerbError::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for the order to stop, and meanwhile tells the service manager that all is well.
fn wait(daemon: &Daemon, heard: &Receiver<Heard>) -> Result<(), String> {
    // A core may fail to answer once, for 5 s, and the next beat still comes in time. Without a
    // service manager nothing wakes up for it.
    let interval = sd_notify::watchdog_enabled().map(|limit| limit / 3);
    let mut beat = interval.map(|interval| Instant::now() + interval);
    loop {
        let next = match beat {
            Some(at) => heard.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Heard::Reload) => {
                notify(daemon.plane(), NotifyState::Reloading);
                daemon.reload(|plane| notify(plane, NotifyState::Ready));
            }
            Ok(Heard::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Ok(Heard::Ended(what)) => return Err(format!("{what} has ended")),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(sessions) = daemon.plane().pulse() {
                    tell(daemon.plane(), NotifyState::Watchdog, Ok(sessions));
                }
                beat = interval.map(|interval| Instant::now() + interval);
            }
        }
    }
}

/// Tells the service manager; without one nobody listens.
fn notify(plane: &Plane, state: NotifyState<'_>) {
    let is_counted = |session: &Session| session.target.is_some();
    let sessions = plane.sessions();
    let sessions = sessions.map(|all| all.iter().filter(|one| is_counted(one)).count());
    tell(plane, state, sessions);
}

fn tell(plane: &Plane, state: NotifyState<'_>, sessions: Result<usize, Unanswered>) {
    let generation = plane.served().generation;
    let status = match sessions {
        Ok(sessions) => format!(
            "generation {generation}, {}",
            counted(sessions as u64, "session")
        ),
        Err(cause) => format!("generation {generation}; {cause}"),
    };
    let _ = sd_notify::notify(&[state, NotifyState::Status(&status)]);
}

fn failure(error: &DaemonError) -> VerbError {
    match error {
        DaemonError::Config { .. } => VerbError::usage(error),
        DaemonError::Failed(_) => VerbError::failed(error),
    }
}

/// What tells this machine from others, from the first start on: identities of volumes follow from
/// it, so it stays as it is where the machine gets another name or the folder another machine.
fn machine(state: &Path) -> Result<String, VerbError> {
    let path = state.join("machine");
    let known = fs::read_to_string(&path).unwrap_or_default();
    if !known.trim().is_empty() {
        return Ok(known.trim().to_owned());
    }
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let id = match id.trim() {
        "" | "uninitialized" => runtime::secret::generate(32).to_string(),
        id => id.to_owned(),
    };
    let text = format!("{id}\n");
    let kept = fs::create_dir_all(state)
        .and_then(|()| runtime::files::replace(state, "machine", text.as_bytes()));
    kept.map_err(|cause| VerbError::failed(format!("cannot write {}: {cause}", path.display())))?;
    Ok(id)
}

/// SIGTERM and SIGINT stop, SIGHUP reloads. A second order to stop ends the process.
fn signals(told: Sender<Heard>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut stops = 0;
            for signal in signals.forever() {
                let heard = if signal == SIGHUP {
                    Heard::Reload
                } else {
                    Heard::Stop
                };
                stops += u32::from(signal != SIGHUP);
                if stops > 1 {
                    log::say("stopped by a second signal");
                    process::exit(1);
                }
                let _ = told.send(heard);
            }
        })?;
    Ok(())
}

/// Root's daemon is at a place that all know; others have their own.
pub(crate) fn default_socket() -> PathBuf {
    if geteuid().is_root() {
        return PathBuf::from("/run/lunar/control.sock");
    }
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    folder.join("lunar-control.sock")
}

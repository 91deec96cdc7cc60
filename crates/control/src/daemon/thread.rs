//! The thread of the control plane, which must not be missed: where it fails or panics, it begins
//! again.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::DaemonOptions;
use crate::api::{self, ApiSocket};
use crate::panics;
use crate::plane::MOST_CHANGING;

/// A runtime, and the socket that it listens to.
pub(super) type ControlSocket = (Runtime, ApiSocket);

pub(super) fn listen(socket: &Path) -> Result<ControlSocket, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(IDLE)
        .on_thread_start(begin)
        .build()
        .map_err(|cause| format!("cannot start the control plane: {cause}"))?;
    let socket = runtime.block_on(api::listen(socket))?;
    Ok((runtime, socket))
}

/// Begins a thread of the control plane, which does no I/O of hosts: it may panic, and gives way to
/// those that do.
pub(super) fn begin() {
    panics::let_unwind();
    if let Err(cause) = io::cpu::give_way(NICE) {
        tracing::warn!("the control plane does not give way to I/O: {cause}");
    }
}

/// Starts the thread of the control plane. Where it fails or panics it begins again; where it
/// cannot, the daemon is told, because a server that cannot be asked must not go unnoticed.
pub(super) fn start(
    options: &DaemonOptions,
    socket: ControlSocket,
    router: Router,
) -> Result<(watch::Sender<bool>, JoinHandle<()>), String> {
    let (stop, stopped) = watch::channel(false);
    let (path, ended) = (options.socket.clone(), Arc::clone(&options.ended));
    let thread = thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            begin();
            let serve = |runtime: &Runtime, socket| {
                let mut stopped = stopped.clone();
                let stopped = async move { drop(stopped.wait_for(|stopped| *stopped).await) };
                runtime.block_on(api::serve(socket, router.clone(), stopped))
            };
            if let Err(cause) = keep(&path, socket, &stopped, serve) {
                tracing::error!("the control plane has ended: {cause}");
            }
            let _ = std::fs::remove_file(path);
            ended("the control plane");
        });
    let thread = thread.map_err(|cause| format!("cannot start the control plane: {cause}"))?;
    Ok((stop, thread))
}

/// Serves the API at a path until it is stopped. The runtime stays, and with it what listens on
/// TCP.
fn keep(
    path: &Path,
    (runtime, mut socket): ControlSocket,
    stopped: &watch::Receiver<bool>,
    serve: impl Fn(&Runtime, ApiSocket) -> std::io::Result<()>,
) -> Result<(), String> {
    loop {
        let done = panics::contained(|| serve(&runtime, socket));
        if *stopped.borrow() || stopped.has_changed().is_err() {
            // A request that hangs does not keep the server from ending.
            runtime.shutdown_timeout(PATIENCE);
            return Ok(());
        }
        let cause = done.map_or("it has panicked".to_owned(), |done| match done {
            Ok(()) => "it has stopped".to_owned(),
            Err(cause) => cause.to_string(),
        });
        tracing::error!("the control plane begins again: {cause}");
        thread::sleep(PAUSE);
        socket = runtime.block_on(api::listen(path))?;
    }
}

/// Beside a core that never sleeps a quarter of its processor is left.
const NICE: i32 = 5;

/// How many requests may block at once: those that wait for their turn to change something, and as
/// many beside them that only look.
const BLOCKING_THREADS: usize = 2 * MOST_CHANGING;

/// How long a thread that blocked waits for more.
const IDLE: Duration = Duration::from_secs(10);

const PATIENCE: Duration = Duration::from_secs(2);

/// Before the control plane begins again: what makes it fail at once must not fill the log.
const PAUSE: Duration = Duration::from_secs(1);

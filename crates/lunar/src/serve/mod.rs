//! `lunar serve`: from the command line to the engine, and from there to standard output.

pub(crate) mod args;
mod identity;
mod portal;
mod ready;
mod secret;

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use args::ServeArgs;
use engine::serve::options::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Failure, log};

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    let json = args.json;
    let options = args.into_options()?;
    options
        .validate()
        .map_err(|misuse| Failure::usage(misuse.to_string()))?;
    log::start();
    let stop = stop_signals()
        .map_err(|cause| Failure::failed(format!("cannot catch signals: {cause}")))?;
    engine::serve::run(&options, &stop, |luns| ready::print(luns, json))
        .map_err(|error| failure(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &Error) -> Failure {
    Failure {
        line: error.to_string(),
        code: error.exit_code(),
    }
}

/// A message for each SIGTERM or SIGINT. Signals that come together are one order: who stops a
/// whole group of processes, such as timeout(1), may reach us twice.
fn stop_signals() -> io::Result<Receiver<()>> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let (told, stop) = channel();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut last: Option<Instant> = None;
            for _ in signals.forever() {
                let together = last.is_some_and(|last| last.elapsed() < TOGETHER);
                last = Some(Instant::now());
                if !together && told.send(()).is_err() {
                    return;
                }
            }
        })?;
    Ok(stop)
}

/// Shorter than a person needs to press ^C twice.
const TOGETHER: Duration = Duration::from_millis(50);

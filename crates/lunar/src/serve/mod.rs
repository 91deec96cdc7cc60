//! `lunar serve`: from the command line to the engine, and from there to standard output.

pub(crate) mod args;
pub(crate) mod identity;
pub(crate) mod portal;
mod ready;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use args::ServeArgs;
use engine::serve::Orders;
use engine::serve::options::ServeError;
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::progress_display::orders_to_stop;
use crate::{VerbError, log};

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, VerbError> {
    let json = args.json;
    let options = args.into_options()?;
    options
        .validate()
        .map_err(|misuse| VerbError::usage(misuse.to_string()))?;
    log::start();
    let orders = Orders::default();
    let serves = Arc::new(AtomicBool::new(false));
    heed_signals(&orders, Arc::clone(&serves))
        .map_err(|cause| VerbError::failed(format!("cannot catch signals: {cause}")))?;
    let ready = |luns: &[_]| {
        serves.store(true, SeqCst);
        ready::print(luns, json);
    };
    engine::serve::run(&options, &orders, ready).map_err(|error| failure(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: &ServeError) -> VerbError {
    VerbError {
        line: error.to_string(),
        code: error.exit_code(),
    }
}

/// Orders a stop at the first SIGTERM, SIGINT or SIGHUP, and an immediate one at a later signal.
/// Signals soon after the first count as the same order: a program that stops a process group, such
/// as timeout(1), signals both the process and its group. SIGUSR1 requests the statistics of the
/// volumes. Before the server is ready, which may take as long as a remote volume needs to answer,
/// the first signal ends the process.
///
/// The order goes through [`Orders`] to `engine::serve::run`, which sends each core
/// `CoreMessage::Stop`; what a core does about it is in `engine/src/core/stop.rs`.
fn heed_signals(orders: &Orders, serves: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new([orders_to_stop(), vec![SIGUSR1]].concat())?;
    let stop = orders.stopper();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                if signal == SIGUSR1 {
                    stop.tell();
                    continue;
                }
                if !serves.load(SeqCst) {
                    let _held = stop.undo();
                    log::flush();
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                let same = first.is_some_and(|first| first.elapsed() < SAME_ORDER);
                first.get_or_insert_with(Instant::now);
                if !same {
                    stop.stop();
                }
            }
        })?;
    Ok(())
}

/// Longer than one order takes to arrive by two ways.
const SAME_ORDER: Duration = Duration::from_secs(1);

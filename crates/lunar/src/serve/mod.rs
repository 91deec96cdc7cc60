//! `lunar serve`: from the command line to the engine, and from there to standard output.

pub(crate) mod args;
mod fcoe_config;
pub(crate) mod portal;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

use args::ServeArgs;
use engine::serve::Orders;
use engine::serve::options::{ReadyLun, ServeError};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::progress_display::{SAME_ORDER, orders_to_stop};
use crate::units::{human_size, printable};
use crate::{VerbError, log};

pub(crate) fn run(args: ServeArgs) -> Result<ExitCode, VerbError> {
    let json = args.json;
    // Reading the files of --fcoe-config has lines to log.
    log::start();
    let options = args.into_options()?;
    options.validate().map_err(VerbError::usage)?;
    let orders = Orders::default();
    let serves = Arc::new(AtomicBool::new(false));
    heed_signals(&orders, Arc::clone(&serves)).map_err(VerbError::signals)?;
    let ready = |luns: &[_]| {
        serves.store(true, SeqCst);
        print(luns, json);
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
/// The order goes through [`Orders`] to `engine::serve::run`, whose `Server::stop` sends each core
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

/// Says on standard output that everything is ready: one line for each LUN at each portal, or one
/// JSON object a LUN, and nothing else. A reader that has gone away does not keep a server from
/// serving.
fn print(luns: &[ReadyLun], json: bool) {
    let lines: String = luns.iter().map(|lun| line(lun, json) + "\n").collect();
    let mut out = io::stdout().lock();
    if let Err(cause) = out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        tracing::warn!("the ready lines cannot be printed: {cause}");
    }
}

fn line(lun: &ReadyLun, json: bool) -> String {
    if json {
        // A struct of strings and numbers always has a JSON form.
        return serde_json::to_string(lun).unwrap_or_default();
    }
    let size = match lun.size_bytes {
        0 => "absent".to_owned(),
        bytes => human_size(bytes),
    };
    let volume = printable(&lun.volume, &[]);
    let addresses = addresses(lun).into_iter();
    let lines = addresses.map(|address| format!("{address}  {size}  {volume}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The addresses by which initiators reach a LUN: one a portal.
fn addresses(lun: &ReadyLun) -> Vec<String> {
    let Some((scheme @ ("iscsi" | "iser"), _)) = lun.address.split_once("://") else {
        return vec![lun.address.clone()];
    };
    let address = |portal| format!("{scheme}://{portal}/{}/{}", lun.target, lun.lun);
    lun.portals.iter().map(address).collect()
}

//! Logs to standard error, one event per line.
//!
//! A separate thread writes them. Standard error may be a pipe that is read slowly or not at all,
//! and a reactor must not wait for it: peers could then stop every core by causing log lines. Lines
//! that do not fit into the queue are dropped and counted.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::units::{counted, printable, without_codes};

/// The environment variable that says how much is logged: `error`, `warn`, `info`, `debug`, or
/// directives such as `info,iscsi=debug`.
pub(crate) const VARIABLE: &str = "LUNAR_LOG";

/// Starts logging. A malformed filter is told and replaced by the default: a server must not stay
/// down for a typo in its environment.
pub(crate) fn start() {
    let wanted = std::env::var_os(VARIABLE).unwrap_or_default();
    let wanted = wanted.to_string_lossy();
    let (filter, wrong) = match filter(&wanted) {
        Ok(filter) => (filter, None),
        Err(cause) => (EnvFilter::new("info"), Some(cause)),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer())
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        // It would tell where nothing can be told, and panic: a full disk under the log of a server
        // must not be its end.
        .log_internal_errors(false)
        .init();
    if let Some(cause) = wrong {
        tracing::warn!("{VARIABLE}={wanted} is not valid ({cause}): logging at info");
    }
}

/// A line on standard error, behind those of the log. It is lost where that cannot be written.
pub(crate) fn say(line: &str) {
    let line = printable(&without_codes(line), &['\n']);
    let line = format!("lunar: {line}\n");
    match QUEUE.get() {
        Some(queue) => {
            queue.send(LogEntry::Line(line.into_bytes()), Instant::now() + PATIENCE);
            flush();
        }
        None => {
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }
}

/// Waits until what was logged is written, but no longer than a reader may take that still reads.
pub(crate) fn flush() {
    let until = Instant::now() + PATIENCE;
    let (done, is_done) = sync_channel(1);
    if let Some(queue) = QUEUE.get()
        && queue.send(LogEntry::Flush(done), until)
    {
        let _ = is_done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// What goes to the thread that writes.
enum LogEntry {
    Line(Vec<u8>),
    /// To be answered when all before it is written.
    Flush(SyncSender<()>),
}

/// The way to the thread that writes.
#[derive(Clone)]
struct LogQueue {
    entries: SyncSender<LogEntry>,
    /// Lines for which there was no room.
    lost: Arc<AtomicU64>,
}

impl LogQueue {
    /// Starts the thread.
    fn start() -> io::Result<Self> {
        let (entries, queued) = sync_channel(LINES);
        let lost = Arc::<AtomicU64>::default();
        let queue = Self {
            entries,
            lost: Arc::clone(&lost),
        };
        let thread = thread::Builder::new().name("log".to_owned());
        thread.spawn(move || write(&queued, &lost))?;
        Ok(queue)
    }

    /// Waits for room until then; says whether there was some.
    fn send(&self, mut entry: LogEntry, until: Instant) -> bool {
        loop {
            entry = match self.entries.try_send(entry) {
                Ok(()) => return true,
                Err(TrySendError::Full(entry)) if Instant::now() < until => entry,
                Err(_) => return false,
            };
            thread::sleep(PAUSE);
        }
    }
}

fn write(queued: &Receiver<LogEntry>, lost: &AtomicU64) {
    let mut out = io::stderr();
    for entry in queued {
        // What cannot be written cannot be told either.
        let _ = match &entry {
            LogEntry::Line(line) => out.write_all(line),
            LogEntry::Flush(_) => Ok(()),
        };
        let lost = lost.swap(0, SeqCst);
        if lost > 0 {
            let _ = writeln!(
                out,
                "lunar: {} of the log were dropped here because it was read too slowly",
                counted(lost, "line")
            );
        }
        if let LogEntry::Flush(done) = entry {
            let _ = done.send(());
        }
    }
}

/// A line of the log, which the formatter writes as a whole.
struct LogLine(Option<LogQueue>);

impl Write for LogLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Some(queue) => {
                let text = without_codes(&String::from_utf8_lossy(line)).into_bytes();
                if queue.entries.try_send(LogEntry::Line(text)).is_err() {
                    queue.lost.fetch_add(1, SeqCst);
                }
                Ok(line.len())
            }
            None => io::stderr().write(line),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the writer thread; without it, each logging thread writes its own lines.
fn writer() -> impl Fn() -> LogLine {
    let queue = LogQueue::start().ok();
    if let Some(queue) = &queue {
        let _ = QUEUE.set(queue.clone());
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            flush();
            hook(panic);
        }));
    }
    move || LogLine(queue.clone())
}

/// For the code that ends the process.
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// Lines that may wait to be written: more than all rules of all peers may log in a minute where
/// peers are few, and some 100 KiB.
const LINES: usize = 1024;

/// How long the exit of the process waits for the reader of the log.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// A word that is not a level would be taken for the name of a module, and silence all others.
fn filter(wanted: &str) -> Result<EnvFilter, String> {
    if wanted.is_empty() {
        return Ok(EnvFilter::new("info"));
    }
    let mut words = wanted.split(',').map(str::trim);
    if let Some(word) =
        words.find(|word| !word.contains('=') && word.parse::<LevelFilter>().is_err())
    {
        return Err(format!(
            "{word:?} is neither error, warn, info, debug nor MODULE=LEVEL"
        ));
    }
    EnvFilter::try_new(wanted).map_err(|cause| cause.to_string())
}

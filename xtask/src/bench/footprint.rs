//! What a target costs besides its I/O: to start, while idle, and for each session.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use io::{cpu, limits};
use tests::client::Client;
use tests::initiator::Settings;
use tests::iser_end::IserSettings;
use tests::process::resident;
use tests::server::{ReadyLun, Server};

use super::target;
use super::verdict::Verdict;

const IDLE_SESSIONS: u32 = 100;
const IDLE: Duration = Duration::from_secs(10);
/// A target asks an idle session for a sign of life after 30, then after 60 and 120 s: each is
/// asked three times.
const IDLE_MANY: Duration = Duration::from_secs(210);
const MANY_SESSIONS: u32 = 10_000;
const STARTS: usize = 5;

/// Measures it all, and judges it.
pub(super) fn measure(binary: &Path) -> Result<Vec<Verdict>> {
    eprintln!("start, idle load, memory");
    limits::raise_open_files().context("cannot raise the file limit")?;
    let mut verdicts = sessions(binary, None)?;
    verdicts.extend(sessions(binary, Some(IserSettings::usual()))?);
    let start = start_ms(binary)?;
    verdicts.push(Verdict::at_most(
        start,
        "ms from start to ready, ram:50G",
        50.0,
    ));
    Ok(verdicts)
}

/// What idle sessions cost, over iSER if so told.
fn sessions(binary: &Path, iser: Option<IserSettings>) -> Result<Vec<Verdict>> {
    let over = if iser.is_some() { ", iSER" } else { "" };
    let server = target::serve(binary, "bench-footprint", "ram:1G", &["--iser"])?;
    let pid = server.pid();
    let held = HeldSessions::new(iser);
    let (idle, many_idle, grown) = thread::scope(|scope| {
        let hold = |numbers| scope.spawn(|| held.hold(&server.luns[0], numbers));
        let mut threads = vec![hold(0..IDLE_SESSIONS)];
        let mut measure = || -> Result<_> {
            held.wait(IDLE_SESSIONS)?;
            let idle = load_during(pid, IDLE)?;
            let before = resident(pid)?;
            let rest = (IDLE_SESSIONS..MANY_SESSIONS).step_by(IDLE_SESSIONS as usize);
            threads.extend(rest.map(|first| hold(first..first + IDLE_SESSIONS)));
            held.wait(MANY_SESSIONS)?;
            let grown = resident(pid)?.saturating_sub(before);
            Ok((idle, load_during(pid, IDLE_MANY)?, grown as f64))
        };
        let measured = measure();
        held.stop.store(true, Relaxed);
        let mut ends = threads.into_iter().map(ScopedJoinHandle::join);
        ends.try_for_each(|end| end.unwrap_or_else(|_| bail!("a thread panicked")))?;
        measured
    })?;
    let session_kib = grown / f64::from(MANY_SESSIONS - IDLE_SESSIONS) / 1024.0;
    let of_a_core = |sessions| format!("% of a core for {sessions} idle sessions{over}");
    let kib = format!("KiB for an idle session{over}");
    Ok(vec![
        Verdict::at_most(idle * 100.0, of_a_core(IDLE_SESSIONS), 0.5),
        Verdict::at_most(many_idle * 100.0, of_a_core(MANY_SESSIONS), 1.0),
        Verdict::at_most(session_kib, kib, 64.0),
    ])
}

/// Sessions that do nothing but answer when they are asked whether they are there.
struct HeldSessions {
    iser: Option<IserSettings>,
    count: AtomicU32,
    stop: AtomicBool,
}

impl HeldSessions {
    fn new(iser: Option<IserSettings>) -> Self {
        Self {
            iser,
            count: AtomicU32::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Holds some of them until it is told to stop.
    fn hold(&self, lun: &ReadyLun, numbers: Range<u32>) -> Result<()> {
        // A look at a socket takes a tick of the kernel, so a thread has no more than 100.
        const LOOK: Duration = Duration::from_millis(1);
        let mut sessions = Vec::new();
        for number in numbers {
            let settings = Settings {
                iser: self.iser.clone(),
                ..Settings::new(number, &lun.target)
            };
            sessions.push(Client::log_in_as(lun, settings)?);
            self.count.fetch_add(1, Relaxed);
        }
        while !self.stop.load(Relaxed) {
            for session in &mut sessions {
                session.exchange(LOOK)?;
            }
        }
        Ok(())
    }

    /// Waits until that many are held.
    fn wait(&self, count: u32) -> Result<()> {
        for _ in 0..600 {
            if self.count.load(Relaxed) == count {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        }
        bail!("not all of {count} sessions are logged in after a minute")
    }
}

/// Seconds of CPU a second.
fn load_during(pid: u32, time: Duration) -> Result<f64> {
    let (start, before) = (Instant::now(), cpu::time_of(pid)?);
    thread::sleep(time);
    Ok((cpu::time_of(pid)? - before).as_secs_f64() / start.elapsed().as_secs_f64())
}

/// From the start of the process to its ready line, the median of several.
fn start_ms(binary: &Path) -> Result<f64> {
    let command = [binary.to_string_lossy().into_owned()];
    let mut times = [0.0; STARTS];
    for time in &mut times {
        let dir = tests::scratch("bench-start")?;
        let start = Instant::now();
        let server = Server::start_as(&command, &dir, &["ram:50G"], &[])?;
        *time = start.elapsed().as_secs_f64() * 1e3;
        drop(server);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[STARTS / 2])
}

//! What a target costs besides its I/O: to start, while idle, and for each session.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use io::{cpu, limits};
use tests::process::resident;
use tests::server::Server;

use super::report::Footprint;
use super::session::{Buffer, Session};
use super::target::{Target, release_binary};

const IDLE_SESSIONS: u32 = 100;
const IDLE: Duration = Duration::from_secs(10);
/// A target asks an idle session for a sign of life after 30, then after 60 and 120 s: each is
/// asked three times.
const IDLE_MANY: Duration = Duration::from_secs(210);
const MANY_SESSIONS: u32 = 10_000;
const STARTS: usize = 5;

pub(crate) fn measure() -> Result<Footprint> {
    eprintln!("start, idle load, memory");
    limits::raise_open_files().context("cannot raise the file limit")?;
    let target = Target::lunar("bench-footprint", "ram:1G", &[])?;
    let mut buffer = Buffer::new();
    let mut sessions = log_in(&target, 0..IDLE_SESSIONS, &mut buffer)?;
    let pid = target.pid.context("its process is known")?;
    let idle_load = load_while_idle(pid, &mut sessions, IDLE)?;
    let before = resident(pid)?;
    sessions.extend(log_in(&target, IDLE_SESSIONS..MANY_SESSIONS, &mut buffer)?);
    let grown = resident(pid)?.saturating_sub(before);
    Ok(Footprint {
        idle_load,
        many_idle_load: load_while_idle(pid, &mut sessions, IDLE_MANY)?,
        session_bytes: grown / u64::from(MANY_SESSIONS - IDLE_SESSIONS),
        sessions: sessions.len(),
        start_ms: start_ms()?,
    })
}

fn log_in(
    target: &Target,
    numbers: std::ops::Range<u32>,
    buffer: &mut Buffer,
) -> Result<Vec<Session>> {
    numbers
        .map(|number| Session::log_in(target, number, false, buffer))
        .collect()
}

/// Seconds of CPU a second, while sessions do nothing but answer when they are asked whether they
/// are there.
fn load_while_idle(pid: u32, sessions: &mut [Session], time: Duration) -> Result<f64> {
    let mut buffer = Buffer::new();
    let (start, before) = (Instant::now(), cpu::time_of(pid)?);
    while start.elapsed() < time {
        thread::sleep(Duration::from_millis(100));
        for session in &mut *sessions {
            session.exchange(&mut buffer)?;
            session.send()?;
        }
    }
    Ok((cpu::time_of(pid)? - before).as_secs_f64() / start.elapsed().as_secs_f64())
}

/// From the start of the process to its ready line, the median of several.
fn start_ms() -> Result<f64> {
    let command = [release_binary()?.to_string_lossy().into_owned()];
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let dir = tests::scratch("bench-start")?;
        let start = Instant::now();
        let server = Server::start_as(&command, &dir, &["ram:50G"], &[])?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        drop(server);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[STARTS / 2])
}

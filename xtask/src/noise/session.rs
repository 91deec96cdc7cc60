//! Whether sessions stay, as the daemon tells.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use control::plane::Session;

use super::LOAD;
use crate::daemon::RunningDaemon;

/// Commands after which a session is that of a load, and not of a listing of LUNs.
const AT_WORK: u64 = 100;

/// Looks at the session of a load when it has begun, and again when the time of a turn is nearly
/// over: it has to be the same. Once it has begun there is no login until it has ended by itself,
/// which is when `ended` hangs up.
pub(super) fn stays(
    daemon: &RunningDaemon,
    idle_tsih: u16,
    time: Duration,
    ended: &Receiver<()>,
) -> Result<()> {
    let Some(first) = begun(daemon, idle_tsih, ended)? else {
        return Ok(());
    };
    let logins = logins(&daemon.text("/metrics")?)?;
    match ended.recv_timeout(time.mul_f64(0.9)) {
        Err(RecvTimeoutError::Timeout) => {}
        // It has failed, as its end tells.
        _ => return Ok(()),
    }
    let sessions: Vec<Session> = daemon.get("/v1/sessions")?;
    let last = sessions.iter().find(|session| session.id == first.id);
    let last = last.with_context(|| format!("{:?} is not there any more", first.id))?;
    let goes_on = is_same(&first, last) && last.commands > first.commands;
    ensure!(goes_on, "it is another one: {first:?}, then {last:?}");
    let _ = ended.recv();
    let after = self::logins(&daemon.text("/metrics")?)?;
    ensure!(after == logins, "{} logins beside it", after - logins);
    Ok(())
}

/// The session of the load, once it is at work; `None` if it has ended before.
fn begun(daemon: &RunningDaemon, idle_tsih: u16, ended: &Receiver<()>) -> Result<Option<Session>> {
    for _ in 0..1000 {
        let session = of_load(daemon.get("/v1/sessions")?, idle_tsih);
        if session.is_some() || ended.try_recv() == Err(TryRecvError::Disconnected) {
            return Ok(session);
        }
        thread::sleep(Duration::from_millis(20));
    }
    bail!("there is none after 20 s")
}

/// The session that reads; the idle one has the TSIH that is given.
pub(super) fn of_load(sessions: Vec<Session>, idle_tsih: u16) -> Option<Session> {
    let mut sessions = sessions.into_iter();
    sessions.find(|session| {
        let is_of_load = session.target.as_deref() == Some(LOAD);
        is_of_load && session.id != Some(idle_tsih) && session.commands > AT_WORK
    })
}

/// Whether two looks have seen one session, the second later than the first.
pub(super) fn is_same(first: &Session, last: &Session) -> bool {
    let who = |session: &Session| (session.id, session.isid.clone(), session.initiator.clone());
    who(first) == who(last) && last.age_s >= first.age_s
}

/// How many logins there were, by what the metrics tell.
pub(super) fn logins(metrics: &str) -> Result<u64> {
    let lines = metrics.lines();
    let accepted = lines.filter(|line| {
        line.starts_with("lunar_logins_total{") && line.contains("result=\"accepted\"")
    });
    let counts = accepted.map(|line| -> Result<u64> {
        let (_, count) = line.rsplit_once(' ').context("no number")?;
        Ok(count.parse::<u64>()?)
    });
    counts.sum()
}

/// The idle session is there still.
pub(super) fn is_there(daemon: &RunningDaemon, idle_tsih: u16) -> Result<()> {
    let sessions: Vec<Session> = daemon.get("/v1/sessions")?;
    let is_there = sessions.iter().any(|session| session.id == Some(idle_tsih));
    ensure!(is_there, "session {idle_tsih} has ended: {sessions:?}");
    Ok(())
}

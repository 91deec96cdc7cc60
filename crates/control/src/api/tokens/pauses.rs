//! Pauses before a wrong token is answered: each one from the same address takes longer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

/// The first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);

/// For how long lines of the log are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The longest one.
const LONGEST: Duration = Duration::from_secs(16);

/// For how long a wrong token is remembered.
const MEMORY: Duration = Duration::from_secs(600);

/// How many addresses are remembered; of more, each wrong token is as the first.
const ADDRESSES_MAX: usize = 1024;

/// How many answers may wait at once. One more is given at once, and is as wrong: no token of 256
/// bits is found by asking.
const WAITING_MAX: usize = 16;

/// Who has shown a wrong token lately.
#[derive(Debug)]
pub(in crate::api) struct Pauses {
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
    lines: Mutex<Lines>,
    waiting: Semaphore,
}

/// What the log was told of wrong tokens in this minute.
#[derive(Debug, Default)]
struct Lines {
    since: Option<Instant>,
    told: u32,
    untold: u64,
}

/// How many lines a minute the log has of wrong tokens, from all addresses together.
const LINES: u32 = 10;

impl Default for Pauses {
    fn default() -> Self {
        Self {
            wrong: Mutex::default(),
            lines: Mutex::default(),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }
}

impl Pauses {
    /// Waits, as this address has shown a wrong token.
    pub(in crate::api) async fn pause(&self, address: IpAddr) {
        let pause = self.wrong(address, Instant::now());
        if let Ok(_place) = self.waiting.try_acquire() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Whether the log may have a line of a wrong token, and how many had none before it.
    pub(in crate::api) fn may_tell(&self, now: Instant) -> Option<u64> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |since: Instant| now.saturating_duration_since(since) < MINUTE;
        if !lines.since.is_some_and(is_fresh) {
            (lines.since, lines.told) = (Some(now), 0);
        }
        if lines.told == LINES {
            lines.untold += 1;
            return None;
        }
        lines.told += 1;
        Some(std::mem::take(&mut lines.untold))
    }

    /// How long the answer to a wrong token has to wait.
    fn wrong(&self, address: IpAddr, now: Instant) -> Duration {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let is_fresh = |at: &Instant| now.saturating_duration_since(*at) < MEMORY;
        if wrong.len() >= ADDRESSES_MAX {
            wrong.retain(|_, (at, _)| is_fresh(at));
        }
        let network = network(address);
        let before = wrong.get(&network).filter(|(at, _)| is_fresh(at));
        let count = before.map_or(0, |(_, count)| *count);
        if wrong.len() < ADDRESSES_MAX || wrong.contains_key(&network) {
            wrong.insert(network, (now, count.saturating_add(1)));
        }
        let doubled = FIRST.checked_mul(1 << count.min(16));
        doubled.map_or(LONGEST, |pause| pause.min(LONGEST))
    }
}

/// A host has a whole /64 of IPv6 to itself.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => IpAddr::V6((u128::from(six) >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests;

//! VLAN discovery on ports of this machine: interfaces, and cables.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use fc::wire::ethernet::Mac;
use io::ether::{EtherOpenError, EtherOptions, EtherPort, Place};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Forwarder;
use super::query::VlanQuery;
use crate::change::FcoeMode;

/// How to ask.
#[derive(Clone, Copy, Debug)]
pub struct DiscoveryOptions {
    /// Which responders are asked: FCFs or VN2VN ports.
    pub mode: FcoeMode,
    /// How often again, a second each, where nothing answers. As long a link is waited for.
    pub retries: u32,
}

/// A port at which is asked.
#[derive(Debug)]
pub struct QueriedPort {
    name: String,
    port: EtherPort,
    query: VlanQuery,
    /// How long the link is waited for.
    link_by: Duration,
}

impl QueriedPort {
    /// Opens a port, at the name of an interface or a `cable:PATH`.
    ///
    /// # Errors
    /// See [`EtherOpenError`].
    pub fn open(name: &str, options: DiscoveryOptions) -> Result<Self, EtherOpenError> {
        let Ok(place) = name.parse::<Place>();
        let port = EtherPort::open(&place, &PORT)?;
        let DiscoveryOptions { mode, retries } = options;
        Ok(Self {
            name: name.to_owned(),
            query: VlanQuery::new(mode, Mac(port.mac()), retries, Duration::ZERO),
            port,
            link_by: RETRY * retries.max(1),
        })
    }

    /// What it was opened by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was found there.
    #[must_use]
    pub fn found(&self) -> &[Forwarder] {
        self.query.found()
    }

    /// Receives and sends what there is.
    ///
    /// # Errors
    /// What is wrong with the port itself.
    fn turn(&mut self, now: Duration) -> std::io::Result<()> {
        let query = &mut self.query;
        let port = &mut self.port;
        take_some(|| port.receive(|frame, tag| query.receive(now, frame, tag)));
        self.port.news()?;
        if !self.port.link().up {
            return Ok(());
        }
        if let Some(frame) = query.poll(now)
            && let Some(slot) = self.port.slot(frame.len())
        {
            slot.copy_from_slice(&frame);
            self.port.commit(frame.len());
        }
        self.port.flush().map(drop)
    }

    /// When to look again at the latest. `None` once it is over.
    fn due(&self, now: Duration) -> Option<Duration> {
        if self.port.link().up {
            self.query.due()
        } else {
            Some(self.link_by).filter(|by| *by > now)
        }
    }
}

/// Asks at all ports, until each has been answered for or asked often enough, or until `stop`.
///
/// # Errors
/// What is wrong with a port.
pub fn discover(ports: &mut [QueriedPort], stop: &AtomicBool) -> std::io::Result<()> {
    let begun = Instant::now();
    while !stop.load(Relaxed) {
        let now = begun.elapsed();
        for port in &mut *ports {
            port.turn(now)?;
        }
        let due = ports.iter().filter_map(|port| port.due(now)).min();
        let Some(due) = due else {
            return Ok(());
        };
        wait(ports, due.saturating_sub(now).min(TURN))?;
    }
    Ok(())
}

/// Receives until there is nothing more, or for a while: whoever sends faster than it is heard
/// keeps neither other ports nor the end waiting.
pub(crate) fn take_some(mut receive: impl FnMut() -> usize) {
    for _ in 0..BATCHES {
        if receive() == 0 {
            return;
        }
    }
}

/// Waits for a frame, or for so long.
fn wait(ports: &[QueriedPort], pause: Duration) -> std::io::Result<()> {
    let waited = |port: &&QueriedPort| port.query.due().is_some();
    let waited = ports.iter().filter(waited);
    let mut list: Vec<_> = waited
        .map(|port| PollFd::from_borrowed_fd(port.port.waited().as_fd(), PollFlags::IN))
        .collect();
    // Whole milliseconds are rounded up, so that no turn comes before its time.
    let pause = pause + Duration::from_micros(1);
    let pause = Timespec::try_from(pause).map_err(std::io::Error::other)?;
    match poll(&mut list, Some(&pause)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

const RETRY: Duration = Duration::from_secs(1);

/// How long is waited before it is looked whether to stop.
const TURN: Duration = Duration::from_millis(100);

/// Batches of frames that are received before something else is done.
const BATCHES: usize = 4;

/// FIP frames are short and few.
const PORT: EtherOptions = EtherOptions {
    payload_max: 2500,
    ring: 256 << 10,
};

//! Connections that one thread answers, as a target of one thread does.
//!
//! A thread for each would switch from one to the other where they share a core, and that costs
//! more than moving small blocks.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::FloorConnection;

/// As many as are told at once.
const EVENTS: usize = 64;

/// How often silence is looked for.
const LOOK: Duration = Duration::from_secs(1);

const SLEEP: Timespec = Timespec {
    tv_sec: LOOK.as_secs() as i64,
    tv_nsec: 0,
};

/// Those of one thread, which ends with the process.
#[derive(Debug)]
pub(super) struct ThreadConnections {
    epoll: OwnedFd,
    connections: Mutex<BTreeMap<u64, FloorConnection>>,
}

impl ThreadConnections {
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let together = Arc::new(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: Mutex::default(),
        });
        let own = Arc::clone(&together);
        let thread = thread::Builder::new().name("together".to_owned());
        thread.spawn(move || own.run())?;
        Ok(together)
    }

    /// Has one more answered.
    pub(super) fn add(&self, connection: FloorConnection) -> io::Result<()> {
        let mut connections = self.connections();
        let number = connections.last_key_value().map_or(0, |(last, _)| last + 1);
        let data = EventData::new_u64(number);
        epoll::add(&self.epoll, &connection.socket, data, EventFlags::IN)?;
        connections.insert(number, connection);
        Ok(())
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, FloorConnection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut spins = false;
        let mut looked = Instant::now();
        loop {
            events.clear();
            let patience = if spins { Timespec::default() } else { SLEEP };
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&patience),
            ) {
                Err(Errno::INTR) => continue,
                done => done?,
            };
            let now = Instant::now();
            let looks = now.duration_since(looked) >= LOOK;
            if events.is_empty() && !looks {
                continue;
            }
            let mut connections = self.connections();
            for event in &events {
                answer(&mut connections, event.data.u64(), now);
            }
            if looks {
                connections.retain(|_, connection| !connection.is_silent(now));
                looked = now;
            }
            spins = connections.values().any(|connection| connection.spins);
        }
    }
}

/// What is wrong with a connection is seen at its other end.
fn answer(connections: &mut BTreeMap<u64, FloorConnection>, number: u64, now: Instant) {
    let goes_on = connections.get_mut(&number).map(|connection| {
        connection.heard = now;
        connection.step()
    });
    if !matches!(goes_on, Some(Ok(true))) {
        connections.remove(&number);
    }
}

//! Connections that one thread answers, as a target of one thread does.
//!
//! A thread for each would switch from one to the other where they share a core, and that costs
//! more than moving small blocks.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::Connection;

/// As many as are told at once.
const EVENTS: usize = 64;

/// Those of one thread, which ends with the process.
#[derive(Debug)]
pub(super) struct Together {
    epoll: OwnedFd,
    connections: Mutex<BTreeMap<u64, Connection>>,
}

impl Together {
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
    pub(super) fn add(&self, connection: Connection) -> io::Result<()> {
        let mut connections = self.connections();
        let number = connections.last_key_value().map_or(0, |(last, _)| last + 1);
        let data = EventData::new_u64(number);
        epoll::add(&self.epoll, &connection.socket, data, EventFlags::IN)?;
        connections.insert(number, connection);
        Ok(())
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut spins = false;
        loop {
            events.clear();
            let at_once = spins.then(Timespec::default);
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                at_once.as_ref(),
            ) {
                Err(Errno::INTR) => continue,
                done => done?,
            };
            if !events.is_empty() {
                let mut connections = self.connections();
                for event in &events {
                    answer(&mut connections, event.data.u64());
                }
                spins = connections.values().any(|connection| connection.spins);
            }
        }
    }
}

/// What is wrong with a connection is seen at its other end.
fn answer(connections: &mut BTreeMap<u64, Connection>, number: u64) {
    let connection = connections.get_mut(&number);
    let goes_on = connection.map(Connection::step);
    if !matches!(goes_on, Some(Ok(true))) {
        connections.remove(&number);
    }
}

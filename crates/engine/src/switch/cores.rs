//! What the cores of a switch have in common.
//!
//! | way | from, to | what | when it is full |
//! |---|---|---|---|
//! | mail | a port, core 0 | what is for the machine | the port is left unread |
//! | control frames | core 0, a core | what the machine sends by ports there | they wait in the machine |
//! | table | core 0, all | how frames are forwarded | a newer one takes its place |
//!
//! Frames that are forwarded go none of these ways: each core sends what came in at its ports by
//! sockets of its own, at whichever port it is to leave.
//!
//! **In force.** A core acknowledges a table when what it has forwarded by the one before was sent,
//! as far as the ports took it. What the machine has sent since that table was made leaves when all
//! have ([`super::outbox`]): so the answer to a logout overtakes the last frames of its host only
//! at a port that takes nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ::io::ring::Waker;
use fc::fabric::{ForwardTable, PortNumber};

use super::core_queue::CoreQueue;
use super::mail::{MAIL_MAX, MailItem};
use super::outbox::CONTROL_MAX;
use super::ports::PortBoard;

/// The ways between the cores of a switch.
#[derive(Debug)]
pub(super) struct SwitchCores {
    /// Of each core.
    pub(super) wakers: Vec<Waker>,
    /// The core of each port.
    pub(super) homes: Vec<usize>,
    /// Of each port.
    pub(super) mail: Vec<CoreQueue<MailItem>>,
    /// To each core.
    pub(super) posts: Vec<CorePost>,
    /// Of each port.
    pub(super) unsent: Vec<UnsentBytes>,
    table: Mutex<(u64, Arc<ForwardTable>)>,
    version: AtomicU64,
    /// Ports that are left unread as their mailbox is full, a bit each.
    pub(super) unmailed: AtomicU64,
    pub(super) board: PortBoard,
    /// A core has ended that was not told to.
    pub(super) has_failed: AtomicBool,
}

/// What core 0 tells another core.
#[derive(Debug)]
pub(super) struct CorePost {
    /// What the machine sends by ports there.
    pub(super) control: CoreQueue<PortNumber>,
    /// Ports of which the kernel's forwarding is to be set up anew, a bit each.
    pub(super) anew: AtomicU64,
    /// It is to end when all has left.
    pub(super) ends: AtomicBool,
    /// From there: the last table that is in force.
    pub(super) acknowledged: AtomicU64,
}

/// What the machine sends by a port and has not left yet.
#[derive(Debug, Default)]
pub(super) struct UnsentBytes {
    pub(super) bytes: AtomicUsize,
    /// The machine has more to send than had room.
    pub(super) has_more: AtomicBool,
}

/// The number of the table that all cores begin with.
pub(super) const FIRST_VERSION: u64 = 1;

/// On which core each port lives: on that with the fewest ports, the lowest of these. The first
/// port is on core 0, which other programs ask by the same file descriptor.
pub(super) fn homes(ports: usize, cores: usize) -> Vec<usize> {
    (0..ports).map(|port| port % cores.max(1)).collect()
}

impl SwitchCores {
    /// For cores that these wake, and ports that live there.
    pub(super) fn new(
        wakers: Vec<Waker>,
        homes: Vec<usize>,
        table: Arc<ForwardTable>,
        board: PortBoard,
    ) -> Self {
        let cores = wakers.len();
        let post = |core| {
            let ports = homes.iter().filter(|home| **home == core).count();
            CorePost {
                control: CoreQueue::new(ports * CONTROL_MAX),
                anew: AtomicU64::new(0),
                ends: AtomicBool::new(false),
                acknowledged: AtomicU64::new(FIRST_VERSION),
            }
        };
        let mail = |home: &usize| CoreQueue::new(if *home == 0 { 0 } else { MAIL_MAX });
        Self {
            mail: homes.iter().map(mail).collect(),
            posts: (0..cores).map(post).collect(),
            unsent: homes.iter().map(|_| UnsentBytes::default()).collect(),
            table: Mutex::new((FIRST_VERSION, table)),
            version: AtomicU64::new(FIRST_VERSION),
            unmailed: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            wakers,
            homes,
            board,
        }
    }

    /// How many they are.
    pub(super) const fn count(&self) -> usize {
        self.wakers.len()
    }

    /// Has all cores forward by another table.
    pub(super) fn publish(&self, version: u64, table: &Arc<ForwardTable>) {
        let mut place = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        *place = (version, Arc::clone(table));
        self.version.store(version, Ordering::Release);
        drop(place);
        self.wakers.iter().skip(1).for_each(Waker::wake);
    }

    /// The last table, if it is newer than that of this version.
    pub(super) fn newer_table(&self, version: u64) -> Option<(u64, Arc<ForwardTable>)> {
        if self.version.load(Ordering::Acquire) == version {
            return None;
        }
        let place = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        Some((place.0, Arc::clone(&place.1)))
    }

    /// Wakes the cores of a set, a bit each.
    pub(super) fn wake(&self, set: u64) {
        let wakers = self.wakers.iter().enumerate();
        for (_, waker) in wakers.filter(|(core, _)| set & 1 << core != 0) {
            waker.wake();
        }
    }

    /// Has all other cores end when what they have to send has left.
    pub(super) fn end(&self) {
        for (post, waker) in self.posts.iter().zip(&self.wakers).skip(1) {
            post.ends.store(true, Ordering::Release);
            waker.wake();
        }
    }
}

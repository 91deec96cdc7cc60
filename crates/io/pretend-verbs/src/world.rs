//! Everything there is, behind one lock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::objects::{Connection, CqState, EventQueue, MrState, QpState};

/// By the addresses of what users see, or by keys.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) orders: Orders,
    /// By device: the address of its context, once it was opened.
    pub(crate) contexts: [Option<usize>; 2],
    /// Devices that were taken away.
    pub(crate) removed: HashSet<usize>,
    pub(crate) async_events: VecDeque<i32>,
    pub(crate) pds: HashSet<usize>,
    pub(crate) mrs: HashMap<u32, MrState>,
    pub(crate) comp_channels: HashMap<usize, VecDeque<usize>>,
    pub(crate) cqs: HashMap<usize, CqState>,
    pub(crate) qps: HashMap<usize, QpState>,
    pub(crate) event_channels: HashMap<usize, EventQueue>,
    pub(crate) ids: HashMap<usize, Connection>,
    /// Lists of devices that are held.
    pub(crate) device_lists: usize,
    pub(crate) last_key: u32,
    pub(crate) last_port: u16,
    pub(crate) pinned: usize,
    pub(crate) send_calls: u64,
    pub(crate) requests: u64,
    pub(crate) moved: u64,
    pub(crate) complaints: u64,
}

/// What tests have ordered.
pub(crate) struct Orders {
    pub(crate) devices: u32,
    pub(crate) hold: i64,
    pub(crate) fail_after: Option<u64>,
    pub(crate) fail_status: u32,
    pub(crate) cm_event: Option<i32>,
    pub(crate) cm_status: i32,
    pub(crate) pinned_limit: usize,
    pub(crate) rnr_fails: bool,
    pub(crate) pieces: i32,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            devices: 1,
            hold: 0,
            fail_after: None,
            fail_status: 5,
            cm_event: None,
            cm_status: 0,
            pinned_limit: usize::MAX,
            rnr_fails: false,
            pieces: 30,
        }
    }
}

impl World {
    /// Something that no correct user does.
    pub(crate) fn complain(&mut self, of: &str) {
        eprintln!("pretend-verbs: {of}");
        self.complaints += 1;
    }

    /// Has those be there again that were taken away, as far as there are to be such devices. What
    /// was made on the ones before stays with them.
    pub(crate) fn bring_back(&mut self) {
        for number in 0..self.contexts.len() {
            if self.orders.devices & 1 << number != 0 && self.removed.remove(&number) {
                self.contexts[number] = None;
            }
        }
    }

    /// A key that was never used.
    pub(crate) fn key(&mut self) -> u32 {
        self.last_key += 1;
        self.last_key << 8 | 0x5a
    }
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);

pub(crate) fn lock() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

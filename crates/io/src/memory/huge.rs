//! Small pages of regions are replaced by huge ones where most of them was written.
//!
//! A huge page at the first write would be the faster way to fill a region from begin to end. But a
//! first write at a random place would have to wait for 2 MiB to be cleared (0.1 ms; 4 ms in a
//! virtual machine whose host has to find the memory first), and take 2 MiB. So all of it is done
//! later and by another thread.
//!
//! MADV_COLLAPSE (Linux 6.1) copies a group into a huge page. A thread that touches the group
//! meanwhile waits, so
//!
//! - it is done when the group has been idle for a while: a sequential writer has then moved on;
//! - the advice that allows huge pages is given for the time of the call and only to this group,
//!   which so is a mapping of its own in the kernel, and page faults elsewhere in the region do not
//!   wait for it; the advice against them, before and after, makes one mapping of all groups again;
//! - a huge page is taken, touched and given back just before, so that the kernel finds one that is
//!   in the cache, and that the host has memory for: 0.5 ms in place of 8.
//!
//! On older kernels the advice stays, and khugepaged comes along in its own time.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::mm::Advice;

use super::granules::GROUP;
use super::limit::NoSpace;
use super::mapping::Mapping;
use super::region::Region;
use crate::cpu;

/// How long a group rests at the least.
const REST: Duration = Duration::from_secs(1);

/// How often a group is tried, each time after a rest: the kernel may have no huge page just then,
/// or some page of the group be in use by a system call. A group that fails as often, or for which
/// the memory limit leaves no room, is tried again when others have become ripe.
const TRIES: u32 = 5;

/// The thread that replaces pages, for all regions of a memory limit. It sleeps when there is
/// nothing to be replaced, and ends with the last clone of the limit.
#[derive(Debug, Default)]
pub(super) struct Replacer {
    shared: Arc<ReplacerShared>,
}

#[derive(Debug, Default)]
struct ReplacerShared {
    regions: Mutex<Vec<Weak<Region>>>,
    thread: OnceLock<Thread>,
    over: AtomicBool,
}

impl Replacer {
    /// Has the thread look after a region, which wakes it by [`Self::wake`]. Where no thread can be
    /// started, pages stay small.
    pub(super) fn add(&self, region: &Arc<Region>) {
        {
            let mut regions = self.shared.lock();
            regions.retain(|region| region.strong_count() > 0);
            regions.push(Arc::downgrade(region));
        }
        self.start();
    }

    /// Starts the thread, unless it is there.
    pub(super) fn start(&self) {
        // Under the lock, so that two that come at once do not start a thread each.
        let _regions = self.shared.lock();
        if self.shared.thread.get().is_none() {
            let shared = Arc::clone(&self.shared);
            if let Ok(started) = cpu::spawn_helper("lunar-pages", move || shared.work()) {
                let _ = self.shared.thread.set(started.thread().clone());
            }
        }
    }

    /// A group of a region has become ripe.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.shared.thread.get() {
            thread.unpark();
        }
    }
}

impl Drop for Replacer {
    fn drop(&mut self) {
        self.shared.over.store(true, Relaxed);
        self.wake();
    }
}

impl ReplacerShared {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Region>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let spare = Mapping::reserve(2 * GROUP as usize).ok();
        let mut work = RipeGroups::default();
        while !self.over.load(Relaxed) {
            for region in self.lock().iter().filter_map(Weak::upgrade) {
                work.find(&region);
            }
            if work.is_done() {
                thread::park();
                continue;
            }
            thread::sleep(REST);
            work.go_round(spare.as_ref());
        }
    }
}

/// Groups that are to be replaced.
#[derive(Default)]
pub(super) struct RipeGroups {
    ripe: Vec<Candidate>,
    /// Those that wait for others to become ripe.
    put_off: Vec<Candidate>,
}

/// A group that is to be replaced.
struct Candidate {
    region: Weak<Region>,
    group: u64,
    tries: u32,
}

/// What came of a group.
enum GroupOutcome {
    Over,
    /// It is tried again after a rest.
    Again,
    /// It is tried again when others have become ripe.
    Later,
}

impl RipeGroups {
    /// Takes note of what has become ripe in a region.
    pub(super) fn find(&mut self, region: &Arc<Region>) {
        let mut from = 0;
        while let Some(group) = region.next_ripe(from) {
            from = group + 1;
            let region = Arc::downgrade(region);
            let tries = TRIES;
            self.ripe.append(&mut self.put_off);
            self.ripe.push(Candidate {
                region,
                group,
                tries,
            });
        }
    }

    /// Whether there is nothing to do until others become ripe.
    pub(super) const fn is_done(&self) -> bool {
        self.ripe.is_empty()
    }

    /// Tries each that is ripe once.
    pub(super) fn go_round(&mut self, spare: Option<&Mapping>) {
        // One that was put off may have become ripe anew.
        let key = |ripe: &Candidate| (ripe.region.as_ptr().addr(), ripe.group);
        self.ripe.sort_unstable_by_key(key);
        self.ripe.dedup_by_key(|ripe| key(ripe));
        for mut ripe in mem::take(&mut self.ripe) {
            match ripe.replace(spare) {
                GroupOutcome::Over => {}
                GroupOutcome::Again => self.ripe.push(ripe),
                GroupOutcome::Later => self.put_off.push(ripe),
            }
        }
    }
}

impl Candidate {
    fn replace(&mut self, spare: Option<&Mapping>) -> GroupOutcome {
        let Some(region) = self.region.upgrade() else {
            return GroupOutcome::Over;
        };
        let begin = Instant::now();
        spare.inspect(|spare| warm_up(spare));
        let is_over = region.replace(self.group);
        self.tries -= 1;
        // No more than half of a processor, which others may want.
        thread::sleep(begin.elapsed());
        match is_over {
            Ok(true) => GroupOutcome::Over,
            Ok(false) if self.tries > 0 => GroupOutcome::Again,
            Ok(false) | Err(NoSpace) => {
                self.tries = TRIES;
                GroupOutcome::Later
            }
        }
    }
}

/// Has the kernel's next huge page be one that was just used.
fn warm_up(spare: &Mapping) {
    let start = spare.at(0).as_ptr().align_offset(GROUP as usize);
    spare.advise(start, GROUP as usize, Advice::LinuxHugepage);
    spare.touch(start);
    spare.discard(start, GROUP as usize);
}

/// The size of a huge page, if the kernel gives huge pages on request (madvise).
pub(super) fn huge_page() -> Option<u64> {
    let setting = |name: &str| {
        std::fs::read_to_string(format!("/sys/kernel/mm/transparent_hugepage/{name}")).ok()
    };
    if setting("enabled")?.contains("[never]") {
        return None;
    }
    setting("hpage_pmd_size")?.trim().parse().ok()
}

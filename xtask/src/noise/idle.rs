//! How often a daemon wakes up that has nothing to do, by its threads.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tests::process::{ThreadSwitches, switches};

/// Threads that answered requests go after 10 s, and buffers after 2 s.
const REST: Duration = Duration::from_secs(15);

/// Counts for some time, prints what each kind of thread does, and returns the wake-ups a second of
/// all.
pub(super) fn measure(pid: u32, time: Duration) -> Result<f64> {
    thread::sleep(REST);
    let (begin, before) = (Instant::now(), switches(pid)?);
    thread::sleep(time);
    let (after, seconds) = (switches(pid)?, begin.elapsed().as_secs_f64());
    let each = by_name(&before, &after);
    println!("idle for {seconds:.0} s, wake-ups and preemptions a second:");
    for (name, (waits, preemptions)) in &each {
        let (waits, preemptions) = (*waits as f64 / seconds, *preemptions as f64 / seconds);
        println!("    {name:<16}{waits:>8.2}{preemptions:>8.2}");
    }
    let wakeups: u64 = each.values().map(|(waits, _)| waits).sum();
    Ok(wakeups as f64 / seconds)
}

/// How often threads waited and were preempted between two looks, those of a name together. Those
/// that have ended meanwhile are not known.
pub(super) fn by_name(
    before: &BTreeMap<u32, ThreadSwitches>,
    after: &BTreeMap<u32, ThreadSwitches>,
) -> BTreeMap<String, (u64, u64)> {
    let mut each = BTreeMap::new();
    for (id, thread) in after {
        let then = before.get(id).cloned().unwrap_or_default();
        let (waits, preemptions): &mut (u64, u64) = each.entry(thread.name.clone()).or_default();
        *waits += thread.waits.saturating_sub(then.waits);
        *preemptions += thread.preemptions.saturating_sub(then.preemptions);
    }
    each
}

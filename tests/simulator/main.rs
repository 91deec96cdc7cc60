//! Stories of the target in a simulated world: cores, hosts, wires, mailboxes and disks behind one
//! seed, and an oracle that knows what may be read and what may come to the disks; and of N_Ports
//! on a simulated Ethernet, alone or behind the switch of a fabric.
//!
//! `LUNAR_SEEDS=n` tells each story with n seeds, `LUNAR_SEED=x` with that one, and `LUNAR_TRACE=1`
//! says what happens on the way.

mod fabric;
mod gate;
mod host;
mod inventory;
mod lab;
mod liar;
mod oracle;
mod ports;
mod transport;
mod watch;

/// One story a file.
mod stories {
    mod compare;
    mod damage;
    mod damaged_fpdus;
    mod fabric;
    mod fences;
    mod locks;
    mod logins;
    mod outcomes;
    mod ports;
    mod random_io;
    mod remote_units;
    mod sessions;
    mod slow_readers;
    mod splits;
    mod spread;
    mod stops;
    mod user_splits;
    mod wrong_targets;
}

/// The seeds that a story is told with.
mod seeds {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::thread::{available_parallelism, scope};

    use crate::transport::Transport;

    /// Tells a story of hosts over each transport: as often as it usually is over TCP, and half as
    /// often over each of the others. The seed says which.
    pub(crate) fn with_transports(story: &str, usual: u64, tell: impl Fn(u64)) {
        if number("LUNAR_SEED").is_some() {
            return with_seeds(story, usual, tell);
        }
        for over in Transport::ALL {
            let share = if over == Transport::Tcp { 1 } else { 2 };
            let seeds = seeds(usual.div_ceil(share));
            tell_each(
                &format!("{story} ({over:?})"),
                seeds.map(|seed| over.seed(seed)),
                &tell,
            );
        }
    }

    /// Tells a story with `usual` seeds, or as the environment says.
    pub(crate) fn with_seeds(story: &str, usual: u64, tell: impl Fn(u64)) {
        tell_each(story, seeds(usual), &tell);
    }

    /// The same on all processors, for stories that are told by the thousand.
    pub(crate) fn with_seeds_in_parallel(story: &str, usual: u64, tell: impl Fn(u64) + Sync) {
        let threads = available_parallelism().map_or(1, usize::from);
        let (all, tell) = (seeds(usual), &tell);
        scope(|scope| {
            for thread in 0..threads {
                let share = all.clone().skip(thread).step_by(threads);
                scope.spawn(move || tell_each(story, share, tell));
            }
        });
    }

    /// A story that fails tells its seed, which repeats it. The others are told all the same, until
    /// [`FAILURES_MAX`] have failed.
    fn tell_each(story: &str, seeds: impl Iterator<Item = u64>, tell: &impl Fn(u64)) {
        let failures = seeds.filter_map(|seed| {
            let failure = catch_unwind(AssertUnwindSafe(|| tell(seed))).err()?;
            eprintln!("{story} fails with seed {seed}: LUNAR_SEED={seed} repeats it");
            Some(failure)
        });
        if let Some(last) = failures.take(FAILURES_MAX).last() {
            resume_unwind(last);
        }
    }

    const FAILURES_MAX: usize = 10;

    fn seeds(usual: u64) -> std::ops::Range<u64> {
        match (number("LUNAR_SEED"), number("LUNAR_SEEDS")) {
            (Some(seed), _) => seed..seed + 1,
            (None, count) => 0..count.unwrap_or(usual),
        }
    }

    fn number(name: &str) -> Option<u64> {
        let value = std::env::var(name).ok()?;
        let number = value.parse();
        Some(number.unwrap_or_else(|_| panic!("{name}={value}")))
    }
}

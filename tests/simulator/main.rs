//! Stories of the target in a simulated world: cores, hosts, wires, mailboxes and disks behind one
//! seed, and an oracle that knows what may be read and what may come to the disks; and of N_Ports
//! on a simulated Ethernet.
//!
//! `LUNAR_SEEDS=n` tells each story with n seeds, `LUNAR_SEED=x` with that one, and `LUNAR_TRACE=1`
//! says what happens on the way.

mod gate;
mod host;
mod inventory;
mod lab;
mod liar;
mod oracle;
mod ports;
mod watch;

/// One story a file.
mod stories {
    mod compare;
    mod damage;
    mod fences;
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
    mod wrong_targets;
}

/// The seeds that a story is told with.
mod seeds {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    /// Tells a story with `usual` seeds, or as the environment says. A story that fails tells its
    /// seed, which repeats it.
    pub(crate) fn with_seeds(story: &str, usual: u64, tell: impl Fn(u64)) {
        for seed in seeds(usual) {
            if let Err(cause) = catch_unwind(AssertUnwindSafe(|| tell(seed))) {
                eprintln!("{story} fails with seed {seed}: LUNAR_SEED={seed} repeats it");
                resume_unwind(cause);
            }
        }
    }

    fn seeds(usual: u64) -> std::ops::Range<u64> {
        let number = |name: &str| {
            let value = std::env::var(name).ok()?;
            Some(
                value
                    .parse::<u64>()
                    .unwrap_or_else(|_| panic!("{name}={value}")),
            )
        };
        match (number("LUNAR_SEED"), number("LUNAR_SEEDS")) {
            (Some(seed), _) => seed..seed + 1,
            (None, count) => 0..count.unwrap_or(usual),
        }
    }
}

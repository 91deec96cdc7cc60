//! Which seeds a story is told with.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Tells a story with `usual` seeds, or as the environment says: `LUNAR_SEEDS=n` with that many,
/// `LUNAR_SEED=x` with that one. A story that fails tells its seed, which repeats it.
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

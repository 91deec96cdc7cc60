//! Where processes run.

/// The CPU that generates load.
pub(crate) const GENERATOR_CPU: usize = 0;

/// The CPU that targets run on, as `taskset` wants it.
pub(crate) const TARGET_CPU: &str = "1";

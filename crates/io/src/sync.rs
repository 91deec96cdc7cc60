//! What the lock-free parts are made of. Their tests under loom (`--cfg loom`), which try every
//! order of what several threads do, put loom's own in its place.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU8, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU8, AtomicU64, Ordering, fence},
};

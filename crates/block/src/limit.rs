//! `limit:iops=10k,rate=100M(A)` and `delay:5ms(A)`: volumes that do no more than a rate allows, or
//! begin each operation later.
//!
//! # How it is measured
//!
//! By the generic cell rate algorithm: each limit knows the instant at which all that was let
//! through until now is paid for. An operation begins when that is no further ahead than the burst
//! that is allowed after a pause, 10 ms unless told otherwise, and adds its own cost. So it is
//! known when an operation comes at what instant it will begin; those of a core begin in the order
//! in which they came. What is cancelled while it waits gives its cost back, and those behind it
//! begin as much earlier.
//!
//! Reads, writes, WRITE SAME, UNMAP and SANITIZE count as one operation each, and all but UNMAP by
//! the bytes of their blocks. What asks for memory or for the state of blocks, and flushes, do not
//! count and do not wait.
//!
//! # Cores
//!
//! The limit holds for the volume, over all cores. What is paid for is behind a lock, as both
//! limits have to be looked at together; it is held for a few additions. A limit is no place for
//! the last nanosecond.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scsi::medium::{MediumOp, Now};

use crate::filter::Filter;
use crate::lease::BlockLease;
use crate::start_policy::{LaterHandle, StartPolicy};
use crate::volume::{CoreContext, Handle, Volume};

/// A volume that does no more than so much a second.
#[derive(Debug)]
pub struct Limit {
    inside: Arc<dyn Volume>,
    meter: Arc<TokenMeter>,
}

/// What a volume may do. `None` is no limit, and 0 is taken for 1.
#[derive(Clone, Copy, Debug)]
pub struct LimitRates {
    /// Operations a second.
    pub iops: Option<u64>,
    /// Bytes a second.
    pub bytes: Option<u64>,
    /// How far ahead of what is paid for may be let through: as much as in this time, at once.
    pub burst: Duration,
}

impl LimitRates {
    /// Enough that a timer that comes late, or commands that come in bunches, do not cost
    /// throughput.
    pub const BURST: Duration = Duration::from_millis(10);
}

impl Default for LimitRates {
    fn default() -> Self {
        Self {
            iops: None,
            bytes: None,
            burst: Self::BURST,
        }
    }
}

impl Limit {
    /// Limits a volume.
    #[must_use]
    pub fn new(inside: Arc<dyn Volume>, rates: LimitRates) -> Self {
        let meter = TokenMeter {
            block_size: inside.traits().block_size.into(),
            rates,
            burst: u64::try_from(rates.burst.as_nanos()).unwrap_or(u64::MAX),
            paid: Mutex::default(),
        };
        let meter = Arc::new(meter);
        Self { inside, meter }
    }
}

impl Filter for Limit {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let inside = self.inside.attach(core)?;
        let meter = Arc::clone(&self.meter);
        Ok(Box::new(LaterHandle::new(inside, meter)))
    }
}

#[derive(Debug)]
struct TokenMeter {
    block_size: u64,
    rates: LimitRates,
    /// In nanoseconds.
    burst: u64,
    paid: Mutex<PaidUntil>,
}

/// When all that was let through is paid for, by each limit, in nanoseconds.
#[derive(Debug, Default)]
struct PaidUntil {
    operations: u64,
    bytes: u64,
}

impl TokenMeter {
    /// What an operation costs by each limit, in nanoseconds; `None` where it does not count.
    fn costs(&self, op: &MediumOp<BlockLease>) -> Option<(u64, u64)> {
        let bytes = counted(op)?.saturating_mul(self.block_size);
        let of = |amount, limit: Option<u64>| limit.map_or(0, |a_second| cost(amount, a_second));
        Some((of(1, self.rates.iops), of(bytes, self.rates.bytes)))
    }
}

impl StartPolicy for Arc<TokenMeter> {
    fn begin(&self, now: Now, op: &MediumOp<BlockLease>) -> Option<Now> {
        let (operation, bytes) = self.costs(op)?;
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        // Nothing between locking and unlocking panics.
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = paid.operations.max(paid.bytes).saturating_sub(self.burst);
        let begin = now.max(ahead);
        if self.rates.iops.is_some() {
            paid.operations = paid.operations.max(begin).saturating_add(operation);
        }
        if self.rates.bytes.is_some() {
            paid.bytes = paid.bytes.max(begin).saturating_add(bytes);
        }
        Some(Now::from_nanos(begin))
    }

    fn give_back(&self, op: &MediumOp<BlockLease>) -> bool {
        let Some((operation, bytes)) = self.costs(op) else {
            return false;
        };
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        paid.operations = paid.operations.saturating_sub(operation);
        paid.bytes = paid.bytes.saturating_sub(bytes);
        true
    }
}

/// The blocks by which an operation counts, if it does.
fn counted(op: &MediumOp<BlockLease>) -> Option<u64> {
    match op {
        MediumOp::Read { extent, .. }
        | MediumOp::Write { extent, .. }
        | MediumOp::WriteSame { extent, .. }
        | MediumOp::Sanitize { extent, .. } => Some(extent.blocks),
        MediumOp::Unmap { .. } => Some(0),
        MediumOp::PrepareWrite { .. }
        | MediumOp::Buffer { .. }
        | MediumOp::Flush { .. }
        | MediumOp::Status { .. }
        | MediumOp::Prefetch { .. } => None,
    }
}

/// What so much takes at so much a second, in nanoseconds; rounded up, so that the limit holds.
fn cost(amount: u64, a_second: u64) -> u64 {
    let nanos = u128::from(amount) * 1_000_000_000;
    u64::try_from(nanos.div_ceil(a_second.max(1).into())).unwrap_or(u64::MAX)
}

/// `delay:5ms(A)`: a slower volume.
///
/// Each operation starts a fixed time after it arrived, in order of arrival. `PrepareWrite` is not
/// delayed, or a write would be delayed twice. A RAM disk lends its own memory, so reads can return
/// written data before the delayed write starts.
#[derive(Debug)]
pub struct Delay {
    inside: Arc<dyn Volume>,
    time: Now,
}

impl Delay {
    /// Has every operation of a volume begin so much later.
    #[must_use]
    pub fn new(inside: Arc<dyn Volume>, time: Now) -> Self {
        Self { inside, time }
    }
}

impl Filter for Delay {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let inside = self.inside.attach(core)?;
        Ok(Box::new(LaterHandle::new(inside, DelaySchedule(self.time))))
    }
}

struct DelaySchedule(Now);

impl StartPolicy for DelaySchedule {
    fn begin(&self, now: Now, op: &MediumOp<BlockLease>) -> Option<Now> {
        match op {
            MediumOp::PrepareWrite { .. } | MediumOp::Buffer { .. } => None,
            _ => Some(now.saturating_add(self.0)),
        }
    }
}

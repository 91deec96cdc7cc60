//! `delay:5ms(A)`: a slower volume.
//!
//! Each operation starts a fixed time after it arrived, in order of arrival. `PrepareWrite` is not
//! delayed, or a write would be delayed twice. A RAM disk lends its own memory, so reads can return
//! written data before the delayed write starts.

use std::io;
use std::sync::Arc;

use scsi::medium::{MediumOp, Now};

use crate::filter::Filter;
use crate::lease::BlockLease;
use crate::start_policy::{LaterHandle, StartPolicy};
use crate::volume::{CoreContext, Handle, Volume};

/// A volume whose operations begin later.
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

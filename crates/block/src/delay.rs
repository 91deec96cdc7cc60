//! `delay:5ms(A)`: a slower volume.
//!
//! Every operation begins so much after it came, in order. What only asks for memory does not
//! wait, or a write would twice; of a RAM disk that memory is its own, so what is written may be
//! seen before the write has begun.

use std::io;
use std::sync::Arc;

use scsi::medium::{MediumOp, Now};

use crate::around::Around;
use crate::later::{LaterHandle, When};
use crate::lease::Lease;
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

impl Around for Delay {
    fn inside(&self) -> &dyn Volume {
        &*self.inside
    }

    fn attach_around(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>> {
        let inside = self.inside.attach(core)?;
        Ok(Box::new(LaterHandle::new(inside, After(self.time))))
    }
}

struct After(Now);

impl When for After {
    fn begin(&self, now: Now, op: &MediumOp<Lease>) -> Option<Now> {
        match op {
            MediumOp::Lend { .. } | MediumOp::Buffer { .. } => None,
            _ => Some(now.saturating_add(self.0)),
        }
    }
}

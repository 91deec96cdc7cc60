//! A pair on its way to another core.

use std::mem::ManuallyDrop;
use std::ptr;

use super::{PairInner, RdmaPair};
use crate::rdma::{RdmaCompletion, RdmaMemory};

/// A pair that no core owns. It holds nothing that is bound to one.
pub struct RdmaPairInTransit {
    inner: Box<PairInner>,
}

// SAFETY: `RdmaPair::release` has seen to it that there is no staging memory, and no work or
// completion with a buffer, which are what is counted without a lock. The rest are addresses of
// memory of its own, and objects of the libraries, which may be used from any thread.
unsafe impl Send for RdmaPairInTransit {}

impl RdmaPair {
    /// Takes the pair from its core, to be attached to another one.
    ///
    /// # Errors
    ///
    /// The pair as it was, if it has memory of its core: work with data that is not complete, or
    /// staging buffers.
    pub fn release(self) -> Result<RdmaPairInTransit, Self> {
        if self.inner.is_bound() {
            return Err(self);
        }
        let pair = ManuallyDrop::new(self);
        // SAFETY: each of the two fields is moved out once, as `pair` is not dropped.
        let (inner, memory) = unsafe { (ptr::read(&pair.inner), ptr::read(&pair.memory)) };
        drop(memory);
        Ok(RdmaPairInTransit { inner })
    }
}

impl RdmaPairInTransit {
    /// Gives the pair to the core that this memory is of, the caller's.
    #[must_use]
    pub fn attach(self, memory: &RdmaMemory) -> RdmaPair {
        let memory = memory.of(self.inner.wire.domain());
        RdmaPair {
            memory,
            inner: self.inner,
        }
    }
}

impl std::fmt::Debug for RdmaPairInTransit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaPairInTransit({})", self.inner.wire.id().peer())
    }
}

impl PairInner {
    /// Whether it has anything that is counted on its core.
    fn is_bound(&self) -> bool {
        let got = |completion: &RdmaCompletion| matches!(completion, RdmaCompletion::Got { .. });
        let copies_or_holds = self.in_flight.iter().any(|part| {
            let is_plain = part.data.is_none() && part.sink.is_none() && part.count == 0;
            !is_plain
        });
        let has_memory = self.staging.is_some() || !self.waiting.is_empty();
        has_memory || copies_or_holds || self.told.iter().any(got)
    }
}

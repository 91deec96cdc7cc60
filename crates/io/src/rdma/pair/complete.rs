//! What the device has done.

use super::PairInner;
use super::receives::RECEIVE;
use super::work::{Part, PartKind};
use crate::rdma::memory::DomainMemory;
use crate::rdma::sys::verbs::{IBV_WC_SUCCESS, IBV_WC_WITH_INV, IBV_WC_WR_FLUSH_ERR, IbvWc};
use crate::rdma::{RdmaCompletion, RdmaEnd};

/// Completions that are taken at a time.
const TAKEN: usize = 16;

impl PairInner {
    /// See [`super::RdmaPair::poll`].
    pub(super) fn poll(&mut self, memory: &DomainMemory) -> Option<RdmaCompletion> {
        loop {
            if let Some(completion) = self.told.pop_front() {
                return Some(completion);
            }
            if self.has_ended {
                return None;
            }
            if self.receives.are_scarce() {
                self.post_receives(memory);
            }
            if self.take_completions(memory) {
                continue;
            }
            // What came before the end of the connection was taken.
            match self.parting {
                Some(why) => self.end(why, memory),
                None => self.flush(memory),
            }
            return self.told.pop_front();
        }
    }

    /// See [`super::RdmaPair::arm`].
    pub(super) fn arm(&mut self, memory: &DomainMemory) -> bool {
        if !self.has_ended {
            self.flush(memory);
            self.wire.quiet();
            if !self.has_ended && !self.wire.arm() {
                self.break_down(memory);
            }
        }
        !self.told.is_empty() || self.take_completions(memory)
    }

    /// Takes some of what is complete; returns whether there was any.
    fn take_completions(&mut self, memory: &DomainMemory) -> bool {
        if self.has_ended {
            return false;
        }
        let mut taken = [IbvWc::default(); TAKEN];
        let Some(count) = self.wire.poll(&mut taken) else {
            self.break_down(memory);
            return true;
        };
        let taken = &taken[..count];
        for (at, completion) in taken.iter().enumerate() {
            if completion.status != IBV_WC_SUCCESS {
                self.failed(&taken[at..], memory);
                break;
            }
            self.complete(completion, memory);
        }
        !taken.is_empty()
    }

    fn complete(&mut self, completion: &IbvWc, memory: &DomainMemory) {
        let number = completion.wr_id;
        if number & RECEIVE != 0 {
            let invalidated = completion.wc_flags & IBV_WC_WITH_INV != 0;
            let invalidated = invalidated.then_some(completion.invalidated_rkey);
            match self.take_message(number, completion.byte_len) {
                Some(bytes) => self
                    .told
                    .push_back(RdmaCompletion::Received { bytes, invalidated }),
                None => self.break_down(memory),
            }
            return;
        }
        // All before it are complete too.
        let count = number.wrapping_sub(self.first);
        if count >= self.in_flight.len() as u64 {
            return self.break_down(memory);
        }
        for _ in 0..=count {
            self.first += 1;
            if let Some(part) = self.in_flight.pop_front() {
                self.complete_part(part, memory);
            }
        }
    }

    fn complete_part(&mut self, part: Part, memory: &DomainMemory) {
        if matches!(part.kind, PartKind::Read { .. }) && (part.count > 0 || part.sink.is_some()) {
            self.copy_in(&part, memory);
        }
        self.free_memory_of(&part, memory);
        if !part.is_last {
            return;
        }
        match part.kind {
            PartKind::Send => self.told.push_back(RdmaCompletion::Sent),
            PartKind::Write => self.told.push_back(RdmaCompletion::Written),
            PartKind::Read { id, into } => {
                let got = into.map(|into| RdmaCompletion::Got { id, into });
                self.told.extend(got);
            }
        }
    }

    /// An operation failed, and all behind it with it. The first one that was not merely flushed is
    /// why; else the connection manager may know, as the peer disconnected or the device is gone.
    fn failed(&mut self, completions: &[IbvWc], memory: &DomainMemory) {
        let mut statuses = completions.iter().map(|one| one.status);
        let is_why = |status: &u32| ![IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR].contains(status);
        let why = statuses.find(is_why).map(RdmaEnd::of_status);
        if why.is_none() {
            self.hear();
        }
        let flushed = RdmaEnd::of_status(IBV_WC_WR_FLUSH_ERR);
        let why = why.or(self.parting).unwrap_or(flushed);
        self.end(why, memory);
    }

    /// The device, or its library, does what it cannot do.
    fn break_down(&mut self, memory: &DomainMemory) {
        let problem = "the RDMA device or its library is broken";
        self.end(RdmaEnd::failed(problem, "ibv_poll_cq"), memory);
    }
}

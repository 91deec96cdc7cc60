//! Work requests of one turn, chained so that the device is told of all at once.

use std::ptr;

use super::sys::verbs::{
    IBV_SEND_SIGNALED, IbvQp, IbvRecvWr, IbvSendWr, IbvSge, PostRecv, PostSend,
};

/// The arrays that chains are made in. They keep their capacity.
#[derive(Default)]
pub(super) struct RequestArrays {
    sends: Vec<IbvSendWr>,
    receives: Vec<IbvRecvWr>,
    pieces: Vec<IbvSge>,
}

/// What a send request is, beside its memory.
pub(super) struct SendRequest {
    /// Comes back with its completion.
    pub(super) id: u64,
    /// A number of `enum ibv_wr_opcode`.
    pub(super) opcode: i32,
    /// The key that the peer is to invalidate.
    pub(super) invalidate: u32,
    /// Where a write goes, or a read comes from.
    pub(super) remote: (u32, u64),
}

impl RequestArrays {
    /// Whether a chain has begun.
    pub(super) fn has_sends(&self) -> bool {
        !self.sends.is_empty()
    }

    /// Adds memory to the request that is added next.
    pub(super) fn piece(&mut self, address: usize, len: usize, lkey: u32) {
        self.pieces.push(IbvSge {
            addr: address as u64,
            length: len as u32,
            lkey,
        });
    }

    /// Adds a request over the `pieces` that were added last.
    pub(super) fn send(&mut self, request: &SendRequest, pieces: usize) {
        let (rkey, remote_addr) = request.remote;
        self.sends.push(IbvSendWr {
            wr_id: request.id,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: pieces as i32,
            opcode: request.opcode,
            send_flags: IBV_SEND_SIGNALED,
            invalidate_rkey: request.invalidate,
            remote_addr,
            rkey,
            others: [0; 9],
        });
    }

    /// Adds a receive of one piece.
    pub(super) fn receive(&mut self, id: u64, address: usize, len: usize, lkey: u32) {
        self.piece(address, len, lkey);
        self.receives.push(IbvRecvWr {
            wr_id: id,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 1,
        });
    }

    /// Forgets what was not posted.
    pub(super) fn clear(&mut self) {
        self.sends.clear();
        self.receives.clear();
        self.pieces.clear();
    }

    /// Posts the chain of sends by one call; returns what that says, a number of errno.
    ///
    /// # Safety
    ///
    /// `qp` is a queue pair of that device, and the memory of all pieces is registered and stays
    /// so until the completions.
    pub(super) unsafe fn post_sends(&mut self, post: PostSend, qp: *mut IbvQp) -> i32 {
        let mut piece = self.pieces.as_mut_ptr();
        let (first, count) = (self.sends.as_mut_ptr(), self.sends.len());
        for at in 0..count {
            // SAFETY: within the arrays: the requests have as many pieces as were added.
            unsafe {
                let request = first.add(at);
                (*request).sg_list = piece;
                piece = piece.add((*request).num_sge as usize);
                if at + 1 < count {
                    (*request).next = first.add(at + 1);
                }
            }
        }
        let mut refused = ptr::null_mut();
        // SAFETY: a chain that ends; the device copies it within the call.
        let result = unsafe { post(qp, first, &mut refused) };
        self.clear();
        result
    }

    /// Posts the chain of receives by one call; returns as above.
    ///
    /// # Safety
    ///
    /// As of [`Self::post_sends`].
    pub(super) unsafe fn post_receives(&mut self, post: PostRecv, qp: *mut IbvQp) -> i32 {
        let piece = self.pieces.as_mut_ptr();
        let (first, count) = (self.receives.as_mut_ptr(), self.receives.len());
        for at in 0..count {
            // SAFETY: within the arrays: each receive has one piece.
            unsafe {
                let request = first.add(at);
                (*request).sg_list = piece.add(at);
                if at + 1 < count {
                    (*request).next = first.add(at + 1);
                }
            }
        }
        let mut refused = ptr::null_mut();
        // SAFETY: as above.
        let result = unsafe { post(qp, first, &mut refused) };
        self.clear();
        result
    }
}

//! The objects of the libraries that make up one queue pair, and the order in which they go.

use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use crate::rdma::RdmaError;
use crate::rdma::channel::{self, AllOf, CmEvent, CmId};
use crate::rdma::domain::RdmaDomain;
use crate::rdma::requests::RequestArrays;
use crate::rdma::sys::cm::{RdmaCmId, RdmaConnParam};
use crate::rdma::sys::verbs::{
    IBV_QPT_RC, IbvCompChannel, IbvContextOps, IbvCq, IbvQpCap, IbvQpInitAttr, IbvWc, PostRecv,
    PostSend,
};

/// A queue pair with its completion queue, on a connection.
pub(super) struct Wire {
    /// Everything below is reached through it. It goes in `drop`, before the rest.
    id: CmId,
    completions: CompletionQueue,
    has_pair: bool,
    post_send: PostSend,
    post_recv: PostRecv,
    domain: Arc<RdmaDomain>,
    /// Readable when there is something to be heard.
    fd: AllOf,
}

// SAFETY: one owner uses it; what the libraries share between threads they lock.
unsafe impl Send for Wire {}

/// How large the queues are.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueSizes {
    pub(super) sends: u32,
    pub(super) receives: u32,
    pub(super) send_pieces: u32,
}

impl Wire {
    /// Makes a queue pair on an identifier that is bound to the domain's device. Its events come by
    /// the identifier's channel, which is to be its own.
    pub(super) fn new(
        id: CmId,
        domain: &Arc<RdmaDomain>,
        sizes: QueueSizes,
    ) -> Result<Self, RdmaError> {
        // SAFETY: an open context; the table is read.
        let ops = unsafe { &(*domain.context()).ops };
        let (Some(post_send), Some(post_recv)) = (ops.post_send, ops.post_recv) else {
            return Err(RdmaError::NoDevice);
        };
        let room = sizes.sends.saturating_add(sizes.receives);
        let mut completions = CompletionQueue::new(domain, ops, room)?;
        let fd = AllOf::new(id.library(), &[id.channel().as_fd(), completions.fd()]);
        let fd = fd.map_err(|cause| {
            completions.destroy(domain);
            RdmaError::Call {
                call: "epoll_ctl",
                device: domain.device().name.clone(),
                cause,
            }
        })?;
        let mut wire = Self {
            id,
            completions,
            has_pair: false,
            post_send,
            post_recv,
            domain: Arc::clone(domain),
            fd,
        };
        wire.create_pair(sizes)?;
        Ok(wire)
    }

    fn create_pair(&mut self, sizes: QueueSizes) -> Result<(), RdmaError> {
        let cq = self.completions.cq;
        let mut attr = IbvQpInitAttr {
            qp_context: ptr::null_mut(),
            send_cq: cq,
            recv_cq: cq,
            srq: ptr::null_mut(),
            cap: IbvQpCap {
                max_send_wr: sizes.sends,
                max_recv_wr: sizes.receives,
                max_send_sge: sizes.send_pieces,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            qp_type: IBV_QPT_RC,
            sq_sig_all: 0,
        };
        let create = self.id.library().cm.create_qp;
        // SAFETY: identifier, domain and queue are ours, and of one device.
        match unsafe { create(self.id.as_ptr(), self.domain.pd(), &mut attr) } {
            0 => self.has_pair = true,
            _ => return Err(self.domain.failed("rdma_create_qp", 0)),
        }
        Ok(())
    }

    pub(super) fn id(&self) -> &CmId {
        &self.id
    }

    pub(super) fn domain(&self) -> &Arc<RdmaDomain> {
        &self.domain
    }

    pub(super) fn fd(&self) -> &Arc<OwnedFd> {
        self.fd.descriptor()
    }

    /// The next event of the connection.
    pub(super) fn event(&self) -> Option<CmEvent> {
        self.id.channel().next()
    }

    /// Has the connection manager connect or accept, as `call` is.
    pub(super) fn start(
        &mut self,
        call: unsafe extern "C" fn(*mut RdmaCmId, *mut RdmaConnParam) -> c_int,
        name: &'static str,
        mut parameters: RdmaConnParam,
    ) -> Result<(), RdmaError> {
        // SAFETY: our identifier; the parameters and their data live for the call.
        match unsafe { call(self.id.as_ptr(), &mut parameters) } {
            0 => {
                self.id.answered();
                Ok(())
            }
            _ => Err(RdmaError::last(name, &self.domain.device().name)),
        }
    }

    /// Takes what is complete, without a system call; `None` when the queue is broken.
    pub(super) fn poll(&mut self, into: &mut [IbvWc]) -> Option<usize> {
        self.completions.poll(into)
    }

    /// Takes notice of what the completion queue told, without waiting.
    pub(super) fn quiet(&mut self) {
        self.completions.quiet(&self.domain);
    }

    /// Has the descriptor become readable with the next completion; returns whether that worked.
    pub(super) fn arm(&mut self) -> bool {
        self.completions.arm()
    }

    /// Posts a chain of sends; returns a number of errno, or 0.
    ///
    /// # Safety
    ///
    /// The memory of all of them stays registered until their completions, or until
    /// [`Self::destroy_pair`].
    pub(super) unsafe fn post_sends(&mut self, chain: &mut RequestArrays) -> i32 {
        // SAFETY: the pair was not destroyed: those who did that post nothing more.
        unsafe { chain.post_sends(self.post_send, (*self.id.as_ptr()).qp) }
    }

    /// Posts a chain of receives; returns as above.
    ///
    /// # Safety
    ///
    /// As of [`Self::post_sends`].
    pub(super) unsafe fn post_receives(&mut self, chain: &mut RequestArrays) -> i32 {
        // SAFETY: as above.
        unsafe { chain.post_receives(self.post_recv, (*self.id.as_ptr()).qp) }
    }

    /// Ends the connection and destroys the queue pair: from then on the device reaches none of the
    /// memory that was posted. Whether the peer is told, and whether all calls work on a device
    /// that was taken away, changes nothing of that.
    pub(super) fn destroy_pair(&mut self) {
        if std::mem::take(&mut self.has_pair) {
            let cm = &self.id.library().cm;
            // SAFETY: our identifier, which has a pair.
            unsafe {
                (cm.disconnect)(self.id.as_ptr());
                (cm.destroy_qp)(self.id.as_ptr());
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.destroy_pair();
        self.completions.destroy(&self.domain);
    }
}

/// A completion queue, and the channel that tells of it.
struct CompletionQueue {
    cq: *mut IbvCq,
    channel: *mut IbvCompChannel,
    poll_cq: unsafe extern "C" fn(*mut IbvCq, c_int, *mut IbvWc) -> c_int,
    notify: unsafe extern "C" fn(*mut IbvCq, c_int) -> c_int,
}

impl CompletionQueue {
    fn new(domain: &RdmaDomain, ops: &IbvContextOps, room: u32) -> Result<Self, RdmaError> {
        let (Some(poll_cq), Some(notify)) = (ops.poll_cq, ops.req_notify_cq) else {
            return Err(RdmaError::NoDevice);
        };
        let verbs = &domain.library().verbs;
        // SAFETY: an open context.
        let channel = unsafe { (verbs.create_comp_channel)(domain.context()) };
        if channel.is_null() {
            return Err(domain.failed("ibv_create_comp_channel", 0));
        }
        let mut queue = Self {
            cq: ptr::null_mut(),
            channel,
            poll_cq,
            notify,
        };
        let room = c_int::try_from(room).unwrap_or(c_int::MAX);
        // SAFETY: the channel is of this context; vector 0 is always there.
        queue.cq =
            unsafe { (verbs.create_cq)(domain.context(), room, ptr::null_mut(), channel, 0) };
        if queue.cq.is_null() {
            let error = domain.failed("ibv_create_cq", 0);
            queue.destroy(domain);
            return Err(error);
        }
        if let Err(cause) = channel::unblock(queue.fd()) {
            queue.destroy(domain);
            let (call, device) = ("fcntl", domain.device().name.clone());
            return Err(RdmaError::Call {
                call,
                device,
                cause,
            });
        }
        Ok(queue)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel has an open descriptor until it is destroyed.
        unsafe { BorrowedFd::borrow_raw((*self.channel).fd) }
    }

    fn poll(&mut self, into: &mut [IbvWc]) -> Option<usize> {
        let room = c_int::try_from(into.len()).unwrap_or(c_int::MAX);
        // SAFETY: our queue, and so many places.
        let found = unsafe { (self.poll_cq)(self.cq, room, into.as_mut_ptr()) };
        usize::try_from(found)
            .ok()
            .map(|found| found.min(into.len()))
    }

    /// Acknowledges each event at once: to destroy a queue waits for that.
    fn quiet(&mut self, domain: &RdmaDomain) {
        let verbs = &domain.library().verbs;
        loop {
            let (mut cq, mut context) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: our channel, and places of ours.
            if unsafe { (verbs.get_cq_event)(self.channel, &mut cq, &mut context) } != 0 {
                return;
            }
            // SAFETY: the only queue of this channel.
            unsafe { (verbs.ack_cq_events)(self.cq, 1) };
        }
    }

    fn arm(&mut self) -> bool {
        // SAFETY: our queue.
        unsafe { (self.notify)(self.cq, 0) == 0 }
    }

    fn destroy(&mut self, domain: &RdmaDomain) {
        let verbs = &domain.library().verbs;
        // SAFETY: ours; the queue pair was destroyed before, and all events were acknowledged.
        unsafe {
            if !self.cq.is_null() {
                (verbs.destroy_cq)(self.cq);
            }
            (verbs.destroy_comp_channel)(self.channel);
        }
    }
}

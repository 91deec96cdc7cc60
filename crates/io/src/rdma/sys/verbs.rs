//! Of `<infiniband/verbs.h>`.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct ibv_device`.
#[repr(C)]
pub(crate) struct IbvDevice {
    pub(crate) _ops: [*const c_void; 2],
    pub(crate) node_type: c_int,
    pub(crate) transport_type: c_int,
    pub(crate) name: [c_char; 64],
    pub(crate) dev_name: [c_char; 64],
    pub(crate) dev_path: [c_char; 256],
    pub(crate) ibdev_path: [c_char; 256],
}

/// `ibv_device.transport_type`: InfiniBand, RoCE.
pub(crate) const IBV_TRANSPORT_IB: c_int = 0;
/// `ibv_device.transport_type`.
pub(crate) const IBV_TRANSPORT_IWARP: c_int = 1;

/// A place in a table of functions that nothing is called by.
pub(crate) type Unused = *const c_void;

/// `struct ibv_context_ops`: what a device does without a system call. The rest of its places is
/// not used by anybody.
#[repr(C)]
pub(crate) struct IbvContextOps {
    pub(crate) before_poll: [Unused; 11],
    pub(crate) poll_cq: Option<unsafe extern "C" fn(*mut IbvCq, c_int, *mut IbvWc) -> c_int>,
    pub(crate) req_notify_cq: Option<unsafe extern "C" fn(*mut IbvCq, c_int) -> c_int>,
    pub(crate) before_send: [Unused; 12],
    pub(crate) post_send: Option<PostSend>,
    pub(crate) post_recv: Option<PostRecv>,
    pub(crate) behind: [Unused; 5],
}

/// `ibv_context_ops.post_send`.
pub(crate) type PostSend =
    unsafe extern "C" fn(*mut IbvQp, *mut IbvSendWr, *mut *mut IbvSendWr) -> c_int;
/// `ibv_context_ops.post_recv`.
pub(crate) type PostRecv =
    unsafe extern "C" fn(*mut IbvQp, *mut IbvRecvWr, *mut *mut IbvRecvWr) -> c_int;

/// `struct ibv_context`.
#[repr(C)]
pub(crate) struct IbvContext {
    pub(crate) device: *mut IbvDevice,
    pub(crate) ops: IbvContextOps,
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
    pub(crate) num_comp_vectors: c_int,
    pub(crate) mutex: libc::pthread_mutex_t,
    pub(crate) abi_compat: *mut c_void,
}

/// `struct ibv_device_attr`.
#[repr(C)]
pub(crate) struct IbvDeviceAttr {
    pub(crate) fw_ver: [c_char; 64],
    pub(crate) node_guid: u64,
    pub(crate) sys_image_guid: u64,
    pub(crate) max_mr_size: u64,
    pub(crate) page_size_cap: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) hw_ver: u32,
    pub(crate) max_qp: c_int,
    pub(crate) max_qp_wr: c_int,
    pub(crate) device_cap_flags: c_uint,
    pub(crate) max_sge: c_int,
    pub(crate) max_sge_rd: c_int,
    pub(crate) max_cq: c_int,
    pub(crate) max_cqe: c_int,
    pub(crate) max_mr: c_int,
    pub(crate) max_pd: c_int,
    pub(crate) max_qp_rd_atom: c_int,
    pub(crate) max_ee_rd_atom: c_int,
    pub(crate) max_res_rd_atom: c_int,
    pub(crate) max_qp_init_rd_atom: c_int,
    pub(crate) max_ee_init_rd_atom: c_int,
    pub(crate) atomic_cap: c_int,
    /// From `max_ee` to `max_srq_sge`.
    pub(crate) others: [c_int; 14],
    pub(crate) max_pkeys: u16,
    pub(crate) local_ca_ack_delay: u8,
    pub(crate) phys_port_cnt: u8,
}

/// `ibv_device_attr.device_cap_flags`: the device can send an invalidation.
pub(crate) const IBV_DEVICE_MEM_MGT_EXTENSIONS: c_uint = 1 << 21;

/// `struct ibv_pd`.
#[repr(C)]
pub(crate) struct IbvPd {
    pub(crate) context: *mut IbvContext,
    pub(crate) handle: u32,
}

/// `struct ibv_mr`.
#[repr(C)]
pub(crate) struct IbvMr {
    pub(crate) context: *mut IbvContext,
    pub(crate) pd: *mut IbvPd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

/// `enum ibv_access_flags`.
pub(crate) const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
/// `enum ibv_access_flags`.
pub(crate) const IBV_ACCESS_REMOTE_WRITE: c_int = 1 << 1;
/// `enum ibv_access_flags`.
pub(crate) const IBV_ACCESS_REMOTE_READ: c_int = 1 << 2;

/// `struct ibv_comp_channel`.
#[repr(C)]
pub(crate) struct IbvCompChannel {
    pub(crate) context: *mut IbvContext,
    pub(crate) fd: c_int,
    pub(crate) refcnt: c_int,
}

/// `struct ibv_cq`.
#[repr(C)]
pub(crate) struct IbvCq {
    pub(crate) context: *mut IbvContext,
    pub(crate) channel: *mut IbvCompChannel,
    pub(crate) cq_context: *mut c_void,
    pub(crate) handle: u32,
    pub(crate) cqe: c_int,
    pub(crate) mutex: libc::pthread_mutex_t,
    pub(crate) cond: libc::pthread_cond_t,
    pub(crate) comp_events_completed: u32,
    pub(crate) async_events_completed: u32,
}

/// `struct ibv_qp`.
#[repr(C)]
pub(crate) struct IbvQp {
    pub(crate) context: *mut IbvContext,
    pub(crate) qp_context: *mut c_void,
    pub(crate) pd: *mut IbvPd,
    pub(crate) send_cq: *mut IbvCq,
    pub(crate) recv_cq: *mut IbvCq,
    pub(crate) srq: *mut c_void,
    pub(crate) handle: u32,
    pub(crate) qp_num: u32,
    pub(crate) state: c_int,
    pub(crate) qp_type: c_int,
    pub(crate) mutex: libc::pthread_mutex_t,
    pub(crate) cond: libc::pthread_cond_t,
    pub(crate) events_completed: u32,
}

/// `struct ibv_qp_cap`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IbvQpCap {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
}

/// `struct ibv_qp_init_attr`.
#[repr(C)]
pub(crate) struct IbvQpInitAttr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut IbvCq,
    pub(crate) recv_cq: *mut IbvCq,
    pub(crate) srq: *mut c_void,
    pub(crate) cap: IbvQpCap,
    pub(crate) qp_type: c_int,
    pub(crate) sq_sig_all: c_int,
}

/// `enum ibv_qp_type`: a reliable connection.
pub(crate) const IBV_QPT_RC: c_int = 2;

/// `struct ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IbvSge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// `struct ibv_send_wr`, its unions as the members that are used.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IbvSendWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut IbvSendWr,
    pub(crate) sg_list: *mut IbvSge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: c_int,
    pub(crate) send_flags: c_uint,
    pub(crate) invalidate_rkey: u32,
    pub(crate) remote_addr: u64,
    pub(crate) rkey: u32,
    /// The rest of `wr`, `qp_type`, `bind_mw` and `tso`.
    pub(crate) others: [u64; 9],
}

/// `enum ibv_wr_opcode`.
pub(crate) const IBV_WR_RDMA_WRITE: c_int = 0;
/// `enum ibv_wr_opcode`.
pub(crate) const IBV_WR_SEND: c_int = 2;
/// `enum ibv_wr_opcode`.
pub(crate) const IBV_WR_RDMA_READ: c_int = 4;
/// `enum ibv_wr_opcode`.
pub(crate) const IBV_WR_SEND_WITH_INV: c_int = 9;

/// `enum ibv_send_flags`: a completion is to tell of it.
pub(crate) const IBV_SEND_SIGNALED: c_uint = 1 << 1;

/// `struct ibv_recv_wr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IbvRecvWr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut IbvRecvWr,
    pub(crate) sg_list: *mut IbvSge,
    pub(crate) num_sge: c_int,
}

/// `struct ibv_wc`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct IbvWc {
    pub(crate) wr_id: u64,
    pub(crate) status: u32,
    pub(crate) opcode: u32,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    pub(crate) invalidated_rkey: u32,
    pub(crate) qp_num: u32,
    pub(crate) src_qp: u32,
    pub(crate) wc_flags: u32,
    pub(crate) pkey_index: u16,
    pub(crate) slid: u16,
    pub(crate) sl: u8,
    pub(crate) dlid_path_bits: u8,
}

/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_SUCCESS: u32 = 0;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_LOC_LEN_ERR: u32 = 1;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_LOC_PROT_ERR: u32 = 4;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_WR_FLUSH_ERR: u32 = 5;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_REM_ACCESS_ERR: u32 = 10;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_REM_OP_ERR: u32 = 11;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_RETRY_EXC_ERR: u32 = 12;
/// `enum ibv_wc_status`.
pub(crate) const IBV_WC_RNR_RETRY_EXC_ERR: u32 = 13;

/// `enum ibv_wc_flags`: a key of this end was invalidated.
pub(crate) const IBV_WC_WITH_INV: u32 = 1 << 3;

/// `struct ibv_async_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IbvAsyncEvent {
    pub(crate) element: *mut c_void,
    pub(crate) event_type: c_int,
}

/// `enum ibv_event_type`.
pub(crate) const IBV_EVENT_CQ_ERR: c_int = 0;
/// `enum ibv_event_type`.
pub(crate) const IBV_EVENT_QP_FATAL: c_int = 1;
/// `enum ibv_event_type`.
pub(crate) const IBV_EVENT_DEVICE_FATAL: c_int = 8;
/// `enum ibv_event_type`.
pub(crate) const IBV_EVENT_PORT_ACTIVE: c_int = 9;
/// `enum ibv_event_type`.
pub(crate) const IBV_EVENT_PORT_ERR: c_int = 10;

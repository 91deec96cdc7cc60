//! Of `<rdma/rdma_cma.h>`.

use std::ffi::{c_int, c_void};

use super::verbs::{IbvContext, IbvCq, IbvPd, IbvQp};

/// `struct rdma_event_channel`.
#[repr(C)]
pub(crate) struct RdmaEventChannel {
    pub(crate) fd: c_int,
}

/// `struct rdma_cm_id`, its `route` taken apart.
#[repr(C)]
pub(crate) struct RdmaCmId {
    pub(crate) verbs: *mut IbvContext,
    pub(crate) channel: *mut RdmaEventChannel,
    pub(crate) context: *mut c_void,
    pub(crate) qp: *mut IbvQp,
    /// `route.addr.src_storage`.
    pub(crate) source: libc::sockaddr_storage,
    /// `route.addr.dst_storage`.
    pub(crate) destination: libc::sockaddr_storage,
    /// `route.addr.addr`: two GIDs and a partition key.
    pub(crate) ib_address: [u64; 5],
    pub(crate) path_rec: *mut c_void,
    pub(crate) num_paths: c_int,
    /// `route` is as long as a multiple of its alignment.
    pub(crate) route_end: u32,
    pub(crate) ps: c_int,
    pub(crate) port_num: u8,
    pub(crate) event: *mut RdmaCmEvent,
    pub(crate) send_cq_channel: *mut c_void,
    pub(crate) send_cq: *mut IbvCq,
    pub(crate) recv_cq_channel: *mut c_void,
    pub(crate) recv_cq: *mut IbvCq,
    pub(crate) srq: *mut c_void,
    pub(crate) pd: *mut IbvPd,
    pub(crate) qp_type: c_int,
}

/// `struct rdma_conn_param`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RdmaConnParam {
    pub(crate) private_data: *const c_void,
    pub(crate) private_data_len: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
    pub(crate) qp_num: u32,
}

/// `struct rdma_cm_event`, its union as the member that is used.
#[repr(C)]
pub(crate) struct RdmaCmEvent {
    pub(crate) id: *mut RdmaCmId,
    pub(crate) listen_id: *mut RdmaCmId,
    pub(crate) event: c_int,
    pub(crate) status: c_int,
    pub(crate) conn: RdmaConnParam,
    /// What `struct rdma_ud_param` is longer.
    pub(crate) others: [u64; 4],
}

/// `enum rdma_port_space`.
pub(crate) const RDMA_PS_TCP: c_int = 0x0106;

/// `rdma_set_option`: level, and that an IPv6 address is for IPv6 alone.
pub(crate) const RDMA_OPTION_ID: c_int = 0;
/// See [`RDMA_OPTION_ID`].
pub(crate) const RDMA_OPTION_ID_AFONLY: c_int = 2;

/// `enum rdma_cm_event_type`.
pub(crate) mod event {
    use std::ffi::c_int;

    pub(crate) const ADDR_RESOLVED: c_int = 0;
    pub(crate) const ADDR_ERROR: c_int = 1;
    pub(crate) const ROUTE_RESOLVED: c_int = 2;
    pub(crate) const ROUTE_ERROR: c_int = 3;
    pub(crate) const CONNECT_REQUEST: c_int = 4;
    pub(crate) const CONNECT_ERROR: c_int = 6;
    pub(crate) const UNREACHABLE: c_int = 7;
    pub(crate) const REJECTED: c_int = 8;
    pub(crate) const ESTABLISHED: c_int = 9;
    pub(crate) const DISCONNECTED: c_int = 10;
    pub(crate) const DEVICE_REMOVAL: c_int = 11;
    pub(crate) const ADDR_CHANGE: c_int = 14;
    pub(crate) const TIMEWAIT_EXIT: c_int = 15;
}

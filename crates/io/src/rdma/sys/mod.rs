//! What libibverbs and librdmacm declare, as far as it is used: structs by their layout, numbers by
//! their meaning. Each is named as its C counterpart, without the underscores: `IbvSendWr` is
//! `struct ibv_send_wr`. A test compares all sizes and offsets with rdma-core's headers.
//!
//! The layouts are the stable ABI of rdma-core (symbol versions IBVERBS_1.1, RDMACM_1.0).

pub(crate) mod cm;
pub(crate) mod verbs;

//! Our declarations are those of rdma-core's headers, where these are installed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

use crate::rdma::sys::cm::{RdmaCmEvent, RdmaCmId, RdmaConnParam, RdmaEventChannel};
use crate::rdma::sys::verbs::{
    IbvAsyncEvent, IbvCompChannel, IbvContext, IbvContextOps, IbvCq, IbvDevice, IbvDeviceAttr,
    IbvMr, IbvPd, IbvQp, IbvQpCap, IbvQpInitAttr, IbvRecvWr, IbvSendWr, IbvSge, IbvWc,
};

/// Declares what C should find: sizes of structs, and offsets of their fields, `as` C calls them
/// where that is something else.
macro_rules! layouts {
    ($($ours:ident = $theirs:ident {
        $($field:ident $(as $first:ident $(. $more:ident)*)?),*
    })*) => {
        fn layouts() -> Vec<(String, usize)> {
            let mut all = Vec::new();
            $(
                let name = stringify!($theirs);
                all.push((format!("sizeof(struct {name})"), size_of::<$ours>()));
                $(
                    let place = concat!($(stringify!($first), $(".", stringify!($more),)*)?);
                    let place = if place.is_empty() { stringify!($field) } else { place };
                    let place = format!("offsetof(struct {name}, {place})");
                    all.push((place, offset_of!($ours, $field)));
                )*
            )*
            all
        }
    };
}

layouts! {
    IbvDevice = ibv_device {
        node_type, transport_type, name, dev_name, dev_path, ibdev_path
    }
    IbvContextOps = ibv_context_ops { poll_cq, req_notify_cq, post_send, post_recv }
    IbvContext = ibv_context {
        device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat
    }
    IbvDeviceAttr = ibv_device_attr {
        max_mr_size, max_qp_wr, device_cap_flags, max_sge, max_sge_rd, max_cqe, max_mr,
        max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap, others as max_ee, max_pkeys, phys_port_cnt
    }
    IbvPd = ibv_pd { context, handle }
    IbvMr = ibv_mr { pd, addr, length, lkey, rkey }
    IbvCompChannel = ibv_comp_channel { fd, refcnt }
    IbvCq = ibv_cq { channel, cq_context, cqe, mutex, cond, comp_events_completed }
    IbvQp = ibv_qp {
        pd, send_cq, recv_cq, srq, qp_num, state, qp_type, mutex, cond, events_completed
    }
    IbvQpCap = ibv_qp_cap {
        max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data
    }
    IbvQpInitAttr = ibv_qp_init_attr { send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
    IbvSge = ibv_sge { addr, length, lkey }
    IbvSendWr = ibv_send_wr {
        wr_id, next, sg_list, num_sge, opcode, send_flags, invalidate_rkey,
        remote_addr as wr.rdma.remote_addr, rkey as wr.rdma.rkey
    }
    IbvRecvWr = ibv_recv_wr { wr_id, next, sg_list, num_sge }
    IbvWc = ibv_wc {
        wr_id, status, opcode, byte_len, invalidated_rkey, qp_num, wc_flags, slid, dlid_path_bits
    }
    IbvAsyncEvent = ibv_async_event { element, event_type }
    RdmaEventChannel = rdma_event_channel { fd }
    RdmaCmId = rdma_cm_id {
        verbs, channel, context, qp, source as route.addr.src_storage,
        destination as route.addr.dst_storage, ib_address as route.addr.addr,
        path_rec as route.path_rec, num_paths as route.num_paths, ps, port_num, event, send_cq,
        recv_cq, srq, pd, qp_type
    }
    RdmaConnParam = rdma_conn_param {
        private_data, private_data_len, responder_resources, initiator_depth, flow_control,
        retry_count, rnr_retry_count, srq, qp_num
    }
    RdmaCmEvent = rdma_cm_event { id, listen_id, event, status, conn as param.conn }
}

/// Numbers that we have taken over.
fn numbers() -> Vec<(String, usize)> {
    use crate::rdma::sys::cm::{RDMA_OPTION_ID_AFONLY, RDMA_PS_TCP, event};
    use crate::rdma::sys::verbs as ours;
    let rows = [
        ("IBV_TRANSPORT_IWARP", ours::IBV_TRANSPORT_IWARP),
        ("IBV_ACCESS_LOCAL_WRITE", ours::IBV_ACCESS_LOCAL_WRITE),
        ("IBV_ACCESS_REMOTE_WRITE", ours::IBV_ACCESS_REMOTE_WRITE),
        ("IBV_ACCESS_REMOTE_READ", ours::IBV_ACCESS_REMOTE_READ),
        ("IBV_QPT_RC", ours::IBV_QPT_RC),
        ("IBV_WR_RDMA_WRITE", ours::IBV_WR_RDMA_WRITE),
        ("IBV_WR_SEND", ours::IBV_WR_SEND),
        ("IBV_WR_RDMA_READ", ours::IBV_WR_RDMA_READ),
        ("IBV_WR_SEND_WITH_INV", ours::IBV_WR_SEND_WITH_INV),
        ("IBV_SEND_SIGNALED", ours::IBV_SEND_SIGNALED as i32),
        ("IBV_WC_WITH_INV", ours::IBV_WC_WITH_INV as i32),
        ("IBV_WC_WR_FLUSH_ERR", ours::IBV_WC_WR_FLUSH_ERR as i32),
        ("IBV_WC_REM_ACCESS_ERR", ours::IBV_WC_REM_ACCESS_ERR as i32),
        (
            "IBV_WC_RNR_RETRY_EXC_ERR",
            ours::IBV_WC_RNR_RETRY_EXC_ERR as i32,
        ),
        ("IBV_WC_FATAL_ERR", 19),
        ("IBV_WC_RESP_TIMEOUT_ERR", 20),
        (
            "IBV_DEVICE_MEM_MGT_EXTENSIONS",
            ours::IBV_DEVICE_MEM_MGT_EXTENSIONS as i32,
        ),
        ("IBV_EVENT_DEVICE_FATAL", ours::IBV_EVENT_DEVICE_FATAL),
        ("IBV_EVENT_PORT_ERR", ours::IBV_EVENT_PORT_ERR),
        ("RDMA_PS_TCP", RDMA_PS_TCP),
        ("RDMA_OPTION_ID_AFONLY", RDMA_OPTION_ID_AFONLY),
        ("RDMA_CM_EVENT_CONNECT_REQUEST", event::CONNECT_REQUEST),
        ("RDMA_CM_EVENT_REJECTED", event::REJECTED),
        ("RDMA_CM_EVENT_ESTABLISHED", event::ESTABLISHED),
        ("RDMA_CM_EVENT_DEVICE_REMOVAL", event::DEVICE_REMOVAL),
        ("RDMA_CM_EVENT_TIMEWAIT_EXIT", event::TIMEWAIT_EXIT),
    ];
    let rows = rows.into_iter();
    rows.map(|(name, number)| (name.to_owned(), number as usize))
        .collect()
}

/// Past what captures the output of tests that pass, for `./check` to count and to name.
fn not_run() {
    let words = "\nnot run: layouts of rdma-core: install libibverbs-dev and librdmacm-dev\n\
                 test result: ok. 0 passed; 0 failed; 1 not run\n";
    let _ = std::io::stderr().write_all(words.as_bytes());
}

#[test]
fn sizes_and_offsets_are_those_of_the_headers() {
    if !Path::new("/usr/include/rdma/rdma_cma.h").exists() {
        return not_run();
    }
    let mut program = "#include <rdma/rdma_cma.h>\n".to_owned();
    for (what, value) in [layouts(), numbers()].concat() {
        let line = format!("_Static_assert({what} == {value}, \"{what} is not {value}\");");
        writeln!(program, "{line}").unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("layout.c");
    std::fs::write(&file, program).unwrap();
    let mut compiler = Command::new("cc");
    let output = compiler.arg("-fsyntax-only").arg(&file).output().unwrap();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{wrong}");
}

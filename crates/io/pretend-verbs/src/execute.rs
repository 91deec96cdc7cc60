//! The wire: requests are carried out one after the other, as soon as they can be.

use std::ptr;

use crate::objects::{MrState, PostedReceive, PostedSend, QpState};
use crate::sys::verbs::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_WC_LOC_LEN_ERR,
    IBV_WC_LOC_PROT_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_SUCCESS, IBV_WC_WITH_INV, IBV_WC_WR_FLUSH_ERR, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_SEND_WITH_INV, IbvSge, IbvWc,
};
use crate::verbs;
use crate::world::World;

/// `IBV_WC_REM_INV_REQ_ERR`.
const REM_INV_REQ_ERR: u32 = 9;
/// `IBV_WC_RECV`.
const RECV: u32 = 128;
/// What `Order::Hold` holds back.
const HOLD_ALL: i64 = 1;
const HOLD_READS: i64 = 2;
/// The number of the iWARP device.
const IWARP: usize = 1;

/// Carries out what can be.
pub(crate) fn run(world: &mut World) {
    while world.orders.hold != HOLD_ALL {
        let next = world.qps.iter().find(|(_, qp)| can_go_on(world, qp));
        let Some(qp) = next.map(|(qp, _)| *qp) else {
            return;
        };
        step(world, qp);
    }
}

/// Whether the first request of a queue pair can be carried out, or fails.
fn can_go_on(world: &World, qp: &QpState) -> bool {
    let Some(first) = qp.sends.front().filter(|_| qp.is_ready) else {
        return false;
    };
    if world.orders.hold == HOLD_READS && first.opcode == IBV_WR_RDMA_READ {
        return false;
    }
    let waits_for_receive = is_message(first) && !world.orders.rnr_fails;
    let peer = qp.peer.and_then(|peer| world.qps.get(&peer));
    !(waits_for_receive && peer.is_some_and(|peer| peer.receives.is_empty()))
}

fn is_message(request: &PostedSend) -> bool {
    ![IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE].contains(&request.opcode)
}

fn step(world: &mut World, at: usize) {
    let Some(request) = world.qps.get_mut(&at).and_then(|qp| qp.sends.pop_front()) else {
        return;
    };
    let status = match ordered(world) {
        Some(status) => status,
        None => carry_out(world, at, &request),
    };
    complete(world, at, request.id, status, (request.opcode as u32, 0), 0);
    if status != IBV_WC_SUCCESS {
        let peer = world.qps.get(&at).and_then(|qp| qp.peer);
        fail(world, at);
        if let Some(peer) = peer {
            fail(world, peer);
        }
    }
}

/// The status that tests have ordered for this request.
fn ordered(world: &mut World) -> Option<u32> {
    let left = world.orders.fail_after?;
    world.orders.fail_after = left.checked_sub(1);
    (left == 0).then_some(world.orders.fail_status)
}

fn carry_out(world: &mut World, at: usize, request: &PostedSend) -> u32 {
    let Some(qp) = world.qps.get(&at) else {
        return IBV_WC_RETRY_EXC_ERR;
    };
    let (pd, device, peer) = (qp.pd, qp.device, qp.peer);
    let mut access = 0;
    if request.opcode == IBV_WR_RDMA_READ {
        access = IBV_ACCESS_LOCAL_WRITE;
        if device == IWARP {
            access |= IBV_ACCESS_REMOTE_WRITE;
        }
    }
    if !request
        .pieces
        .iter()
        .all(|piece| is_ours(world, pd, piece, access))
    {
        return IBV_WC_LOC_PROT_ERR;
    }
    let peer = peer.filter(|peer| world.qps.contains_key(peer));
    let Some(peer) = peer else {
        return IBV_WC_RETRY_EXC_ERR;
    };
    match request.opcode {
        IBV_WR_RDMA_WRITE => remote(world, peer, request, IBV_ACCESS_REMOTE_WRITE),
        IBV_WR_RDMA_READ => remote(world, peer, request, IBV_ACCESS_REMOTE_READ),
        _ => message(world, peer, request),
    }
}

/// Whether a piece lies in memory of the domain, which may be accessed so.
fn is_ours(world: &World, pd: usize, piece: &IbvSge, access: i32) -> bool {
    let range = (piece.addr as usize, piece.length as usize);
    let mr = world.mrs.get(&piece.lkey);
    mr.is_some_and(|mr| allows(mr, pd, range, access))
}

fn allows(mr: &MrState, pd: usize, (start, len): (usize, usize), access: i32) -> bool {
    let is_inside = start >= mr.start && start - mr.start <= mr.len && {
        let offset = start - mr.start;
        len <= mr.len - offset
    };
    mr.pd == pd && is_inside && mr.access & access == access
}

fn remote(world: &mut World, peer: usize, request: &PostedSend, access: i32) -> u32 {
    let len: usize = request
        .pieces
        .iter()
        .map(|piece| piece.length as usize)
        .sum();
    let (key, address) = request.remote;
    let pd = world.qps.get(&peer).map_or(0, |qp| qp.pd);
    let mr = world.mrs.get(&key).filter(|mr| !mr.is_invalid);
    let is_allowed = mr.is_some_and(|mr| allows(mr, pd, (address as usize, len), access));
    if len > 0 && !is_allowed {
        return IBV_WC_REM_ACCESS_ERR;
    }
    let mut at = address as usize;
    for piece in &request.pieces {
        let (ours, len) = (piece.addr as usize, piece.length as usize);
        match access {
            IBV_ACCESS_REMOTE_READ => copy(at, ours, len),
            _ => copy(ours, at, len),
        }
        at += len;
    }
    world.moved += len as u64;
    IBV_WC_SUCCESS
}

/// Moves bytes between two registrations, both of which were looked at.
fn copy(from: usize, to: usize, len: usize) {
    // SAFETY: both are in memory that was registered, which its owner keeps mapped for as long.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, len) };
}

fn message(world: &mut World, peer: usize, request: &PostedSend) -> u32 {
    let Some(receive) = world
        .qps
        .get_mut(&peer)
        .and_then(|qp| qp.receives.pop_front())
    else {
        return IBV_WC_RNR_RETRY_EXC_ERR;
    };
    let pd = world.qps.get(&peer).map_or(0, |qp| qp.pd);
    let len: usize = request
        .pieces
        .iter()
        .map(|piece| piece.length as usize)
        .sum();
    let room: usize = receive
        .pieces
        .iter()
        .map(|piece| piece.length as usize)
        .sum();
    let mut pieces = receive.pieces.iter();
    if !pieces.all(|piece| is_ours(world, pd, piece, IBV_ACCESS_LOCAL_WRITE)) {
        complete(world, peer, receive.id, IBV_WC_LOC_PROT_ERR, (RECV, 0), 0);
        return REM_INV_REQ_ERR;
    }
    if len > room {
        complete(world, peer, receive.id, IBV_WC_LOC_LEN_ERR, (RECV, 0), 0);
        return REM_INV_REQ_ERR;
    }
    scatter(&request.pieces, &receive);
    let mut flags = 0;
    if request.opcode == IBV_WR_SEND_WITH_INV {
        flags = IBV_WC_WITH_INV;
        if let Some(mr) = world.mrs.get_mut(&request.invalidate) {
            mr.is_invalid = true;
        }
    }
    let told = (RECV, flags);
    world.moved += len as u64;
    complete_message(
        world,
        peer,
        &receive,
        told,
        (len as u32, request.invalidate),
    );
    IBV_WC_SUCCESS
}

/// Puts the pieces of a message, one after the other, into a receive of one piece.
fn scatter(pieces: &[IbvSge], receive: &PostedReceive) {
    let Some(first) = receive.pieces.first() else {
        return;
    };
    let mut at = first.addr as usize;
    for piece in pieces {
        copy(piece.addr as usize, at, piece.length as usize);
        at += piece.length as usize;
    }
}

fn complete_message(
    world: &mut World,
    at: usize,
    receive: &PostedReceive,
    (opcode, wc_flags): (u32, u32),
    (byte_len, invalidated_rkey): (u32, u32),
) {
    let completion = IbvWc {
        wr_id: receive.id,
        opcode,
        wc_flags,
        byte_len,
        invalidated_rkey,
        ..IbvWc::default()
    };
    push(world, at, completion);
}

fn complete(
    world: &mut World,
    at: usize,
    wr_id: u64,
    status: u32,
    (opcode, wc_flags): (u32, u32),
    byte_len: u32,
) {
    let completion = IbvWc {
        wr_id,
        status,
        opcode,
        wc_flags,
        byte_len,
        ..IbvWc::default()
    };
    push(world, at, completion);
}

fn push(world: &mut World, at: usize, mut completion: IbvWc) {
    let Some(qp) = world.qps.get(&at) else {
        return;
    };
    completion.qp_num = qp.number;
    let at = qp.cq;
    let Some(cq) = world.cqs.get_mut(&at) else {
        return;
    };
    cq.completions.push_back(completion);
    let is_full = cq.completions.len() > cq.room;
    if std::mem::take(&mut cq.is_armed) {
        let channel = cq.channel;
        if let Some(queue) = world.comp_channels.get_mut(&channel) {
            queue.push_back(at);
            verbs::ring_comp(channel);
        }
    }
    if is_full {
        world.complain("a completion queue has overflowed");
    }
}

/// Has a queue pair fail: what it has is flushed.
pub(crate) fn fail(world: &mut World, at: usize) {
    let Some(qp) = world.qps.get_mut(&at) else {
        return;
    };
    qp.has_failed = true;
    qp.is_ready = false;
    let sends: Vec<_> = qp.sends.drain(..).map(|send| send.id).collect();
    let receives: Vec<_> = qp.receives.drain(..).map(|receive| receive.id).collect();
    for id in receives.into_iter().chain(sends) {
        complete(world, at, id, IBV_WC_WR_FLUSH_ERR, (0, 0), 0);
    }
}

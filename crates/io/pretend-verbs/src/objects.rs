//! What is known of each object beside what users see of it.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::sys::cm::{RdmaCmEvent, RdmaConnParam};
use crate::sys::verbs::{IbvSge, IbvWc};

/// A registration.
pub(crate) struct MrState {
    pub(crate) pd: usize,
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) access: i32,
    /// The peer has invalidated its remote key.
    pub(crate) is_invalid: bool,
}

/// A completion queue.
pub(crate) struct CqState {
    pub(crate) channel: usize,
    pub(crate) completions: VecDeque<IbvWc>,
    pub(crate) is_armed: bool,
    /// Events that were got and not acknowledged.
    pub(crate) unacknowledged: i64,
    pub(crate) room: usize,
}

/// A queue pair.
pub(crate) struct QpState {
    pub(crate) number: u32,
    pub(crate) pd: usize,
    pub(crate) cq: usize,
    pub(crate) device: usize,
    pub(crate) peer: Option<usize>,
    pub(crate) is_ready: bool,
    pub(crate) has_failed: bool,
    pub(crate) sends: VecDeque<PostedSend>,
    pub(crate) receives: VecDeque<PostedReceive>,
    /// Sends whose completions were not polled.
    pub(crate) unpolled: usize,
    pub(crate) most: (usize, usize, usize),
}

/// A send request.
pub(crate) struct PostedSend {
    pub(crate) id: u64,
    pub(crate) opcode: i32,
    pub(crate) pieces: Vec<IbvSge>,
    pub(crate) invalidate: u32,
    pub(crate) remote: (u32, u64),
}

/// A receive request.
pub(crate) struct PostedReceive {
    pub(crate) id: u64,
    pub(crate) pieces: Vec<IbvSge>,
}

/// Events that wait on a channel of the connection manager.
#[derive(Default)]
pub(crate) struct EventQueue {
    pub(crate) events: VecDeque<Box<PretendEvent>>,
}

/// An event with its private data.
#[repr(C)]
pub(crate) struct PretendEvent {
    pub(crate) event: RdmaCmEvent,
    pub(crate) data: [u8; 196],
}

// SAFETY: its pointers are taken for numbers by whoever has the lock.
unsafe impl Send for PretendEvent {}

/// An identifier.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) channel: usize,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) device: Option<usize>,
    pub(crate) is_listening: bool,
    pub(crate) qp: Option<usize>,
    pub(crate) peer: Option<usize>,
    /// What the peer asked for: (its ORD, its IRD).
    pub(crate) offered: Option<(u8, u8)>,
    pub(crate) is_connected: bool,
    /// Events that were got and not acknowledged.
    pub(crate) unacknowledged: u32,
}

/// What a connection has to say of reads: (initiator depth, responder resources).
pub(crate) fn reads(parameters: &RdmaConnParam) -> (u8, u8) {
    (parameters.initiator_depth, parameters.responder_resources)
}

//! What decides at the interface: a program of few instructions, and the map of sockets that it
//! looks into.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::ether::bpf::{
    self, ADD_VALUE, AND_VALUE, AttachMode, BpfMap, CALL, EXIT, LOAD_HALF, LOAD_VALUE, LOAD_WORD,
    MOVE, MOVE_VALUE, MapKind, REDIRECT_MAP, SKIP_IF_EQUAL, SKIP_IF_GREATER, SKIP_IF_OTHER,
    XDP_PASS, instruction,
};

/// A program that is attached to an interface for as long as this lives.
#[derive(Debug)]
pub(super) struct XdpProgram {
    _link: OwnedFd,
    sockets: BpfMap<u32, RawFd>,
}

impl XdpProgram {
    /// Attaches one to an interface of this many queues, in its driver if that can, else where the
    /// network stack begins.
    pub(super) fn new(interface: i32, queues: u32) -> io::Result<Self> {
        let sockets = BpfMap::new(MapKind::SOCKETS, queues)?;
        let program = bpf::load(&instructions(sockets.number()))?;
        let _link = bpf::attach(&program, interface, AttachMode::Any)?;
        Ok(Self { _link, sockets })
    }

    /// Frames that come in by this queue are handed to that socket.
    pub(super) fn hand_to(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        self.sockets.insert(&queue, &socket.as_raw_fd())
    }
}

/// For a frame of FCoE or FIP, without a tag or with one of no VLAN: `redirect_map(sockets,
/// queue)`, which passes it on where there is no socket. For any other: pass, as a VLAN has an
/// interface of its own.
fn instructions(sockets: i32) -> [u64; 21] {
    let half = |value: u16| i32::from(value.to_be());
    [
        // r2 and r3: where the frame begins and ends; r5: its EtherType.
        instruction(LOAD_WORD, (2, 1), 0, 0),
        instruction(LOAD_WORD, (3, 1), 4, 0),
        instruction(MOVE, (4, 2), 0, 0),
        instruction(ADD_VALUE, (4, 0), 0, 18),
        instruction(SKIP_IF_GREATER, (4, 3), 8, 0),
        instruction(LOAD_HALF, (5, 2), 12, 0),
        instruction(SKIP_IF_OTHER, (5, 0), 4, half(0x8100)),
        instruction(LOAD_HALF, (5, 2), 14, 0),
        instruction(AND_VALUE, (5, 0), 0, half(0x0fff)),
        instruction(SKIP_IF_OTHER, (5, 0), 3, 0),
        instruction(LOAD_HALF, (5, 2), 16, 0),
        instruction(SKIP_IF_EQUAL, (5, 0), 3, half(0x8906)),
        instruction(SKIP_IF_EQUAL, (5, 0), 2, half(0x8914)),
        instruction(MOVE_VALUE, (0, 0), 0, XDP_PASS),
        instruction(EXIT, (0, 0), 0, 0),
        instruction(LOAD_WORD, (2, 1), 16, 0),
        // A load of 64 bits takes the room of two; source 1 makes a descriptor a map.
        instruction(LOAD_VALUE, (1, 1), 0, sockets),
        0,
        instruction(MOVE_VALUE, (3, 0), 0, XDP_PASS),
        instruction(CALL, (0, 0), 0, REDIRECT_MAP),
        instruction(EXIT, (0, 0), 0, 0),
    ]
}

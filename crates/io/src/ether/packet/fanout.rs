//! Packet sockets of one interface that share what comes in (packet(7), PACKET_FANOUT), by the
//! initiator that a frame is from.
//!
//! A program decides which socket a frame is for: one of FCP by the low 16 bits of its S_ID, all
//! others for the first. It looks into a map, so that what it decides is changed by one system
//! call, frame by frame. A socket's own filter looks at the frame after that.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::ether::bpf::{
    self, ADD_VALUE, BpfMap, CALL, EXIT, LOAD_FRAME_BYTE, LOAD_FRAME_HALF, LOAD_VALUE, LOAD_WORD,
    LOOK_UP, MOVE, MOVE_VALUE, MapKind, SKIP_IF_EQUAL, SKIP_IF_OTHER, STORE_WORD, instruction,
};
use crate::ether::raw;

/// Which of the sockets a frame is for.
#[derive(Debug)]
pub(super) struct Fanout {
    sockets: BpfMap<u32, u32>,
    /// Number and kind of the group, as the kernel has them.
    group: i32,
}

impl Fanout {
    /// Has a socket that is bound to an interface share what comes in with those that join. It gets
    /// all of it, until [`Self::steer`] says otherwise.
    pub(super) fn begin(first: &OwnedFd) -> io::Result<Self> {
        let sockets = BpfMap::new(MapKind::ARRAY, 1 << 16)?;
        let program = bpf::load_filter(&instructions(sockets.number()))?;
        // The kernel gives the group a number.
        let anew = (KIND | UNIQUE_ID) << 16;
        raw::set(first, raw::SOL_PACKET, libc::PACKET_FANOUT, &anew)?;
        let program = program.as_raw_fd();
        raw::set(first, raw::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program)?;
        let group = raw::fanout(first)?;
        Ok(Self { sockets, group })
    }

    /// Another socket that is bound to the same interface is the next one.
    pub(super) fn join(&self, other: &OwnedFd) -> io::Result<()> {
        raw::set(other, raw::SOL_PACKET, libc::PACKET_FANOUT, &self.group)
    }

    /// From now on frames of FCP with these low bits of the S_ID go to that socket, in the order in
    /// which they joined.
    pub(super) fn steer(&self, s_id: u16, socket: u32) -> io::Result<()> {
        self.sockets.insert(&u32::from(s_id), &socket)
    }
}

/// For a frame of FCoE with type FCP: what the map has for the low half of its S_ID. For any other:
/// 0. Where they stand is counted from behind the Ethernet header and the tag, which the kernel has
/// taken away.
fn instructions(sockets: i32) -> [u64; 17] {
    [
        instruction(MOVE, (6, 1), 0, 0),
        instruction(LOAD_WORD, (7, 6), PROTOCOL, 0),
        instruction(SKIP_IF_OTHER, (7, 0), 12, i32::from(0x8906_u16.to_be())),
        instruction(LOAD_FRAME_BYTE, (0, 0), 0, NETWORK_HEADER + TYPE),
        instruction(SKIP_IF_OTHER, (0, 0), 10, FCP),
        instruction(LOAD_FRAME_HALF, (0, 0), 0, NETWORK_HEADER + S_ID_LOW),
        // The key of the map, on the stack.
        instruction(STORE_WORD, (10, 0), -4, 0),
        instruction(MOVE, (2, 10), 0, 0),
        instruction(ADD_VALUE, (2, 0), 0, -4),
        // A load of 64 bits takes the room of two; source 1 makes a descriptor a map.
        instruction(LOAD_VALUE, (1, 1), 0, sockets),
        0,
        instruction(CALL, (0, 0), 0, LOOK_UP),
        instruction(SKIP_IF_EQUAL, (0, 0), 2, 0),
        instruction(LOAD_WORD, (0, 0), 0, 0),
        instruction(EXIT, (0, 0), 0, 0),
        instruction(MOVE_VALUE, (0, 0), 0, 0),
        instruction(EXIT, (0, 0), 0, 0),
    ]
}

/// `protocol` in `struct __sk_buff` (linux/bpf.h).
const PROTOCOL: i16 = 16;

/// Offsets from here on are from the network header (SKF_NET_OFF of linux/filter.h).
const NETWORK_HEADER: i32 = -0x10_0000;

/// Where TYPE and the low half of S_ID are, behind 14 bytes of FCoE (FC-BB-6, FC-FS-3).
const TYPE: i32 = 14 + 8;
const S_ID_LOW: i32 = 14 + 6;

/// The type of FCP.
const FCP: i32 = 8;

/// PACKET_FANOUT_EBPF, and that frames which we send are none that come in
/// (PACKET_FANOUT_FLAG_IGNORE_OUTGOING); PACKET_FANOUT_FLAG_UNIQUEID (linux/if_packet.h).
const KIND: i32 = 7 | 0x4000;
const UNIQUE_ID: i32 = 0x2000;

//! What decides at the interface: a program of few instructions, and the map of sockets that it
//! looks into (bpf(2); the instructions are RFC 9669's).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A program that is attached to an interface for as long as this lives.
#[derive(Debug)]
pub(super) struct XdpProgram {
    _link: OwnedFd,
    sockets: OwnedFd,
}

impl XdpProgram {
    /// Attaches one to an interface of this many queues, in its driver if that can, else where the
    /// network stack begins.
    pub(super) fn new(interface: i32, queues: u32) -> io::Result<Self> {
        let attributes = [words(MAP_TYPE_XSKMAP, 4), words(4, queues)];
        // SAFETY: no addresses.
        let sockets = unsafe { open(MAP_CREATE, &attributes) }?;
        let instructions = instructions(sockets.as_raw_fd());
        let attributes = [
            words(PROG_TYPE_XDP, instructions.len() as u32),
            instructions.as_ptr() as u64,
            LICENSE.as_ptr() as u64,
        ];
        // SAFETY: this many instructions, and a string with its end, which outlive the call.
        let program = unsafe { open(PROG_LOAD, &attributes) }?;
        let attributes = [
            words(program.as_raw_fd() as u32, interface as u32),
            words(ATTACH_XDP, 0),
        ];
        // SAFETY: no addresses.
        let _link = unsafe { open(LINK_CREATE, &attributes) }?;
        Ok(Self { _link, sockets })
    }

    /// Frames that come in by this queue are handed to that socket.
    pub(super) fn hand_to(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        let socket = socket.as_raw_fd();
        let attributes = [
            words(self.sockets.as_raw_fd() as u32, 0),
            &raw const queue as u64,
            &raw const socket as u64,
            0,
        ];
        // SAFETY: key and value, of 4 bytes each as the map has them, outlive the call.
        unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(drop)
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

/// One of these, with the registers that it writes and reads.
fn instruction(code: u8, (to, from): (u8, u8), offset: i16, value: i32) -> u64 {
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = value.to_ne_bytes();
    let registers = if cfg!(target_endian = "big") {
        to << 4 | from
    } else {
        from << 4 | to
    };
    u64::from_ne_bytes([code, registers, a, b, c, d, e, f])
}

const LOAD_WORD: u8 = 0x61;
const LOAD_HALF: u8 = 0x69;
const LOAD_VALUE: u8 = 0x18;
const MOVE: u8 = 0xbf;
const MOVE_VALUE: u8 = 0xb7;
const ADD_VALUE: u8 = 0x07;
const AND_VALUE: u8 = 0x57;
const SKIP_IF_GREATER: u8 = 0x2d;
const SKIP_IF_EQUAL: u8 = 0x15;
const SKIP_IF_OTHER: u8 = 0x55;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// The number of `bpf_redirect_map` among the functions that programs may call.
const REDIRECT_MAP: i32 = 51;

const XDP_PASS: i32 = 2;

/// Any will do for what is called here.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// What bpf(2) is to do, and kinds of things.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Two fields of 32 bits.
fn words(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// As [`bpf`], for what gives a descriptor.
///
/// # Safety
///
/// As of [`bpf`].
unsafe fn open(command: i32, attributes: &[u64]) -> io::Result<OwnedFd> {
    // SAFETY: as ours.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just made it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
///
/// Addresses among the attributes are of what the command reads there.
unsafe fn bpf(command: i32, attributes: &[u64]) -> io::Result<RawFd> {
    let (start, len) = (attributes.as_ptr(), size_of_val(attributes));
    // SAFETY: the kernel reads as many bytes as it is told of, and takes what follows for zeros.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, start, len) };
    match RawFd::try_from(result) {
        Ok(fd) if fd >= 0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

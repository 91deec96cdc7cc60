//! bpf(2): programs of instructions that are written out here (RFC 9669), and what they look into.

use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A map with keys and values of these types, which have no padding.
#[derive(Debug)]
pub(super) struct BpfMap<K, V> {
    fd: OwnedFd,
    entry: PhantomData<fn(K, V)>,
}

impl<K: Copy, V: Copy> BpfMap<K, V> {
    /// Makes one for so many entries.
    pub(super) fn new(kind: MapKind, entries: u32) -> io::Result<Self> {
        let attributes = [
            words(kind.number, size_of::<K>() as u32),
            words(size_of::<V>() as u32, entries),
            words(kind.flags, 0),
        ];
        // SAFETY: no addresses.
        let fd = unsafe { open(MAP_CREATE, &attributes) }?;
        let entry = PhantomData;
        Ok(Self { fd, entry })
    }

    /// What instructions name it by.
    pub(super) fn number(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Puts a value in.
    pub(super) fn insert(&self, key: &K, value: &V) -> io::Result<()> {
        let attributes = [
            words(self.number() as u32, 0),
            &raw const *key as u64,
            &raw const *value as u64,
            0,
        ];
        // SAFETY: key and value, of as many bytes as the map has them, outlive the call.
        unsafe { bpf(MAP_UPDATE_ELEM, &attributes) }.map(drop)
    }
}

/// Hands a program of XDP to the kernel, which looks through it.
pub(super) fn load(instructions: &[u64]) -> io::Result<OwnedFd> {
    let attributes = [
        words(PROG_TYPE_XDP, instructions.len() as u32),
        instructions.as_ptr() as u64,
        LICENSE.as_ptr() as u64,
    ];
    // SAFETY: this many instructions, and a string with its end, which outlive the call.
    unsafe { open(PROG_LOAD, &attributes) }
}

/// Attaches a program to an interface, for as long as the result lives.
pub(super) fn attach(program: &OwnedFd, interface: i32, mode: u32) -> io::Result<OwnedFd> {
    let attributes = [
        words(program.as_raw_fd() as u32, interface as u32),
        words(ATTACH_XDP, mode),
    ];
    // SAFETY: no addresses.
    unsafe { open(LINK_CREATE, &attributes) }
}

/// One of these, with the registers that it writes and reads.
pub(super) const fn instruction(code: u8, (to, from): (u8, u8), offset: i16, value: i32) -> u64 {
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = value.to_ne_bytes();
    let registers = if cfg!(target_endian = "big") {
        to << 4 | from
    } else {
        from << 4 | to
    };
    u64::from_ne_bytes([code, registers, a, b, c, d, e, f])
}

pub(super) const LOAD_WORD: u8 = 0x61;
pub(super) const LOAD_HALF: u8 = 0x69;
pub(super) const LOAD_VALUE: u8 = 0x18;
pub(super) const MOVE: u8 = 0xbf;
pub(super) const MOVE_VALUE: u8 = 0xb7;
pub(super) const ADD_VALUE: u8 = 0x07;
pub(super) const AND_VALUE: u8 = 0x57;
pub(super) const SKIP_IF_GREATER: u8 = 0x2d;
pub(super) const SKIP_IF_EQUAL: u8 = 0x15;
pub(super) const SKIP_IF_OTHER: u8 = 0x55;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;

/// The number of `bpf_redirect_map` among the functions that programs may call.
pub(super) const REDIRECT_MAP: i32 = 51;

/// The frame goes its usual way.
pub(super) const XDP_PASS: i32 = 2;

/// Any will do for what is called here.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// What bpf(2) is to do, and kinds of things.
const MAP_CREATE: i32 = 0;
const MAP_UPDATE_ELEM: i32 = 2;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// A kind of map, and its flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapKind {
    number: u32,
    flags: u32,
}

impl MapKind {
    /// Sockets of AF_XDP by number.
    pub(super) const SOCKETS: Self = Self::new(17, 0);

    const fn new(number: u32, flags: u32) -> Self {
        Self { number, flags }
    }
}

/// Two fields of 32 bits.
const fn words(first: u32, second: u32) -> u64 {
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

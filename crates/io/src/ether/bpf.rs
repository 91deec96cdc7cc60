//! bpf(2): programs of instructions that are written out here (RFC 9669), and what they look into.

use std::ffi::CStr;
use std::fs;
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

    pub(super) const fn fd(&self) -> &OwnedFd {
        &self.fd
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

    /// Takes a key out.
    pub(super) fn remove(&self, key: &K) -> io::Result<()> {
        let attributes = [words(self.number() as u32, 0), &raw const *key as u64];
        // SAFETY: a key of as many bytes as the map has it outlives the call.
        unsafe { bpf(MAP_DELETE_ELEM, &attributes) }.map(drop)
    }
}

/// Pairs of counters, which each CPU has for itself.
#[derive(Debug)]
pub(super) struct PerCpuMap {
    map: BpfMap<u32, [u64; 2]>,
    cpus: usize,
}

impl PerCpuMap {
    /// So many pairs.
    pub(super) fn new(entries: u32) -> io::Result<Self> {
        let possible = fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let cpus = cpus(&possible).ok_or(io::ErrorKind::InvalidData)?;
        let map = BpfMap::new(MapKind::PER_CPU_ARRAY, entries)?;
        Ok(Self { map, cpus })
    }

    pub(super) fn number(&self) -> i32 {
        self.map.number()
    }

    /// A pair, summed over all CPUs.
    pub(super) fn sum(&self, key: u32) -> io::Result<[u64; 2]> {
        let mut values = vec![[0_u64; 2]; self.cpus];
        let attributes = [
            words(self.number() as u32, 0),
            &raw const key as u64,
            values.as_mut_ptr() as u64,
            0,
        ];
        // SAFETY: the kernel reads a key of 4 bytes, and writes a value of 16 for each CPU that the
        // machine may have, which are no more than there is room for.
        unsafe { bpf(MAP_LOOKUP_ELEM, &attributes) }?;
        let sum = |[a, b]: [u64; 2], [c, d]: &[u64; 2]| [a.wrapping_add(*c), b.wrapping_add(*d)];
        Ok(values.iter().fold([0; 2], sum))
    }
}

/// One more than the highest number in a list such as `0-3,8-11`.
fn cpus(list: &str) -> Option<usize> {
    let highest = |range: &str| range.rsplit('-').next()?.parse::<usize>().ok();
    let ranges = list.trim().split(',').map(highest);
    ranges
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .max()?
        .checked_add(1)
}

/// Why the kernel does not take a program, and what it says about it.
#[derive(Debug)]
pub(super) struct LoadRefusal {
    pub(super) cause: io::Error,
    /// The last lines of what the verifier says, if it has found something.
    pub(super) log: Option<String>,
}

impl From<LoadRefusal> for io::Error {
    fn from(LoadRefusal { cause, log }: LoadRefusal) -> Self {
        match log {
            Some(log) => Self::new(cause.kind(), format!("{cause}: {log}")),
            None => cause,
        }
    }
}

/// Hands a program of XDP to the kernel, which looks through it.
pub(super) fn load(instructions: &[u64]) -> Result<OwnedFd, LoadRefusal> {
    load_as(PROG_TYPE_XDP, instructions)
}

/// The same with a program that looks at frames where a socket gets them.
pub(super) fn load_filter(instructions: &[u64]) -> Result<OwnedFd, LoadRefusal> {
    load_as(PROG_TYPE_SOCKET_FILTER, instructions)
}

fn load_as(kind: u32, instructions: &[u64]) -> Result<OwnedFd, LoadRefusal> {
    load_with(kind, instructions, &mut []).map_err(|cause| {
        // Asked for only now, as it takes time and memory.
        let mut log = vec![0; LOG_LEN];
        let is_refused = load_with(kind, instructions, &mut log).is_err();
        let log = is_refused.then(|| last_lines(&log)).flatten();
        LoadRefusal { cause, log }
    })
}

fn load_with(kind: u32, instructions: &[u64], log: &mut [u8]) -> io::Result<OwnedFd> {
    let attributes = [
        words(kind, instructions.len() as u32),
        instructions.as_ptr() as u64,
        LICENSE.as_ptr() as u64,
        words(u32::from(!log.is_empty()), log.len() as u32),
        if log.is_empty() {
            0
        } else {
            log.as_mut_ptr() as u64
        },
    ];
    // SAFETY: this many instructions, a string with its end, and this much room for the log outlive
    // the call.
    unsafe { open(PROG_LOAD, &attributes) }
}

/// The last lines of a text that a zero ends, in one.
fn last_lines(log: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(log).ok()?.to_string_lossy();
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    (!last.is_empty()).then(|| last.join(": "))
}

/// Attaches a program to an interface, for as long as the result lives.
pub(super) fn attach(program: &OwnedFd, interface: i32, mode: AttachMode) -> io::Result<OwnedFd> {
    let attributes = [
        words(program.as_raw_fd() as u32, interface as u32),
        words(ATTACH_XDP, mode as u32),
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

pub(super) const LOAD_BYTE: u8 = 0x71;
pub(super) const LOAD_HALF: u8 = 0x69;
pub(super) const LOAD_WORD: u8 = 0x61;
pub(super) const LOAD_DOUBLE: u8 = 0x79;
pub(super) const LOAD_VALUE: u8 = 0x18;
/// These two load from the frame, in host order, to where register 6 has the context; a frame that
/// is too short ends the program with 0.
pub(super) const LOAD_FRAME_BYTE: u8 = 0x30;
pub(super) const LOAD_FRAME_HALF: u8 = 0x28;
pub(super) const STORE_HALF: u8 = 0x6b;
pub(super) const STORE_WORD: u8 = 0x63;
pub(super) const STORE_DOUBLE: u8 = 0x7b;
pub(super) const MOVE: u8 = 0xbf;
pub(super) const MOVE_VALUE: u8 = 0xb7;
pub(super) const ADD: u8 = 0x0f;
pub(super) const ADD_VALUE: u8 = 0x07;
pub(super) const SUBTRACT: u8 = 0x1f;
pub(super) const AND_VALUE: u8 = 0x57;
pub(super) const SKIP: u8 = 0x05;
pub(super) const SKIP_IF_SAME: u8 = 0x1d;
pub(super) const SKIP_IF_EQUAL: u8 = 0x15;
pub(super) const SKIP_IF_OTHER_REGISTER: u8 = 0x5d;
pub(super) const SKIP_IF_OTHER: u8 = 0x55;
pub(super) const SKIP_IF_GREATER: u8 = 0x2d;
pub(super) const SKIP_IF_GREATER_VALUE: u8 = 0x25;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;

/// The number of `bpf_map_lookup_elem` among the functions that programs may call.
pub(super) const LOOK_UP: i32 = 1;

/// The number of `bpf_redirect_map` among the functions that programs may call.
pub(super) const REDIRECT_MAP: i32 = 51;

/// The frame goes its usual way.
pub(super) const XDP_PASS: i32 = 2;

/// Bytes of room for what the verifier says, and lines of it that are told.
const LOG_LEN: usize = 64 << 10;
const LOG_LINES: usize = 3;

/// Any will do for what is called here.
const LICENSE: &CStr = c"Dual MIT/GPL";

/// What bpf(2) is to do, and kinds of things.
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP_ELEM: i32 = 1;
const MAP_UPDATE_ELEM: i32 = 2;
const MAP_DELETE_ELEM: i32 = 3;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const PROG_TYPE_SOCKET_FILTER: u32 = 1;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;

/// Where a program looks at frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttachMode {
    /// In the driver if that can, else as `Generic`.
    Any = 0,
    /// Where the network stack begins (XDP_FLAGS_SKB_MODE).
    Generic = 1 << 1,
}

/// A kind of map, and its flags.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapKind {
    number: u32,
    flags: u32,
}

impl MapKind {
    /// Values by any key.
    pub(super) const HASH: Self = Self::new(1, 0);
    /// Values by number.
    pub(super) const ARRAY: Self = Self::new(2, 0);
    /// Values by number, each CPU with its own.
    pub(super) const PER_CPU_ARRAY: Self = Self::new(6, 0);
    /// Values by number, which can be mapped (BPF_F_MMAPABLE).
    pub(super) const MAPPED_ARRAY: Self = Self::new(2, 1 << 10);
    /// Interfaces by number.
    pub(super) const DEVICES: Self = Self::new(14, 0);
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

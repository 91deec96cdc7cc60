//! What comes in: FCoE, FIP and LLDP to addresses that were joined, and nothing else.

use libc::sock_filter;

use super::EtherMac;

/// EtherTypes of FCoE and FIP (FC-BB-6), and of LLDP (IEEE 802.1AB), which comes where its group
/// was joined.
const ETHERTYPES: [u32; 3] = [0x8906, 0x8914, 0x88cc];

/// A program for the kernel's classic BPF. It sees frames from their destination on, without the
/// outermost 802.1Q tag.
pub(super) fn program(addresses: &[EtherMac]) -> Vec<sock_filter> {
    let mut program = vec![
        load(libc::BPF_H, 12),
        equal(ETHERTYPES[0], 3, 0),
        equal(ETHERTYPES[1], 2, 0),
        equal(ETHERTYPES[2], 1, 0),
        DROP,
    ];
    for [a, b, c, d, e, f] in addresses.iter().copied() {
        program.extend([
            load(libc::BPF_W, 2),
            equal(u32::from_be_bytes([c, d, e, f]), 0, 3),
            load(libc::BPF_H, 0),
            equal(u32::from_be_bytes([0, 0, a, b]), 0, 1),
            TAKE,
        ]);
    }
    program.push(DROP);
    program
}

/// The same for a socket that is handed frames of FCoE alone.
pub(super) fn fcoe_program() -> Vec<sock_filter> {
    vec![
        load(libc::BPF_H, 12),
        equal(ETHERTYPES[0], 0, 1),
        TAKE,
        DROP,
    ]
}

/// Whether a frame is let through, which may have a tag in it, where the kernel does not look.
pub(super) fn takes(addresses: &[EtherMac], frame: &[u8]) -> bool {
    let half = |at: usize| frame.get(at..at + 2).map(|half| [half[0], half[1]]);
    let ethertype = match half(12) {
        Some(TAGGED) => half(16),
        ethertype => ethertype,
    };
    let ethertype = ethertype.map(|[a, b]| u32::from_be_bytes([0, 0, a, b]));
    let destination = frame.first_chunk();
    ethertype.is_some_and(|ethertype| ETHERTYPES.contains(&ethertype))
        && destination.is_some_and(|destination| addresses.contains(destination))
}

/// The EtherType of an 802.1Q tag.
const TAGGED: [u8; 2] = [0x81, 0x00];

const TAKE: sock_filter = instruction(libc::BPF_RET | libc::BPF_K, u32::MAX);
const DROP: sock_filter = instruction(libc::BPF_RET | libc::BPF_K, 0);

const fn instruction(code: u32, k: u32) -> sock_filter {
    let code = code as u16;
    sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Loads this many bytes from there.
fn load(size: u32, at: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_ABS | size, at)
}

/// Skips this many instructions if what was loaded is `value`, or if it is not.
fn equal(value: u32, jt: u8, jf: u8) -> sock_filter {
    let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    sock_filter {
        jt,
        jf,
        ..instruction(code, value)
    }
}

//! Calls on sockets that no library has.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// What is set on packet sockets: the level of their options.
pub(super) const SOL_PACKET: libc::c_int = libc::SOL_PACKET;

/// A socket that is closed on exec and never waits.
pub(super) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved.
    let fd = check(unsafe { libc::socket(family, kind, protocol) })?;
    // SAFETY: a descriptor that the kernel has just made.
    Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) })
}

/// Sets an option to a value without pointers.
pub(super) fn set<T: Copy>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    // SAFETY: the kernel reads as many bytes as the value has.
    let set =
        unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), len_of::<T>()) };
    check(set).map(drop)
}

/// Has the socket take only what a classic BPF program lets through.
pub(super) fn filter(socket: &OwnedFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len().try_into().map_err(io::Error::other)?,
        filter: program.as_ptr().cast_mut(),
    };
    // What it points to is only read, and lives until we return.
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Binds a socket to an address of its family.
pub(super) fn bind<T: Copy>(socket: &OwnedFd, address: &T) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    // SAFETY: the kernel reads as many bytes as the address has.
    let bound = unsafe { libc::bind(fd, (&raw const *address).cast(), len_of::<T>()) };
    check(bound).map(drop)
}

/// Group and kind of the fanout that a packet socket has joined.
pub(super) fn fanout(socket: &OwnedFd) -> io::Result<i32> {
    let mut group: libc::c_int = 0;
    let mut len = len_of::<libc::c_int>();
    let (fd, name) = (socket.as_raw_fd(), libc::PACKET_FANOUT);
    // SAFETY: the kernel writes an integer, and no more bytes than `len` says.
    check(unsafe { libc::getsockopt(fd, SOL_PACKET, name, (&raw mut group).cast(), &mut len) })?;
    Ok(group)
}

/// Packets that a packet socket took, and those it dropped, since this was asked before.
pub(super) fn statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    let mut statistics = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut len = len_of::<libc::tpacket_stats>();
    let value = (&raw mut statistics).cast();
    let (fd, name) = (socket.as_raw_fd(), libc::PACKET_STATISTICS);
    // SAFETY: the kernel writes two integers, and no more bytes than `len` says.
    check(unsafe { libc::getsockopt(fd, SOL_PACKET, name, value, &mut len) })?;
    Ok(statistics)
}

/// Bytes of frames that a socket has sent and the interface has not.
pub(super) fn unsent(socket: &OwnedFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an integer (SIOCOUTQ has the number of TIOCOUTQ).
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) })?;
    Ok(bytes.max(0) as u32)
}

/// Over how many queues an interface receives (ethtool -l), by any socket.
pub(super) fn receive_queues(socket: &OwnedFd, interface: &str) -> io::Result<u32> {
    // The most and the present number of receiving, sending, other and combined.
    match ethtool(socket, interface, EthtoolQuery::Channels) {
        Ok(channels) => Ok((channels[4] + channels[7]).max(1)),
        // A driver that has only one.
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(cause) => Err(cause),
    }
}

/// What the driver of an interface can be asked (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EthtoolQuery {
    /// ETHTOOL_GRINGPARAM.
    Rings = 0x10,
    /// ETHTOOL_GPAUSEPARAM.
    Pause = 0x12,
    /// ETHTOOL_GFLAGS.
    Flags = 0x25,
    /// ETHTOOL_GCHANNELS.
    Channels = 0x3c,
}

/// Words of the longest answer.
const ETHTOOL_WORDS: usize = 8;

/// Asks the driver of an interface, by any socket. The words of its answer follow the command in
/// the kernel's structure; those that it does not have are 0.
pub(super) fn ethtool(
    socket: &OwnedFd,
    interface: &str,
    query: EthtoolQuery,
) -> io::Result<[u32; ETHTOOL_WORDS]> {
    let mut words = [0_u32; 1 + ETHTOOL_WORDS];
    words[0] = query as u32;
    // SAFETY: a C struct of integers and pointers, for which zeros are a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = interface.bytes().take(libc::IFNAMSIZ - 1);
    for (byte, into) in name.zip(&mut request.ifr_name) {
        *into = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut words).cast();
    // SAFETY: the request names 9 words, and none of these structures has more.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    check(asked)?;
    let [_, answer @ ..] = words;
    Ok(answer)
}

fn len_of<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

fn check(result: i32) -> io::Result<i32> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

//! Listening sockets, and what is set on connections.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// How long a portal in use is tried again, and how often: a process that ends gives its port
/// back within this.
const BIND_PATIENCE: Duration = Duration::from_secs(1);
const BIND_PERIOD: Duration = Duration::from_millis(20);

/// Connections that may wait to be accepted; the kernel cuts it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// What the kernel takes as a time of keepalive, in whole seconds (MAX_TCP_KEEPIDLE).
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);
const KEEPALIVE_MAX: Duration = Duration::from_secs(32767);

/// What is set on connections. Those that are accepted inherit it from the listening socket, at no
/// system call. TCP_NODELAY is always set: PDUs are sent in batches, and the last must not wait.
#[derive(Clone, Debug, Default)]
pub struct TcpOptions {
    /// The congestion control algorithm, by the kernel's name for it; `None` for the system's.
    pub congestion: Option<String>,
    /// After so long without a word from the peer its kernel is asked whether it lives, three
    /// times. In seconds, from 1 to 32767; other times are taken for the nearest.
    pub keepalive: Option<Duration>,
    /// How long bytes may stay unacknowledged before the connection is given up.
    pub user_timeout: Option<Duration>,
}

impl TcpOptions {
    /// Sets them on a connection, or on a listening socket for all its connections.
    ///
    /// # Errors
    ///
    /// Of setsockopt: an algorithm that the kernel has not, or that we may not use.
    pub fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        socket.set_tcp_nodelay(true)?;
        if let Some(algorithm) = &self.congestion {
            socket.set_tcp_congestion(algorithm.as_bytes())?;
        }
        if let Some(silence) = self.keepalive {
            let whole = |time: Duration| time.clamp(KEEPALIVE_MIN, KEEPALIVE_MAX);
            let keepalive = TcpKeepalive::new().with_time(whole(silence));
            let keepalive = keepalive.with_interval(whole(silence / 3)).with_retries(3);
            socket.set_tcp_keepalive(&keepalive)?;
        }
        if self.user_timeout.is_some() {
            socket.set_tcp_user_timeout(self.user_timeout)?;
        }
        Ok(())
    }
}

/// Connects to the first address of `host` that answers within `limit`, and sets TCP_NODELAY. It
/// blocks, for the name service too.
///
/// # Errors
///
/// Of getaddrinfo, or of the last address that was tried.
pub fn connect(host: &str, port: u16, limit: Duration) -> io::Result<OwnedFd> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no IP address");
    for address in resolve(host, port)? {
        match TcpStream::connect_timeout(&address, limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream.into());
            }
            Err(cause) => failed = cause,
        }
    }
    Err(failed)
}

/// The addresses of a host, in the order in which they are to be tried. It blocks.
///
/// # Errors
///
/// Of getaddrinfo.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs().map_err(|cause| {
        let way_out = "check its spelling, or give an address";
        io::Error::other(format!("{host} cannot be resolved ({cause}): {way_out}"))
    })?;
    Ok(found.collect())
}

/// Listens on a portal; an address in use is tried again for 1 s, during which this sleeps. Port 0
/// is any free one. An IPv6 address is for IPv6 alone, so that `0.0.0.0` and `[::]` go together.
///
/// # Errors
///
/// Of socket, bind, listen, and [`TcpOptions::apply`].
pub fn listen(portal: SocketAddr, options: &TcpOptions) -> io::Result<OwnedFd> {
    listen_in_time(portal, options, false)
}

/// Listens on a portal that overlaps one of this process: on one address where that has all, or on
/// all where that has one. Both get connections until one of them is closed.
///
/// # Errors
///
/// As [`listen`]; a program of another user, or one that is not Lunar, listens on the port.
pub fn listen_beside(portal: SocketAddr, options: &TcpOptions) -> io::Result<OwnedFd> {
    listen_in_time(portal, options, true)
}

/// Why a port is not to be had that is in use, and the way out. Linux's own target listens on ports
/// of both kinds without a process that could be shown; `seen_by` is the command that shows others.
#[must_use]
pub fn port_taken(by: &str, seen_by: &str) -> String {
    format!(
        "another {by} has this port: targetcli ls shows Linux's own target, {seen_by} any other; \
         stop it, or take another port"
    )
}

fn listen_in_time(portal: SocketAddr, options: &TcpOptions, beside: bool) -> io::Result<OwnedFd> {
    let deadline = Instant::now() + BIND_PATIENCE;
    loop {
        match listen_once(portal, options, beside) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if Instant::now() >= deadline {
                    return Err(error);
                }
                std::thread::sleep(BIND_PERIOD);
            }
            result => return result,
        }
    }
}

fn listen_once(portal: SocketAddr, options: &TcpOptions, beside: bool) -> io::Result<OwnedFd> {
    let socket = Socket::new(
        Domain::for_address(portal),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if portal.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of a former process that linger in TIME-WAIT do not keep the port.
    socket.set_reuse_address(true)?;
    options.apply(&socket)?;
    socket.set_reuse_port(beside)?;
    socket.bind(&portal.into())?;
    // Two can be bound to one port before either listens; the second is told only now.
    socket.listen(BACKLOG)?;
    // From now on another one of this user may listen beside it, if it asks for that as this does:
    // before, this one would have been let in beside others.
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

/// The address that a connection came to, or a listening socket has.
///
/// # Errors
///
/// Of getsockname; a socket that is not of IP.
pub fn local_address(socket: &impl AsFd) -> io::Result<SocketAddr> {
    of_ip(&SockRef::from(socket).local_addr()?)
}

/// Bytes that the kernel sends in a segment of a connection. Where it does not tell, those that
/// every IPv4 host takes (RFC 9293 §3.7.1).
pub fn segment_size(socket: &impl AsFd) -> usize {
    SockRef::from(socket).tcp_mss().unwrap_or(536) as usize
}

/// The CPU where the kernel took the last packets of a connection; `None` where it does not tell.
pub fn incoming_cpu(socket: &impl AsFd) -> Option<usize> {
    SockRef::from(socket).cpu_affinity().ok()
}

/// The address of a connection's peer.
///
/// # Errors
///
/// Of getpeername: there is no peer (any more); a socket that is not of IP.
pub fn peer_address(socket: &impl AsFd) -> io::Result<SocketAddr> {
    of_ip(&SockRef::from(socket).peer_addr()?)
}

fn of_ip(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    let error = || io::Error::new(io::ErrorKind::InvalidInput, "not an IP address");
    address.as_socket().ok_or_else(error)
}

#[cfg(test)]
mod tests;

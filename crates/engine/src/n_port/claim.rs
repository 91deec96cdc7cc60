//! Claims to names of an interface, which all programs of a network namespace agree on by abstract
//! sockets (unix(7)).
//!
//! Two ports of one name on an Ethernet are in each other's way wherever their programs come from.
//! A file that is locked would be seen only by programs of the same user and mount namespace; an
//! abstract socket is seen in the network namespace of the interface, and in no other. The kernel
//! frees the name however its owner ends. What this costs: any process there may take a name and
//! keep a port from its own, so whoever is refused is told which process of which user has it.

use std::os::fd::OwnedFd;
use std::{fmt, fs, io};

use ::io::ether::{Peer, peer};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};

/// A name, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    /// Bound to it.
    _socket: OwnedFd,
}

/// What came of a claim.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is ours.
    ByUs(Claim),
    /// Another one has it.
    By(Other),
}

/// A program that has a name.
#[derive(Debug)]
pub(super) struct Other(Option<Peer>);

/// Takes a name of up to 80 bytes, unless another program has it.
///
/// # Errors
///
/// When there can be no socket.
pub(super) fn take(name: &str) -> io::Result<Taken> {
    let address = SocketAddrUnix::new_abstract_name(format!("lunar/fcoe/{name}").as_bytes())?;
    let socket = socket()?;
    match bind(&socket, &address) {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => return Ok(Taken::By(Other::at(&address))),
        Err(error) => return Err(error.into()),
    }
    // It accepts nobody: to be connected is enough to see who listens.
    listen(&socket, BACKLOG)?;
    Ok(Taken::ByUs(Claim { _socket: socket }))
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    Ok(socket?)
}

/// Others that may ask who has a name while it is taken. Later ones are not told.
const BACKLOG: i32 = 128;

impl Other {
    fn at(address: &SocketAddrUnix) -> Self {
        let peer = || {
            let socket = socket()?;
            connect(&socket, address)?;
            peer(&socket)
        };
        Self(peer().ok())
    }
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.and_then(|peer| peer.process) {
            None => f.write_str("another process")?,
            Some(id) => {
                write!(f, "process {id}")?;
                if let Ok(name) = fs::read_to_string(format!("/proc/{id}/comm")) {
                    write!(f, " ({})", name.trim())?;
                }
            }
        }
        let ours = rustix::process::geteuid().as_raw();
        match self.0.filter(|peer| peer.user != ours) {
            Some(peer) => write!(f, " of user {}", peer.user),
            None => Ok(()),
        }
    }
}

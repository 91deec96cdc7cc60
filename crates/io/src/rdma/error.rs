//! Why there is no connection by a device, each with the way out.

use std::io;
use std::net::SocketAddr;

use super::sys::cm::event;

/// What keeps RDMA by a device from being used.
#[derive(Debug, thiserror::Error)]
pub enum RdmaError {
    /// A library is not installed, or is no such library.
    #[error(
        "RDMA by a device needs {file} ({cause}): install the package {package}, or use software \
         iWARP"
    )]
    NoLibrary {
        /// The file that was looked for.
        file: String,
        /// Debian's package that has it.
        package: &'static str,
        /// What the dynamic linker says.
        cause: String,
    },
    /// The machine has no device.
    #[error(
        "this machine has no RDMA device: load its driver, make one of an Ethernet interface \
         (modprobe rdma_rxe; rdma link add rxe0 type rxe netdev IFACE), or use software iWARP"
    )]
    NoDevice,
    /// The device does not answer to this name.
    #[error("the way to {peer} is by the RDMA device {found}, not by {wanted}: name that, or none")]
    OtherDevice {
        /// Where the connection goes.
        peer: SocketAddr,
        /// The device that was asked for.
        wanted: String,
        /// The device on the way.
        found: String,
    },
    /// Only iWARP devices are at an address.
    #[error(
        "{address} is of the iWARP device {device}, whose ports are those of TCP: software iWARP \
         answers there, so serve without a device"
    )]
    IwarpDevice {
        /// That was to be listened on.
        address: SocketAddr,
        /// Its name.
        device: String,
    },
    /// The kernel does not let memory be pinned.
    #[error(
        "no memory can be pinned for RDMA ({bytes} bytes more, RLIMIT_MEMLOCK is {limit}): raise \
         it (ulimit -l unlimited; LimitMEMLOCK=infinity in a unit of systemd)"
    )]
    NoLockedMemory {
        /// How many were asked for.
        bytes: usize,
        /// The limit, in words.
        limit: String,
    },
    /// A portal cannot be listened on.
    #[error("cannot listen for RDMA on {address}: {cause}{hint}")]
    Listen {
        /// The portal.
        address: SocketAddr,
        /// What librdmacm says.
        cause: io::Error,
        /// The way out, after a colon.
        hint: String,
    },
    /// A connection was not made.
    #[error("no RDMA connection to {peer}: {problem}{}", told(*status))]
    Connect {
        /// The peer.
        peer: SocketAddr,
        /// In a few words, with the way out.
        problem: &'static str,
        /// A number of errno, below 0; or why a peer rejected it; or 0.
        status: i32,
    },
    /// A call of the libraries failed.
    #[error("{call} of RDMA device {device} failed: {cause}")]
    Call {
        /// The function.
        call: &'static str,
        /// The device; empty when none is known yet.
        device: String,
        /// What it says.
        cause: io::Error,
    },
}

/// A status behind a colon, where it says more than the problem does.
fn told(status: i32) -> String {
    match status {
        0 => String::new(),
        ..0 => format!(" ({})", io::Error::from_raw_os_error(-status)),
        _ => format!(" (reason {status})"),
    }
}

impl RdmaError {
    /// Of a call that set errno.
    pub(super) fn last(call: &'static str, device: &str) -> Self {
        let (cause, device) = (io::Error::last_os_error(), device.to_owned());
        Self::Call {
            call,
            device,
            cause,
        }
    }

    /// Of an event that ends the making of a connection; `None` for any other.
    pub(super) fn of_event(peer: SocketAddr, number: i32, status: i32) -> Option<Self> {
        let problem = match number {
            event::ADDR_ERROR => {
                "no RDMA device leads there; check the address, or use software iWARP"
            }
            event::ROUTE_ERROR => "the fabric has no route there; check its links and subnet",
            event::CONNECT_ERROR => "the connection failed while it was made; try again",
            event::UNREACHABLE => {
                "the peer does not answer; check that it is up and listens for RDMA"
            }
            event::REJECTED => "the peer refuses it; check that it serves iSER on this port",
            event::DEVICE_REMOVAL => "the RDMA device was taken away; put it back",
            event::ADDR_CHANGE => "the way there has changed; try again",
            event::DISCONNECTED => "the peer disconnected at once; see its log",
            _ => return None,
        };
        Some(Self::Connect {
            peer,
            problem,
            status,
        })
    }
}

//! A cable: two Unix datagram sockets, one datagram a frame.
//!
//! The ends of the cable at a path are a socket there and one at the same path with `.peer` behind
//! it. The first to open it gets the former, the second the latter, and an end whose owner has
//! ended is free again. Each sends to the other, so QEMU is plugged in by `-netdev
//! dgram,local.type=unix,local.path=X.peer,remote.type=unix,remote.path=X`.
//!
//! A socket that is full takes no more, so nothing is lost on a cable but what is sent while the
//! other end is closed.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, Mode, fchmod, flock};
use rustix::net::{RecvFlags, SocketAddrUnix, bind, recv, sockopt};

use super::readiness::EpollSet;
use super::slots::FrameSlots;
use super::slots::LostFrameMemory;
use super::{
    ADDRESSES_MAX, BATCH, Drops, EtherMac, EtherOpenError, EtherOptions, HEADER_MAX, LinkStatus,
    filter,
};

/// One end of a cable.
pub struct CablePort {
    link: LinkStatus,
    /// Bound to our end. Not connected, so that the other end may be closed and opened. A port that
    /// only sends has none.
    incoming: Option<UnixDatagram>,
    /// Connected to the other end if that was seen open, so that we are told of room.
    outgoing: UnixDatagram,
    own: PathBuf,
    other: PathBuf,
    waited: EpollSet,
    /// Where a frame is received.
    buffer: Vec<u8>,
    slots: FrameSlots,
    lost: LostFrameMemory,
    addresses: Vec<EtherMac>,
    drops: Drops,
    /// Nothing had the other end when something was sent last.
    is_alone: bool,
}

impl CablePort {
    /// Takes an end of the cable at this path.
    ///
    /// # Errors
    ///
    /// See [`EtherOpenError`].
    pub fn open(path: &Path, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        let failed = |cause| failure(path, cause);
        let len = path.as_os_str().len();
        if len > PATH_MAX {
            return Err(EtherOpenError::LongPath(path.display().to_string(), len));
        }
        let mut far = path.as_os_str().to_owned();
        far.push(PEER);
        let ends = [path.to_owned(), far.into()];
        let _lock = lock(path).map_err(failed)?;
        for (number, own) in ends.iter().enumerate() {
            if let Some(incoming) = take_end(own).map_err(failed)? {
                let mac = mac_of(path, number as u8);
                let other = ends[1 - number].clone();
                let ends = (own.clone(), other);
                return Self::start(ends, mac, Some(incoming), options).map_err(failed);
            }
        }
        Err(EtherOpenError::Taken(path.display().to_string()))
    }

    /// Another port at this end, which only sends.
    pub(super) fn sender(&self, options: &EtherOptions) -> Result<Self, EtherOpenError> {
        let ends = (self.own.clone(), self.other.clone());
        let opened = Self::start(ends, self.mac(), None, options);
        opened.map_err(|cause| failure(&self.own, cause))
    }

    fn start(
        (own, other): (PathBuf, PathBuf),
        mac: EtherMac,
        incoming: Option<UnixDatagram>,
        options: &EtherOptions,
    ) -> io::Result<Self> {
        let outgoing = UnixDatagram::unbound()?;
        outgoing.set_nonblocking(true)?;
        sockopt::set_socket_send_buffer_size(&outgoing, options.ring)?;
        let waited = EpollSet::new()?;
        if let Some(incoming) = &incoming {
            waited.input(incoming)?;
        }
        waited.input(&outgoing)?;
        let frame_max = options.payload_max + HEADER_MAX;
        Ok(Self {
            link: LinkStatus {
                up: true,
                is_gone: false,
                mtu: options.payload_max.try_into().unwrap_or(u32::MAX),
            },
            incoming,
            outgoing,
            own,
            other,
            waited,
            buffer: vec![0; frame_max],
            slots: FrameSlots::new(frame_max),
            lost: LostFrameMemory::new(options.payload_max),
            addresses: vec![mac],
            drops: Drops::default(),
            is_alone: false,
        })
    }

    pub(super) fn mac(&self) -> EtherMac {
        self.addresses[0]
    }

    /// Always up: whether anybody is at the other end shows by what he says.
    pub(super) fn link(&self) -> LinkStatus {
        self.link
    }

    pub(super) fn join(&mut self, mac: EtherMac) -> io::Result<()> {
        if self.addresses.contains(&mac) {
            return Ok(());
        }
        if self.addresses.len() == ADDRESSES_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.addresses.push(mac);
        Ok(())
    }

    pub(super) fn leave(&mut self, mac: EtherMac) -> io::Result<()> {
        let own = self.mac();
        self.addresses.retain(|at| *at == own || *at != mac);
        Ok(())
    }

    pub(super) fn receive(&mut self, mut taken: impl FnMut(&[u8], Option<u16>)) -> usize {
        let Some(incoming) = &self.incoming else {
            return 0;
        };
        for count in 0..BATCH {
            let frame = match recv(incoming, &mut *self.buffer, RecvFlags::TRUNC) {
                Ok((here, len)) if here == len => &self.buffer[..len],
                Ok(_) => {
                    self.drops.too_long += 1;
                    continue;
                }
                Err(_) => return count,
            };
            if filter::takes(&self.addresses, frame) {
                taken(frame, None);
            }
        }
        BATCH
    }

    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.lost.takes(len, self.link.mtu) {
            return Some(self.lost.slot(len));
        }
        if self.slots.is_full() {
            self.send();
        }
        self.slots.slot(len)
    }

    pub(super) fn commit(&mut self, len: usize) {
        if self.lost.commit(len) {
            self.drops.oversize += 1;
        } else {
            self.slots.commit(len);
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<bool> {
        self.send();
        let left = self.slots.is_empty();
        self.waited.room(&self.outgoing, !left)?;
        Ok(left)
    }

    fn send(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        let (mut is_anew, mut is_alone) = (false, false);
        while let Err(cause) = self.slots.send(&self.outgoing) {
            match cause.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => return,
                // The other end was closed, and may have been opened again.
                _ if !is_anew && self.outgoing.connect(&self.other).is_ok() => is_anew = true,
                _ => {
                    is_alone = true;
                    let lost = self.slots.clear();
                    // No loss is counted while the other end is known to be gone.
                    if !self.is_alone {
                        self.drops.unsent += lost;
                    }
                }
            }
        }
        self.is_alone = is_alone;
    }

    pub(super) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub(super) fn has_sent_all(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn more_to_send(&mut self) -> io::Result<()> {
        self.waited.room(&self.outgoing, true)
    }

    pub(super) fn next_unsent(&self) -> Option<u64> {
        self.slots.first().map(|(number, _)| number)
    }

    pub(super) fn give_up(&mut self) {
        self.drops.refused += self.slots.clear();
    }

    pub(super) fn wait_for(&self, other: BorrowedFd<'_>) -> io::Result<()> {
        self.waited.input(other)
    }

    pub(super) fn waited(&self) -> &Arc<OwnedFd> {
        self.waited.fd()
    }

    pub(super) fn drops(&self) -> Drops {
        self.drops
    }
}

impl fmt::Debug for CablePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CablePort({})", self.own.display())
    }
}

impl Drop for CablePort {
    /// Leaves our end for another program. If the file is gone already, so much the better.
    fn drop(&mut self) {
        if self.incoming.is_some() {
            let _ = fs::remove_file(&self.own);
        }
    }
}

fn failure(path: &Path, cause: io::Error) -> EtherOpenError {
    let path = path.display().to_string();
    match cause.kind() {
        ErrorKind::PermissionDenied => EtherOpenError::Closed(path),
        ErrorKind::NotFound => EtherOpenError::NoFolder(path),
        _ => EtherOpenError::of(&format_args!("cable:{path}"), cause),
    }
}

/// Keeps others from looking for an end in the same folder.
fn lock(path: &Path) -> io::Result<File> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = File::open(folder)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    Ok(folder)
}

/// Takes an end, unless it is taken.
fn take_end(own: &Path) -> io::Result<Option<UnixDatagram>> {
    match UnixDatagram::unbound()?.connect(own) {
        Ok(()) => return Ok(None),
        // Of a program that takes frames from the other end alone.
        Err(cause) if cause.raw_os_error() == Some(libc::EPERM) => return Ok(None),
        // Of a program that was killed, or no socket at all.
        Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            if !fs::symlink_metadata(own)?.file_type().is_socket() {
                return Err(io::Error::new(
                    cause.kind(),
                    "the path is a file and not a socket: name another path, or remove the file",
                ));
            }
            fs::remove_file(own)?;
        }
        Err(cause) if cause.kind() == ErrorKind::NotFound => {}
        Err(cause) => return Err(cause),
    }
    let socket = UnixDatagram::unbound()?;
    // Before it is bound, so that no other user can ever write to it.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(own)?)?;
    socket.set_nonblocking(true)?;
    Ok(Some(socket))
}

/// Behind the path of the second end.
const PEER: &str = ".peer";

/// Bytes that a path may have: `sockaddr_un` has room for 108, of which the last is 0.
pub(super) const PATH_MAX: usize = 107 - PEER.len();

/// A locally administered address, the same each time for an end, made by FNV-1a of its path.
fn mac_of(path: &Path, end: u8) -> EtherMac {
    let bytes = path.as_os_str().as_bytes().iter();
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let [a, b, c, d, e, ..] = hash.to_le_bytes();
    [0x02, a, b, c, d, e & !1 | end]
}

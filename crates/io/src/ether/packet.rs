//! An interface by AF_PACKET: a ring of frames that have come in, and one of those to be sent.
//!
//! Rings are of TPACKET_V2. V3 packs frames of any length into blocks, and hands a block over when
//! it is full or a timer of at least 1 ms has run out, which every request that waits for one
//! answer would wait for.
//!
//! The socket takes all protocols, which a filter narrows down: only then does the kernel show
//! frames whose VLAN has no interface, and their tags. Frames to be sent take the way of the
//! queueing discipline. Without it (PACKET_QDISC_BYPASS) priorities would mean nothing, and what
//! the interface has no room for would be lost in place of waiting here.

mod rings;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{SendFlags, send, sockopt};

use self::rings::{Rings, State};
use super::link::{self, Interface};
use super::waited::Waited;
use super::{
    ADDRESSES_MAX, BATCH, Drops, HEADER_MAX, Link, Mac, OpenError, Options, PRIORITY, filter, raw,
};

/// A port at an interface of this machine.
#[derive(Debug)]
pub struct PacketPort {
    name: String,
    interface: Interface,
    /// Of the interface when we came.
    before: link::Counters,
    socket: OwnedFd,
    rings: Rings,
    watch: OwnedFd,
    waited: Waited,
    /// That come in: our own, then those that were joined.
    addresses: Vec<Mac>,
    /// Nothing came in last time: there is time to look for news.
    idle: bool,
    drops: Drops,
}

impl PacketPort {
    /// Opens a port at the interface of this name.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(name: &str, options: &Options) -> Result<Self, OpenError> {
        let failed = |cause| OpenError::of(&name, cause);
        // Before it is looked at, so that no change goes unseen.
        let watch = link::watch().map_err(failed)?;
        let interface = match link::look(name) {
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
                return Err(OpenError::Missing(name.to_owned()));
            }
            other => other.map_err(failed)?,
        };
        if !interface.ethernet {
            return Err(OpenError::NotEthernet(name.to_owned()));
        }
        Self::start(name, interface, watch, options).map_err(failed)
    }

    fn start(
        name: &str,
        interface: Interface,
        watch: OwnedFd,
        options: &Options,
    ) -> io::Result<Self> {
        // Of no protocol, so that nothing comes in before it is bound.
        let socket = raw::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        for (name, value) in [
            (
                libc::PACKET_VERSION,
                libc::tpacket_versions::TPACKET_V2 as i32,
            ),
            (libc::PACKET_IGNORE_OUTGOING, 1),
            // A frame that the interface cannot send shall not hold up those behind it.
            (libc::PACKET_LOSS, 1),
        ] {
            raw::set(&socket, raw::SOL_PACKET, name, &value)?;
        }
        raw::set(&socket, libc::SOL_SOCKET, libc::SO_PRIORITY, &PRIORITY)?;
        sockopt::set_socket_send_buffer_size(&socket, options.ring)?;
        let rings = Rings::new(&socket, options.payload_max + HEADER_MAX, options.ring)?;
        let waited = Waited::new()?;
        waited.input(&watch)?;
        waited.input(&socket)?;
        let mut port = Self {
            name: name.to_owned(),
            interface,
            before: interface.counters,
            socket,
            rings,
            watch,
            waited,
            addresses: vec![interface.mac],
            idle: true,
            drops: Drops::default(),
        };
        port.attach()?;
        Ok(port)
    }

    /// Binds the socket to the interface, or to another one that has its name now.
    fn attach(&mut self) -> io::Result<()> {
        raw::filter(&self.socket, &filter::program(&self.addresses))?;
        for mac in &self.addresses {
            self.add_membership(*mac)?;
        }
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: self.interface.index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        raw::bind(&self.socket, &address)
    }

    fn add_membership(&self, mac: Mac) -> io::Result<()> {
        let [a, b, c, d, e, f] = mac;
        let kind = match a & GROUP {
            0 => libc::PACKET_MR_UNICAST,
            _ => libc::PACKET_MR_MULTICAST,
        };
        let membership = libc::packet_mreq {
            mr_ifindex: self.interface.index,
            mr_type: kind as u16,
            mr_alen: 6,
            mr_address: [a, b, c, d, e, f, 0, 0],
        };
        raw::set(
            &self.socket,
            raw::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &membership,
        )
    }

    pub(super) fn mac(&self) -> Mac {
        self.addresses[0]
    }

    pub(super) fn link(&self) -> Link {
        self.interface.link
    }

    pub(super) fn news(&mut self) -> io::Result<Option<Link>> {
        if !self.idle || !link::has_changed(&self.watch)? {
            return Ok(None);
        }
        // The socket stays ready until somebody has asked why it fails, which the link tells.
        let _ = sockopt::socket_error(&self.socket);
        let before = self.interface;
        match link::look(&self.name) {
            Ok(interface) => self.interface = interface,
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
                self.interface.link.up = false;
            }
            Err(cause) => return Err(cause),
        }
        if self.interface.index != before.index {
            self.before = self.interface.counters;
            self.attach()?;
        }
        let link = self.link();
        Ok((link != before.link).then_some(link))
    }

    pub(super) fn join(&mut self, mac: Mac) -> io::Result<()> {
        if self.addresses.contains(&mac) {
            return Ok(());
        }
        if self.addresses.len() == ADDRESSES_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.add_membership(mac)?;
        self.addresses.push(mac);
        raw::filter(&self.socket, &filter::program(&self.addresses))
    }

    pub(super) fn receive(&mut self, mut taken: impl FnMut(&[u8], Option<u16>)) -> usize {
        let mut count = 0;
        while count < BATCH {
            let too_long = &mut self.drops.too_long;
            let is_there = self.rings.receive(|frame| match frame {
                Some((octets, tag)) => taken(octets, tag),
                None => *too_long += 1,
            });
            if !is_there {
                break;
            }
            count += 1;
        }
        self.idle = count == 0;
        count
    }

    pub(super) fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let fits = len <= self.interface.link.mtu as usize + HEADER_MAX;
        fits.then(|| self.rings.slot(len)).flatten()
    }

    pub(super) fn commit(&mut self, len: usize) {
        self.rings.commit(len);
    }

    pub(super) fn flush(&mut self) -> io::Result<bool> {
        while self.rings.state() == State::Unsent {
            match send(&self.socket, &[], SendFlags::DONTWAIT) {
                Ok(_) | Err(Errno::INTR) => self.rings.settle(),
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    self.rings.settle();
                    break;
                }
                Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                    self.rings.settle();
                    self.drops.unsent += self.rings.give_up();
                }
                Err(error) => return Err(error.into()),
            }
        }
        let left = self.rings.state() == State::Sent;
        self.waited.room(&self.socket, !left)?;
        Ok(left)
    }

    pub(super) fn waited(&self) -> &Arc<OwnedFd> {
        self.waited.fd()
    }

    pub(super) fn drops(&mut self) -> io::Result<Drops> {
        self.drops.ring_full += u64::from(raw::statistics(&self.socket)?.tp_drops);
        // One that is gone has told what it had to tell.
        if let Ok(interface) = link::look(&self.name) {
            let (now, before) = (interface.counters, self.before);
            self.drops.missed = now.missed.saturating_sub(before.missed);
            self.drops.received = now.received.saturating_sub(before.received);
            self.drops.transmitted = now.transmitted.saturating_sub(before.transmitted);
        }
        Ok(self.drops)
    }
}

/// The bit of a MAC address, in its first octet, that makes it one of a group.
const GROUP: u8 = 1;

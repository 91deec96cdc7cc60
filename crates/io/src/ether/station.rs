//! What ports at an interface have in common: which one it is, how its link is, and which
//! addresses come in there.

use std::io;
use std::os::fd::OwnedFd;

use super::link::{self, Counters, Interface};
use super::retry::{PAUSE, Retry};
use super::{ADDRESSES_MAX, Drops, Link, Mac, OpenError, raw};

/// An interface, looked at from time to time.
#[derive(Debug)]
pub(super) struct Station {
    name: String,
    interface: Interface,
    /// Its counters when we came.
    before: Counters,
    watch: OwnedFd,
    /// What it told could not be acted on.
    retry: Retry,
    /// That come in: our own, then those that were joined.
    addresses: Vec<Mac>,
}

impl Station {
    pub(super) fn open(name: &str) -> Result<Self, OpenError> {
        let failed = |cause| OpenError::of(&name, cause);
        // Before it is looked at, so that no change goes unseen.
        let watch = link::watch().map_err(failed)?;
        let retry = Retry::new().map_err(failed)?;
        let interface = match link::look(name) {
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
                return Err(OpenError::Missing(name.to_owned()));
            }
            other => other.map_err(failed)?,
        };
        if !interface.ethernet {
            return Err(OpenError::NotEthernet(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            interface,
            before: interface.counters,
            watch,
            retry,
            addresses: vec![interface.mac],
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn index(&self) -> i32 {
        self.interface.index
    }

    pub(super) fn link(&self) -> Link {
        self.interface.link
    }

    pub(super) fn tag_priority(&self) -> Option<u32> {
        self.interface.tag_priority
    }

    /// What becomes readable when there may be news.
    pub(super) fn waited(&self) -> [&OwnedFd; 2] {
        [&self.watch, self.retry.timer()]
    }

    pub(super) fn addresses(&self) -> &[Mac] {
        &self.addresses
    }

    /// Whether it is time to [`Self::look`].
    pub(super) fn may_have_changed(&mut self) -> io::Result<bool> {
        Ok(link::has_changed(&self.watch)? | self.retry.is_due())
    }

    /// It is time in a while, whatever is told.
    pub(super) fn look_later(&mut self) -> io::Result<()> {
        self.retry.set(PAUSE)
    }

    /// How the link is, if it has changed, after `act` has done what that takes; it is told whether
    /// another interface has the name now. When either fails nothing has changed yet, and it is
    /// time to look again in a while.
    pub(super) fn look(
        &mut self,
        act: impl FnOnce(&Self, bool) -> io::Result<()>,
    ) -> io::Result<Option<Link>> {
        let before = self.interface;
        if let Err(cause) = self.look_and(act) {
            self.interface = before;
            self.retry.set(PAUSE)?;
            return Err(cause);
        }
        let link = self.link();
        Ok((link != before.link).then_some(link))
    }

    fn look_and(&mut self, act: impl FnOnce(&Self, bool) -> io::Result<()>) -> io::Result<()> {
        let before = self.interface;
        match link::look(&self.name) {
            Ok(interface) => self.interface = interface,
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
                self.interface.link.up = false;
            }
            Err(cause) => return Err(cause),
        }
        let is_anew = self.interface.index != before.index;
        act(self, is_anew)?;
        if is_anew {
            self.before = self.interface.counters;
        }
        Ok(())
    }

    /// Adds an address, with the membership of a packet socket. Returns whether it is new.
    pub(super) fn join(&mut self, socket: &OwnedFd, mac: Mac) -> io::Result<bool> {
        if self.addresses.contains(&mac) {
            return Ok(false);
        }
        if self.addresses.len() == ADDRESSES_MAX {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.membership(socket, libc::PACKET_ADD_MEMBERSHIP, mac)?;
        self.addresses.push(mac);
        Ok(true)
    }

    /// Takes an address that was joined away, with its membership. Returns whether there was one.
    pub(super) fn leave(&mut self, socket: &OwnedFd, mac: Mac) -> io::Result<bool> {
        let joined = self.addresses.iter().skip(1).position(|at| *at == mac);
        let Some(at) = joined else { return Ok(false) };
        self.addresses.remove(1 + at);
        self.membership(socket, libc::PACKET_DROP_MEMBERSHIP, mac)?;
        Ok(true)
    }

    /// Adds the memberships of all addresses, to an interface that has none of them.
    pub(super) fn join_all(&self, socket: &OwnedFd) -> io::Result<()> {
        let mut addresses = self.addresses.iter();
        addresses.try_for_each(|mac| self.membership(socket, libc::PACKET_ADD_MEMBERSHIP, *mac))
    }

    fn membership(&self, socket: &OwnedFd, option: i32, mac: Mac) -> io::Result<()> {
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
        raw::set(socket, raw::SOL_PACKET, option, &membership)
    }

    /// Fills in what the interface has lost.
    pub(super) fn count(&self, drops: &mut Drops) {
        // One that is gone has told what it had to tell.
        if let Ok(interface) = link::look(&self.name) {
            let (now, before) = (interface.counters, self.before);
            drops.missed = now.missed.saturating_sub(before.missed);
            drops.received = now.received.saturating_sub(before.received);
            drops.transmitted = now.transmitted.saturating_sub(before.transmitted);
        }
    }
}

/// The bit of a MAC address, in its first octet, that makes it one of a group.
const GROUP: u8 = 1;

//! What ports at an interface have in common: which one it is, how its link is, and which
//! addresses come in there.

use std::io;
use std::os::fd::OwnedFd;

use super::link::{self, Interface, LinkChange, LinkCounters};
use super::link_query::LinkQuery;
use super::readiness::{PAUSE, Retry};
use super::{ADDRESSES_MAX, Drops, EtherMac, EtherOpenError, LinkStatus, raw};

/// An interface, looked at from time to time.
#[derive(Debug)]
pub(super) struct InterfaceWatch {
    name: String,
    interface: Interface,
    /// Its counters when we came.
    before: LinkCounters,
    watch: OwnedFd,
    /// What was told, and not acted on yet.
    change: Option<LinkChange>,
    /// What could not be acted on, until `retry` is due.
    failed: Option<LinkChange>,
    /// What was asked as more was told than could be kept, and for the sake of the counters.
    asked: LinkQuery,
    counting: LinkQuery,
    /// When to try again what failed.
    retry: Retry,
    /// That come in: our own, then those that were joined.
    addresses: Vec<EtherMac>,
}

impl InterfaceWatch {
    pub(super) fn open(name: &str) -> Result<Self, EtherOpenError> {
        let failed = |cause| EtherOpenError::of(&name, cause);
        // Before it is looked at, so that no change goes unseen.
        let watch = link::watch().map_err(failed)?;
        let retry = Retry::new().map_err(failed)?;
        let interface = match link::look(name) {
            Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => {
                return Err(EtherOpenError::Missing(name.to_owned()));
            }
            other => other.map_err(failed)?,
        };
        if !interface.ethernet {
            return Err(EtherOpenError::NotEthernet(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            interface,
            before: interface.counters,
            watch,
            change: None,
            failed: None,
            asked: LinkQuery::about(name),
            counting: LinkQuery::about(name),
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

    pub(super) fn link(&self) -> LinkStatus {
        self.interface.link
    }

    pub(super) fn tag_priority(&self) -> Option<u32> {
        self.interface.tag_priority
    }

    /// What becomes readable when there may be news.
    pub(super) fn waited(&self) -> [&OwnedFd; 2] {
        [&self.watch, self.retry.timer()]
    }

    pub(super) fn addresses(&self) -> &[EtherMac] {
        &self.addresses
    }

    /// Whether it is time to [`Self::look`].
    pub(super) fn may_have_changed(&mut self) -> io::Result<bool> {
        let news = link::news(&self.watch, &self.name, self.interface.index)?;
        if news.is_overrun {
            self.asked.forget();
            self.asked.ask()?;
            self.retry.set(PAUSE)?;
        } else if news.last.is_some() {
            // It is whole, and newer than what was asked.
            self.asked.forget();
        }
        self.change = news.last.or(self.change);
        if self.retry.is_due() {
            self.look_again()?;
        }
        Ok(self.change.is_some())
    }

    /// It is time to try again what failed, and to see whether there is an answer.
    fn look_again(&mut self) -> io::Result<()> {
        match self.asked.answer() {
            Some(Ok(interface)) => self.change = Some(LinkChange::Is(interface)),
            Some(Err(cause)) if cause.raw_os_error() == Some(libc::ENODEV) => {
                self.change = Some(LinkChange::Gone);
            }
            Some(Err(cause)) => {
                self.retry.set(PAUSE)?;
                self.asked.ask()?;
                return Err(cause);
            }
            None if self.asked.is_open() => self.retry.set(PAUSE)?,
            None => {
                let now = Some(LinkChange::Is(self.interface));
                self.change = self.change.or(self.failed.take()).or(now);
            }
        }
        Ok(())
    }

    /// It is time in a while, whatever is told.
    pub(super) fn look_later(&mut self) -> io::Result<()> {
        self.retry.set(PAUSE)
    }

    /// How the link is, if it has changed or is another interface's, after `act` has done what that
    /// takes; it is told whether another interface has the name now. When either fails nothing has
    /// changed yet, and it is time to look again in a while, or when something else is told: the
    /// reactor wakes for other reasons many times before that.
    pub(super) fn look(
        &mut self,
        act: impl FnOnce(&Self, bool) -> io::Result<()>,
    ) -> io::Result<Option<LinkStatus>> {
        let (before, change) = (self.interface, self.change.take());
        // What was told since is whole, and newer.
        self.failed = None;
        if let Err(cause) = self.look_and(change, act) {
            self.interface = before;
            self.failed = change;
            self.retry.set(PAUSE)?;
            return Err(cause);
        }
        let link = self.link();
        let is_news = link != before.link || self.index() != before.index;
        Ok(is_news.then_some(link))
    }

    fn look_and(
        &mut self,
        change: Option<LinkChange>,
        act: impl FnOnce(&Self, bool) -> io::Result<()>,
    ) -> io::Result<()> {
        let before = self.interface;
        match change {
            Some(LinkChange::Is(interface)) => self.interface = interface,
            Some(LinkChange::Gone) => {
                (self.interface.link.up, self.interface.link.is_gone) = (false, true);
            }
            None => {}
        }
        let is_anew = self.interface.index != before.index;
        act(self, is_anew)?;
        if is_anew {
            self.before = self.interface.counters;
        }
        Ok(())
    }

    /// Adds an address, with the membership of a packet socket. Returns whether it is new.
    pub(super) fn join(&mut self, socket: &OwnedFd, mac: EtherMac) -> io::Result<bool> {
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
    pub(super) fn leave(&mut self, socket: &OwnedFd, mac: EtherMac) -> io::Result<bool> {
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

    fn membership(&self, socket: &OwnedFd, option: i32, mac: EtherMac) -> io::Result<()> {
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
            self.fill_in(drops, interface.counters);
        }
    }

    /// The same, as it was when this was called before, without waiting for the kernel.
    pub(super) fn count_later(&mut self, drops: &mut Drops) {
        if let Some(Ok(interface)) = self.counting.answer() {
            self.fill_in(drops, interface.counters);
        }
        // Without a thread they are counted the next time.
        let _ = self.counting.ask();
    }

    fn fill_in(&self, drops: &mut Drops, now: LinkCounters) {
        let before = self.before;
        drops.missed = now.missed.saturating_sub(before.missed);
        drops.received = now.received.saturating_sub(before.received);
        drops.transmitted = now.transmitted.saturating_sub(before.transmitted);
        drops.fcs = now.fcs.saturating_sub(before.fcs);
        drops.framing = now.framing.saturating_sub(before.framing);
    }
}

/// The bit of a MAC address, in its first byte, that makes it one of a group.
const GROUP: u8 = 1;

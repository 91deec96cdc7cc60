//! A connection by a device of RDMA: how it is made, and how it is waited for.
//!
//! | step | what ends it |
//! |---|---|
//! | the host's name is resolved by a thread | [`HandleEvent::File`] |
//! | one address after the other is asked, without waiting | [`HandleEvent::Ready`], or the deadline |
//! | the session works | its end |
//!
//! [`HandleEvent::File`]: block::volume::HandleEvent::File
//! [`HandleEvent::Ready`]: block::volume::HandleEvent::Ready

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::vec;

use ::io::rdma::{RdmaConnected, RdmaConnector, RdmaLibrary};
use ::io::ring::{BlockingLane, FileOp};
use block::volume::Context;
use scsi::medium::Now;

use super::{InitiatorConnection, SocketState};
use crate::remote::RemoteError;
use crate::remote::link::{DeviceLinkEnd, LinkEnd, LinkEvent};
use crate::remote::provider::IserOptions;
use crate::remote::session::{ClientSession, connect_options};

/// A host whose name is resolved.
pub(super) struct ResolvedHost {
    library: Arc<RdmaLibrary>,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
}

/// A host that is asked for a connection.
pub(super) struct DeviceAttempt {
    library: Arc<RdmaLibrary>,
    connector: RdmaConnector,
    /// The address that is asked, and those that are asked after it.
    address: SocketAddr,
    rest: vec::IntoIter<SocketAddr>,
    /// When it is given up.
    pub(super) until: Now,
}

/// A session over a device.
pub(super) struct DeviceConnection {
    pub(super) session: ClientSession,
    /// The ring tells of the next completion.
    pub(super) is_watched: bool,
    /// Something has come that was not looked at.
    pub(super) has_more: bool,
}

impl InitiatorConnection {
    /// Begins to connect by a device, or to tell why that cannot be; `false` if it is not wanted,
    /// or there is none and software will do.
    pub(super) fn connect_by_device(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(iser) = self.iser.as_ref().filter(|iser| iser.tries_device()) else {
            return false;
        };
        let is_needed = iser.needs_device();
        match (self.outside.rdma)(is_needed) {
            Ok(library) => self.resolve(cx, library),
            Err(cause) if is_needed => self.tell_no_device(cx, None, cause),
            Err(cause) => {
                tracing::debug!("{}: iSER by software iWARP: {cause}", self.name);
                return false;
            }
        }
        true
    }

    fn resolve(&mut self, cx: &mut Context<'_>, library: Arc<RdmaLibrary>) {
        let addresses = Arc::<Mutex<Vec<_>>>::default();
        let (place, host, port) = (Arc::clone(&addresses), self.host.clone(), self.port);
        let resolve = self.outside.resolve;
        let call = move || {
            let found = resolve(&host, port)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = found;
            Ok(0)
        };
        self.state = SocketState::Resolving(ResolvedHost { library, addresses });
        let op = FileOp::Apart {
            lane: BlockingLane::Connect,
            call: Box::new(call),
        };
        cx.file(self.node, self.generation, op);
    }

    /// The thread has resolved the name.
    pub(super) fn resolved(
        &mut self,
        cx: &mut Context<'_>,
        result: io::Result<u64>,
    ) -> Result<(), RemoteError> {
        let SocketState::Resolving(host) = std::mem::replace(&mut self.state, SocketState::Down)
        else {
            return Ok(());
        };
        result.map_err(|cause| self.not_connected(cause))?;
        let mut addresses = host
            .addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let addresses = std::mem::take(&mut *addresses).into_iter();
        let until = cx.now.saturating_add(self.device_patience());
        let nowhere = "the name has no IP address".to_owned();
        self.ask(cx, &host.library, addresses, (until, nowhere));
        Ok(())
    }

    fn device_patience(&self) -> Now {
        let iser = self.iser.as_ref();
        iser.map_or(Now::ZERO, IserOptions::patience)
    }

    /// Asks the next address; where there is none that can be asked, `cause` is why.
    fn ask(
        &mut self,
        cx: &mut Context<'_>,
        library: &Arc<RdmaLibrary>,
        mut addresses: vec::IntoIter<SocketAddr>,
        (until, mut cause): (Now, String),
    ) {
        let device = self.iser.as_ref().and_then(IserOptions::device);
        while let Some(address) = addresses.next().filter(|_| until > cx.now) {
            let options = connect_options(device.clone(), until - cx.now);
            match RdmaConnector::start(library, address, options) {
                Err(error) => cause = error.to_string(),
                Ok(connector) => {
                    // An earlier one may be watched still.
                    self.generation = self.generation.wrapping_add(1);
                    self.state = SocketState::Asking(Box::new(DeviceAttempt {
                        library: Arc::clone(library),
                        connector,
                        address,
                        rest: addresses,
                        until,
                    }));
                    return self.asked(cx);
                }
            }
        }
        self.no_device(cx, None, cause);
    }

    /// The connection manager may have told something.
    pub(super) fn asked(&mut self, cx: &mut Context<'_>) {
        let SocketState::Asking(attempt) = &mut self.state else {
            return;
        };
        match attempt.connector.poll() {
            Some(Ok(connected)) => self.device_connected(cx, connected),
            Some(Err(error)) => self.ask_next(cx, error.to_string()),
            None => {
                let descriptor = attempt.connector.descriptor();
                let watched = cx.watch(self.node, self.generation, descriptor);
                if let Err(cause) = watched {
                    self.ask_next(cx, format!("cannot wait for the device: {cause}"));
                }
            }
        }
    }

    /// Gives the address up that does not answer in time.
    pub(super) fn check_answer(&mut self, cx: &mut Context<'_>) {
        if let SocketState::Asking(attempt) = &self.state
            && attempt.until <= cx.now
        {
            let (address, limit) = (attempt.address, self.device_patience());
            let cause = format!(
                "{address} does not answer by RDMA within {} s; check that it is up and listens \
                 for RDMA",
                limit.as_secs()
            );
            self.ask_next(cx, cause);
        }
    }

    /// An address was asked in vain.
    fn ask_next(&mut self, cx: &mut Context<'_>, cause: String) {
        let SocketState::Asking(attempt) = std::mem::replace(&mut self.state, SocketState::Down)
        else {
            return;
        };
        if attempt.rest.as_slice().is_empty() {
            let device = attempt.connector.device().map(str::to_owned);
            return self.no_device(cx, device, cause);
        }
        // Where only a device will do, each address has its time.
        let is_needed = self.iser.as_ref().is_some_and(IserOptions::needs_device);
        let until = if is_needed {
            cx.now.saturating_add(self.device_patience())
        } else {
            attempt.until
        };
        self.ask(cx, &attempt.library, attempt.rest, (until, cause));
    }

    /// No address answers by a device.
    fn no_device(&mut self, cx: &mut Context<'_>, device: Option<String>, cause: String) {
        match self.iser.as_ref().filter(|iser| !iser.needs_device()) {
            None => self.tell_no_device(cx, device, cause),
            Some(iser) => {
                iser.device_failed(&self.name, &cause);
                self.connect_socket(cx);
            }
        }
    }

    fn tell_no_device(&mut self, cx: &mut Context<'_>, device: Option<String>, cause: String) {
        self.state = SocketState::Down;
        self.go_to(self.home.clone());
        let cause = self.with_portal(io::Error::other(cause)).to_string();
        let end = LinkEnd::Device(DeviceLinkEnd::NotConnected { device, cause });
        let wait = Duration::ZERO;
        self.heard.push_back(LinkEvent::Ended { end, wait });
        cx.call_at(cx.now);
    }

    fn device_connected(&mut self, cx: &mut Context<'_>, connected: RdmaConnected) {
        self.state = SocketState::Down;
        if let Some(iser) = &self.iser {
            iser.device_found(&self.name, &connected.pair.domain().device().name);
        }
        let mut random = [0; 37];
        let session = (self.outside.random)(&mut random).and_then(|()| {
            ClientSession::over_device(&self.config, cx.now, random, connected)
                .map_err(|cause| io::Error::other(cause.to_string()))
        });
        match session {
            Err(cause) => self.tell_no_device(cx, None, cause.to_string()),
            Ok(session) => {
                self.state = SocketState::Device(Box::new(DeviceConnection {
                    session,
                    is_watched: false,
                    has_more: false,
                }));
            }
        }
    }

    /// Looks for what the device has done.
    pub(super) fn look(&mut self) {
        if let SocketState::Device(device) = &mut self.state
            && let Some(session) = device.session.device()
        {
            device.has_more = false;
            session.look();
        }
    }

    /// The descriptor of the queue pair is readable.
    pub(super) fn wake(&mut self) {
        if let SocketState::Device(device) = &mut self.state
            && let Some(session) = device.session.device()
        {
            device.is_watched = false;
            session.wake();
        }
    }

    /// Has everything sent in one chain, and the queue pair armed.
    pub(super) fn push_device(&mut self, cx: &mut Context<'_>) {
        let SocketState::Device(device) = &mut self.state else {
            return;
        };
        let Some(session) = device.session.device() else {
            return;
        };
        session.transmit();
        if device.is_watched {
            return;
        }
        if !session.arm() {
            device.has_more = true;
            return cx.call_at(cx.now);
        }
        let descriptor = session.descriptor();
        match cx.watch(self.node, self.generation, &descriptor) {
            Ok(()) => device.is_watched = true,
            // Nothing would be heard any more.
            Err(_) => {
                device.session.lost();
                cx.call_at(cx.now);
            }
        }
    }
}

//! Connections that RDMA devices take at portals, on core 0: their logins are like those of TCP,
//! and have their places among them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::io::rdma::{
    RdmaDeviceEvent, RdmaDeviceEvents, RdmaDomain, RdmaError, RdmaListener, RdmaRequest,
};
use ::io::ring::Ring;
use iscsi::login::Login;
use iscsi::target::Endpoints;
use scsi::medium::Now;

use super::Core;
use super::connection::ConnectionPhase;
use super::control_core::Vanished;
use super::rdma_carrier;
use super::rdma_pairs::{CoreRdma, DEVICE};
use super::transport::CoreLogin;
use crate::mailbox::Mailer;

/// How often it is worth a line that a connection is refused for want of memory.
const REFUSED_EVERY: Duration = Duration::from_secs(60);

/// Connections that are taken at a time: each makes a queue pair, which takes a device its time.
const TAKEN_MAX: usize = 16;

impl CoreRdma {
    /// Has the log tell what becomes of a device, from its first connection on; returns whether
    /// this is its first connection.
    fn follow(&mut self, domain: &Arc<RdmaDomain>) -> bool {
        let is_known = |one: &RdmaDeviceEvents| Arc::ptr_eq(one.domain(), domain);
        if self.devices.iter().any(is_known) {
            return false;
        }
        let followed = RdmaDeviceEvents::new(domain).and_then(|events| {
            self.watch()?.add_events(&events, DEVICE)?;
            Ok(events)
        });
        match followed {
            Ok(events) => self.devices.push(events),
            Err(cause) => {
                let device = &domain.device().name;
                tracing::debug!("cannot hear what becomes of {device}: {cause}; see ulimit -n");
            }
        }
        true
    }

    /// Tells what has become of devices; those that have gone are let go.
    pub(super) fn tell_of_devices(&mut self) {
        self.devices.retain_mut(|events| {
            let mut is_there = true;
            while let Some(event) = events.poll() {
                let device = &events.domain().device().name;
                match event {
                    RdmaDeviceEvent::PortUp => tracing::info!("RDMA device {device}: {event}"),
                    RdmaDeviceEvent::PortDown | RdmaDeviceEvent::Broken => {
                        tracing::warn!("RDMA device {device}: {event}");
                    }
                    // Peers can cause these, and their connections tell.
                    _ => tracing::debug!("RDMA device {device}: {event}"),
                }
                is_there &= event != RdmaDeviceEvent::Broken;
            }
            is_there
        });
    }
}

impl<R: Ring, P: Mailer> Core<R, P> {
    /// Listens at these portals by devices from now on, and no more at others.
    pub(super) fn listen_by_devices(&mut self, open: Vec<(u32, RdmaListener)>, close: &[u32]) {
        let listeners = &mut self.rdma.listeners;
        listeners.retain(|(number, _)| !close.contains(number));
        for (number, listener) in open {
            self.add_rdma_listener(number, listener);
        }
    }

    /// Peers ask for connections at a portal.
    pub(super) fn rdma_requests(&mut self, now: Now, number: u32) {
        for _ in 0..TAKEN_MAX {
            let mut listeners = self.rdma.listeners.iter_mut();
            let found = listeners.find(|one| one.0 == number);
            match found.and_then(|(_, listener)| listener.poll()) {
                Some(Ok(request)) => self.asked_by_device(now, request),
                Some(Err(error)) => {
                    tracing::error!("{error}; it is tried again until it is back");
                    self.rdma.listeners.retain(|one| one.0 != number);
                    return self.tell_device_vanished(number);
                }
                None => return,
            }
        }
    }

    /// No device listens on a portal any more: it is tried again.
    pub(super) fn tell_device_vanished(&mut self, number: u32) {
        if let Some(control) = &mut self.control {
            (control.vanished)(Vanished::RdmaDevice(number));
        }
    }

    /// A peer asks for a connection, which is refused as the request is dropped.
    fn asked_by_device(&mut self, now: Now, request: RdmaRequest) {
        let (peer, local) = (request.peer(), request.local());
        if self.stop.is_stopping() || !self.has_room_by_device(now, peer.ip()) {
            return;
        }
        let Some(control) = &mut self.control else {
            return;
        };
        let config = control.config.clone();
        let pair = match rdma_carrier::accept(request, &self.rdma.memory, &config.limits) {
            Ok(pair) => pair,
            Err(error @ RdmaError::NoLockedMemory { .. }) => {
                return self.tell_of_refusal(now, peer, &error);
            }
            // The peer may have given up, or have asked for what cannot be.
            Err(error) => return tracing::debug!("{peer}: no session over iSER: {error}"),
        };
        if self.rdma.follow(pair.as_pair().domain()) {
            (control.device_came)();
        }
        let endpoints = Endpoints { local, peer };
        let login = Login::new(now, config, endpoints, (control.random)());
        let login = CoreLogin::over_device(login, pair);
        let phase = ConnectionPhase::Login(Box::new(login));
        let key = self.connections.insert(peer.ip(), None, phase);
        control.device_logins.insert(peer.ip(), key);
        self.add_pair(key);
        self.arm(now, key);
    }

    /// There is no memory or no queue for a connection; the log says so once a minute.
    pub(super) fn tell_of_refusal(&mut self, now: Now, peer: SocketAddr, error: &RdmaError) {
        let told = &mut self.rdma.told_refusal;
        if told.is_none_or(|last| now - last >= REFUSED_EVERY) {
            *told = Some(now);
            tracing::error!("{peer}: no session over iSER: {error}");
        }
    }
}

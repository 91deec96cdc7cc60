//! Making a connection: the way to the peer, then the peer. It never blocks.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockAddr;

use super::RdmaError;
use super::channel::{AllOf, CmEvent, CmId, EventChannel};
use super::domain::RdmaDomain;
use super::library::RdmaLibrary;
use super::listener::parameters;
use super::memory::RdmaMemory;
use super::pair::{RdmaPair, RdmaPairOptions};
use super::sys::cm::event;

/// How a connection is to be.
#[derive(Clone, Debug)]
pub struct RdmaConnectOptions {
    /// Sizes of messages and queues.
    pub pair: RdmaPairOptions,
    /// What the peer is to be told, at most 56 bytes.
    pub private_data: Vec<u8>,
    /// The device that is to be on the way; `None` for any.
    pub device: Option<String>,
    /// How long the way may be looked for, and then the route, each.
    pub limit: Duration,
    /// Memory that the peer may reach, at the most, in bytes.
    pub memory: usize,
}

/// A connection that was made.
#[derive(Debug)]
pub struct RdmaConnected {
    /// The pair, on the core that made it.
    pub pair: RdmaPair,
    /// What the peer sent along, filled up with zeros.
    pub private_data: Vec<u8>,
}

/// A connection while it is made. Dropped, it is given up.
pub struct RdmaConnector {
    state: ConnectorState,
    peer: SocketAddr,
    options: RdmaConnectOptions,
    /// The device on the way, once that is known.
    device: Option<String>,
    channel: Arc<EventChannel>,
    fd: AllOf,
}

/// How far it is.
enum ConnectorState {
    /// A device that leads there is looked for.
    Address(CmId),
    /// The route is looked for, or the peer's answer waited for; with (ORD, IRD) as asked for.
    Made(RdmaPair, (u8, u8)),
    /// It is over.
    Over,
}

impl RdmaConnector {
    /// Begins to connect.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoDevice`], [`RdmaError::Connect`].
    pub fn start(
        library: &Arc<RdmaLibrary>,
        peer: SocketAddr,
        options: RdmaConnectOptions,
    ) -> Result<Self, RdmaError> {
        library.devices()?;
        let channel = EventChannel::new(library)?;
        let fd = AllOf::new(library, &[channel.as_fd()]).map_err(|cause| RdmaError::Call {
            call: "epoll_ctl",
            device: String::new(),
            cause,
        })?;
        let id = CmId::new(&channel)?;
        let (socket, limit) = (SockAddr::from(peer), milliseconds(options.limit));
        let to = socket.as_ptr().cast_mut().cast();
        let resolve = library.cm.resolve_addr;
        // SAFETY: our identifier, any source, and an address that lives for the call.
        if unsafe { resolve(id.as_ptr(), std::ptr::null_mut(), to, limit) } != 0 {
            return Err(refused(peer));
        }
        Ok(Self {
            state: ConnectorState::Address(id),
            peer,
            options,
            device: None,
            channel,
            fd,
        })
    }

    /// Readable when there is something to poll, and for ever once this is dropped.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        self.fd.descriptor()
    }

    /// The device on the way, once that is known.
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Goes on; tells when the connection is made, or why it cannot be. Nothing follows that.
    pub fn poll(&mut self) -> Option<Result<RdmaConnected, RdmaError>> {
        loop {
            if matches!(self.state, ConnectorState::Over) {
                return None;
            }
            let event = self.channel.next()?;
            match self.step(event) {
                Ok(None) => {}
                Ok(Some(connected)) => return Some(Ok(connected)),
                Err(error) => {
                    self.state = ConnectorState::Over;
                    return Some(Err(error));
                }
            }
        }
    }

    fn step(&mut self, event: CmEvent) -> Result<Option<RdmaConnected>, RdmaError> {
        if let Some(error) = RdmaError::of_event(self.peer, event.kind, event.status) {
            return Err(error);
        }
        match (
            event.kind,
            std::mem::replace(&mut self.state, ConnectorState::Over),
        ) {
            (event::ADDR_RESOLVED, ConnectorState::Address(id)) => {
                self.state = self.found_device(id)?;
            }
            (event::ROUTE_RESOLVED, ConnectorState::Made(mut pair, reads)) => {
                let connect = pair.library().cm.connect;
                let parameters = parameters(&self.options.private_data, reads);
                pair.start(connect, "rdma_connect", parameters)?;
                self.state = ConnectorState::Made(pair, reads);
            }
            (event::ESTABLISHED, ConnectorState::Made(pair, reads)) => {
                return Ok(Some(connected(pair, reads, event)));
            }
            (_, state) => self.state = state,
        }
        Ok(None)
    }

    /// Makes the pair, and looks for the route.
    fn found_device(&mut self, id: CmId) -> Result<ConnectorState, RdmaError> {
        let domain = RdmaDomain::new(id.library(), id.context())?;
        let found = &domain.device().name;
        self.device = Some(found.clone());
        if let Some(wanted) = self
            .options
            .device
            .as_ref()
            .filter(|wanted| *wanted != found)
        {
            return Err(RdmaError::OtherDevice {
                peer: self.peer,
                wanted: wanted.clone(),
                found: found.clone(),
            });
        }
        let device = domain.limits();
        let reads = (device.ord, device.ird);
        let memory = RdmaMemory::of_session();
        let mut pair = RdmaPair::new(id, &domain, &memory, &self.options.pair, reads)?;
        pair.add_staging(self.options.memory);
        let (resolve, limit) = (
            pair.library().cm.resolve_route,
            milliseconds(self.options.limit),
        );
        // SAFETY: an identifier that is bound to a device.
        if unsafe { resolve(pair.id().as_ptr(), limit) } != 0 {
            return Err(refused(self.peer));
        }
        Ok(ConnectorState::Made(pair, reads))
    }
}

impl std::fmt::Debug for RdmaConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaConnector(to {})", self.peer)
    }
}

/// The peer has taken the connection, with no more reads than were asked for.
fn connected(mut pair: RdmaPair, (ord, ird): (u8, u8), event: CmEvent) -> RdmaConnected {
    pair.set_reads(ord.min(event.ord), ird.min(event.ird));
    RdmaConnected {
        pair,
        private_data: event.private_data,
    }
}

/// A call that looks for the way failed at once.
fn refused(peer: SocketAddr) -> RdmaError {
    let number = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let way = RdmaError::of_event(peer, event::ADDR_ERROR, -number);
    way.unwrap_or(RdmaError::NoDevice)
}

fn milliseconds(limit: Duration) -> i32 {
    i32::try_from(limit.as_millis()).unwrap_or(i32::MAX)
}

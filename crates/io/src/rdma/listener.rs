//! Listening for connections by devices, and taking them.
//!
//! Only devices of InfiniBand and RoCE are listened on: ports of an iWARP device are ports of TCP,
//! where software iWARP answers already.

use std::ffi::c_void;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use socket2::SockAddr;

use super::addresses;
use super::channel::{AllOf, CmEvent, CmId, EventChannel};
use super::library::{RdmaLibrary, RdmaTransport, device_info};
use super::memory::RdmaMemory;
use super::pair::{RdmaPair, RdmaPairOptions};
use super::sys::cm::{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, RdmaConnParam, event};
use super::{RdmaDomain, RdmaError};
use crate::tcp;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 1024;

/// Retries of what the peer's device does not acknowledge: as often as can be.
pub(super) const RETRIES: u8 = 7;

/// Retries where the peer has no receive: 7 is for ever. A peer that posts its receives a little
/// late must not lose its connection; one that never does is found by pings.
pub(super) const RNR_RETRIES: u8 = 7;

/// A portal on devices.
pub struct RdmaListener {
    /// What listens: one for all addresses, or one an address.
    ids: Vec<CmId>,
    portal: SocketAddr,
    channel: Arc<EventChannel>,
    fd: AllOf,
}

impl RdmaListener {
    /// Listens on a portal. An unspecified address is that of all devices but those of iWARP; if
    /// there is one of these, addresses that the others get later are not listened on. Port 0 is
    /// any free one. An IPv6 address is for IPv6 alone.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoDevice`], [`RdmaError::IwarpDevice`], [`RdmaError::Listen`].
    pub fn listen(library: &Arc<RdmaLibrary>, portal: SocketAddr) -> Result<Self, RdmaError> {
        let devices = library.devices()?;
        let has = |transport| devices.iter().any(|device| device.transport == transport);
        if !has(RdmaTransport::InfiniBand) {
            return Err(RdmaError::NoDevice);
        }
        let channel = EventChannel::new(library)?;
        let fd = AllOf::new(library, &[channel.as_fd()]);
        let fd = fd.map_err(|cause| failed(portal, cause))?;
        let mut listener = Self {
            ids: Vec::new(),
            portal,
            channel,
            fd,
        };
        if portal.ip().is_unspecified() && has(RdmaTransport::Iwarp) {
            listener.listen_apart()?;
        } else {
            let id = listener.bound(portal)?;
            listener.start(id)?;
        }
        Ok(listener)
    }

    /// Listens on each address that a device of another kind than iWARP has.
    fn listen_apart(&mut self) -> Result<(), RdmaError> {
        let is_v4 = self.portal.is_ipv4();
        let of_family = |ip: &IpAddr| ip.is_ipv4() == is_v4;
        let found = addresses::local().map_err(|cause| failed(self.portal, cause))?;
        for ip in found.into_iter().filter(of_family) {
            // Most addresses are of no device.
            match self.bound(SocketAddr::new(ip, self.portal.port())) {
                Ok(id) => self.start(id)?,
                Err(RdmaError::Listen { cause, .. }) if is_taken(&cause) => {
                    return Err(failed(self.portal, cause));
                }
                Err(_) => {}
            }
        }
        if self.ids.is_empty() {
            return Err(RdmaError::NoDevice);
        }
        Ok(())
    }

    /// An identifier bound to an address, which is of no iWARP device.
    fn bound(&self, address: SocketAddr) -> Result<CmId, RdmaError> {
        let id = CmId::new(&self.channel)?;
        let cm = &id.library().cm;
        if address.is_ipv6() {
            let mut only: i32 = 1;
            let (level, name, value) = (RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &raw mut only);
            let len = size_of::<i32>();
            // SAFETY: our identifier, and a number of that length.
            unsafe { (cm.set_option)(id.as_ptr(), level, name, value.cast::<c_void>(), len) };
        }
        let socket = SockAddr::from(address);
        // SAFETY: our identifier, and an address that lives for the call, which copies it.
        if unsafe { (cm.bind_addr)(id.as_ptr(), socket.as_ptr().cast_mut().cast()) } != 0 {
            return Err(failed(address, io::Error::last_os_error()));
        }
        let context = id.context();
        if !context.is_null() {
            // SAFETY: an open context has a device.
            let device = device_info(unsafe { (*context).device });
            if device.transport == RdmaTransport::Iwarp {
                let device = device.name;
                return Err(RdmaError::IwarpDevice { address, device });
            }
        }
        Ok(id)
    }

    fn start(&mut self, id: CmId) -> Result<(), RdmaError> {
        // SAFETY: our identifier, which is bound.
        if unsafe { (id.library().cm.listen)(id.as_ptr(), BACKLOG) } != 0 {
            return Err(failed(self.portal, io::Error::last_os_error()));
        }
        // The next addresses get the port that the first one got.
        self.portal.set_port(id.local().port());
        self.ids.push(id);
        Ok(())
    }

    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn portal(&self) -> SocketAddr {
        self.portal
    }

    /// Readable when there is something to poll.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        self.fd.descriptor()
    }

    /// The next connection that is asked for. What has an error is over: a device was taken away.
    pub fn poll(&mut self) -> Option<Result<RdmaRequest, RdmaError>> {
        loop {
            let event = self.channel.next()?;
            match event.kind {
                event::CONNECT_REQUEST => return Some(Ok(self.request(event))),
                event::DEVICE_REMOVAL => {
                    self.ids.retain(|id| id.as_ptr() != event.id);
                    let problem = "the RDMA device was taken away";
                    let cause = io::Error::new(io::ErrorKind::NotConnected, problem);
                    return Some(Err(failed(self.portal, cause)));
                }
                // A peer that has given up: taking it will fail.
                _ => {}
            }
        }
    }

    fn request(&self, event: CmEvent) -> RdmaRequest {
        RdmaRequest {
            id: CmId::asked(event.id, &self.channel),
            private_data: event.private_data,
            ord: event.ord,
            ird: event.ird,
        }
    }
}

impl std::fmt::Debug for RdmaListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RdmaListener({})", self.portal)
    }
}

fn is_taken(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::AddrInUse
}

/// Why a portal cannot be listened on.
fn failed(address: SocketAddr, cause: io::Error) -> RdmaError {
    let hint = match cause.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            let taken = tcp::port_taken("RDMA target", "rdma resource show cm_id");
            format!(": {taken}")
        }
        Some(libc::ENODEV | libc::EADDRNOTAVAIL) => {
            ": no RDMA device has this address (see: rdma link, ip address), or another \
             RDMA target has the port at all addresses"
                .to_owned()
        }
        _ => String::new(),
    };
    RdmaError::Listen {
        address,
        cause,
        hint,
    }
}

/// A connection that a peer asks for. It may be taken on any core; dropped, it is refused.
#[derive(Debug)]
pub struct RdmaRequest {
    id: CmId,
    private_data: Vec<u8>,
    ord: u8,
    ird: u8,
}

impl RdmaRequest {
    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.id.peer()
    }

    /// The address that it came to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.id.local()
    }

    /// What the peer sent along; filled up with zeros by InfiniBand and RoCE, whose requests are of
    /// one length. Empty if it sent nothing but zeros.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        let is_empty = self.private_data.iter().all(|byte| *byte == 0);
        if is_empty { &[] } else { &self.private_data }
    }

    /// Takes the connection, on the core that the memory is of. Reads of ours are at most as many
    /// as the peer bears and as the device can, and 32.
    ///
    /// # Errors
    ///
    /// No memory, or the peer has given up.
    pub fn accept(
        mut self,
        memory: &RdmaMemory,
        options: &RdmaPairOptions,
        private_data: &[u8],
    ) -> Result<RdmaPair, RdmaError> {
        let domain = self.domain()?;
        let device = domain.limits();
        let reads = (self.ord.min(device.ord), self.ird.min(device.ird));
        let channel = EventChannel::new(self.id.library())?;
        self.id.migrate(&channel)?;
        // If something fails, the peer is refused as the identifier goes.
        let mut pair = RdmaPair::new(self.id, &domain, memory, options, reads)?;
        let accept = pair.library().cm.accept;
        pair.start(accept, "rdma_accept", parameters(private_data, reads))?;
        Ok(pair)
    }

    /// The device that it came by.
    ///
    /// # Errors
    ///
    /// Of a device that cannot be used any more.
    pub fn domain(&self) -> Result<Arc<RdmaDomain>, RdmaError> {
        match self.id.context() {
            context if context.is_null() => Err(RdmaError::NoDevice),
            context => self.id.library().shared_domain(context),
        }
    }
}

/// What a connection is asked for, or taken, with: (ORD, IRD). The data is to live for the call.
pub(super) fn parameters(private_data: &[u8], (ord, ird): (u8, u8)) -> RdmaConnParam {
    RdmaConnParam {
        private_data: match private_data {
            [] => std::ptr::null(),
            _ => private_data.as_ptr().cast(),
        },
        private_data_len: u8::try_from(private_data.len()).unwrap_or(u8::MAX),
        responder_resources: ird,
        initiator_depth: ord,
        flow_control: 1,
        retry_count: RETRIES,
        rnr_retry_count: RNR_RETRIES,
        srq: 0,
        qp_num: 0,
    }
}

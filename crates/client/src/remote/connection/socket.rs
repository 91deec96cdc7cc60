//! A connection of TCP: how it is made.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::io::ring::{BlockingLane, FileOp};
use block::volume::Context;

use super::{InitiatorConnection, SocketState};
use crate::remote::RemoteError;
use crate::remote::session::{ClientSession, IwarpConnection};

/// Where a thread leaves the socket.
pub(super) type ConnectedSocket = Arc<Mutex<Option<OwnedFd>>>;

/// How long connecting may take for each address.
const CONNECT: Duration = Duration::from_secs(5);

impl InitiatorConnection {
    /// Begins to connect by TCP: a thread does it.
    pub(super) fn connect_socket(&mut self, cx: &mut Context<'_>) {
        self.generation = self.generation.wrapping_add(1);
        let socket = ConnectedSocket::default();
        let (place, host, port) = (Arc::clone(&socket), self.host.clone(), self.port);
        let connect = self.outside.connect;
        let connect = move || {
            let socket = connect(&host, port, CONNECT)?;
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket);
            Ok(0)
        };
        self.state = SocketState::Connecting(socket);
        let op = FileOp::Apart {
            lane: BlockingLane::Connect,
            call: Box::new(connect),
        };
        cx.file(self.node, self.generation, op);
    }

    /// No connection was made: the next one is tried at home.
    pub(super) fn not_connected(&mut self, cause: io::Error) -> RemoteError {
        let cause = self.with_portal(cause);
        self.go_to(self.home.clone());
        RemoteError::Connect(cause)
    }

    /// A thread has connected, or could not.
    pub(super) fn connected(
        &mut self,
        cx: &mut Context<'_>,
        socket: &ConnectedSocket,
        result: io::Result<u64>,
    ) -> io::Result<()> {
        self.state = SocketState::Down;
        result?;
        let socket = socket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let socket = socket.ok_or(io::ErrorKind::NotConnected)?;
        let random = self.outside.random;
        let iser = self.iser.as_ref();
        let iser = iser.map(|options| IwarpConnection::new(options.crc, &socket, random));
        let (iser, socket) = (iser.transpose()?, cx.ring.adopt(socket)?);
        let mut bytes = [0; 37];
        random(&mut bytes)?;
        let session = ClientSession::new(Arc::clone(&self.config), cx.now, bytes, iser);
        let session = session.inspect_err(|_| cx.ring.close(socket));
        let session = session.map_err(|cause| io::Error::other(cause.to_string()))?;
        self.state = SocketState::up(socket, session);
        Ok(())
    }
}

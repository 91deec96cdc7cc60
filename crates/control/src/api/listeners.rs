//! TCP listeners of the API. They follow the tree: what can fail is done before a change counts,
//! and then they open and close without a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use runtime::files::read_regular;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use super::caller::Peer;
use super::connections::{self, Impatient, Room, UNREAD_TIME};
use super::socket::PAUSE;
use crate::serving::Places;
use crate::tree::{ApiRow, TlsRow};

/// Connections that wait to be taken; more than are served at once.
const BACKLOG: u32 = 128;

/// The longest file of a certificate chain or a key.
const PEM_BYTES: u64 = 1 << 20;

/// How long a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The TCP listeners of an API.
pub struct ApiListeners {
    /// Where they run.
    runtime: Handle,
    state: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    /// What connections are served with; none before the start and after the end.
    router: Option<Router>,
    /// What is listened to, and how connections are served now.
    open: BTreeMap<SocketAddr, watch::Sender<Option<Tls>>>,
}

/// A certificate and its key, ready for use.
type Tls = Arc<ServerConfig>;

/// Listeners of a tree that is not served yet.
#[derive(Default)]
pub struct PreparedListeners {
    wanted: BTreeSet<SocketAddr>,
    new: Vec<(SocketAddr, TcpListener)>,
    tls: Option<Tls>,
}

impl ApiListeners {
    /// None yet.
    pub(crate) fn new(runtime: Handle) -> Self {
        Self {
            runtime,
            state: Mutex::default(),
        }
    }

    /// Does all that can fail: binds what is new, and reads certificate and key.
    ///
    /// # Errors
    ///
    /// What cannot be had, with its place; nothing has changed.
    pub(crate) fn prepare(
        &self,
        row: &ApiRow,
        places: &Places,
    ) -> Result<PreparedListeners, String> {
        let tls = row.tls.as_ref().map(|row| tls(row, places)).transpose()?;
        let mut prepared = PreparedListeners {
            tls,
            ..PreparedListeners::default()
        };
        let open: BTreeSet<_> = self.state().open.keys().copied().collect();
        let wanted: BTreeSet<SocketAddr> = row.listen.iter().flat_map(|one| one.parse()).collect();
        let closing: Vec<_> = open.difference(&wanted).copied().collect();
        for written in &row.listen {
            let cannot = |cause: &dyn std::fmt::Display| {
                format!("api.listen: cannot listen on {written}: {cause}")
            };
            let address = written.parse().map_err(|cause| cannot(&cause))?;
            if prepared.wanted.insert(address) && !open.contains(&address) {
                let listener = self.bind(address, &closing);
                let listener = listener.map_err(|cause| cannot(&cause))?;
                prepared.new.push((address, listener));
            }
        }
        Ok(prepared)
    }

    /// Opens what is new, closes what has gone, and takes the new certificate.
    pub(crate) fn switch(&self, prepared: PreparedListeners) {
        let mut state = self.state();
        let Some(router) = state.router.clone() else {
            return;
        };
        state
            .open
            .retain(|address, _| prepared.wanted.contains(address));
        for how in state.open.values() {
            how.send_replace(prepared.tls.clone());
        }
        for (address, listener) in prepared.new {
            let (how, served) = watch::channel(prepared.tls.clone());
            state.open.insert(address, how);
            self.runtime.spawn(accept(listener, router.clone(), served));
        }
    }

    /// Begins to serve.
    pub(crate) fn start(&self, router: Router, prepared: PreparedListeners) {
        self.state().router = Some(router);
        self.switch(prepared);
    }

    /// Closes all of them, for good.
    pub(crate) fn close(&self) {
        *self.state() = Listening::default();
    }

    /// Listens beside a listener of ours that is to be closed: that of a wildcard can give way to
    /// that of an address, or the other way round, while both are there. So all of them share
    /// their ports, once it is sure that no other process has them.
    fn bind(&self, address: SocketAddr, closing: &[SocketAddr]) -> io::Result<TcpListener> {
        let is_ours = || closing.iter().any(|old| old.port() == address.port());
        match TcpListener::bind(address) {
            Err(cause) if cause.kind() != io::ErrorKind::AddrInUse || !is_ours() => {
                return Err(cause);
            }
            probed => drop(probed),
        }
        let _inside = self.runtime.enter();
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)?.into_std()
    }

    fn state(&self) -> MutexGuard<'_, Listening> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes connections until the sender of `how` has gone. Each listener has room of its own, so that
/// a crowd over TCP does not shut out the Unix socket.
async fn accept(listener: TcpListener, router: Router, mut how: watch::Receiver<Option<Tls>>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let room = Room::new();
    let (_open, closed) = watch::channel(());
    loop {
        let arrived = tokio::select! {
            arrived = listener.accept() => arrived,
            changed = how.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok((stream, address)) = arrived else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Some((place, router)) = room.take(router.clone()) else {
            continue;
        };
        let tls = how.borrow().clone();
        let serving = serve(stream, address, tls, router, closed.clone());
        tokio::spawn(async move {
            serving.await;
            drop(place);
        });
    }
}

async fn serve(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<Tls>,
    router: Router,
    closed: watch::Receiver<()>,
) {
    let _ = stream.set_nodelay(true);
    let (io, peer) = (Impatient::new(stream, UNREAD_TIME), Peer::Address(address));
    let Some(tls) = tls else {
        return connections::serve(io, peer, router, closed).await;
    };
    let handshake = TlsAcceptor::from(tls).accept(io);
    // A peer that does not speak TLS is told nothing.
    if let Ok(Ok(io)) = tokio::time::timeout(HANDSHAKE_TIME, handshake).await {
        connections::serve(io, peer, router, closed).await;
    }
}

/// A certificate chain and its key, both in PEM.
fn tls(row: &TlsRow, places: &Places) -> Result<Tls, String> {
    let bad_cert = |cause: &dyn std::fmt::Display| {
        let cert = &row.cert;
        format!("api.tls.cert: cannot use {cert}: {cause}: name a PEM file with the chain")
    };
    let bad_key = |cause: &dyn std::fmt::Display| {
        let key = &row.key;
        format!("api.tls.key: cannot use {key}: {cause}: name a PEM file with the private key")
    };
    let pem = read_regular(Path::new(&row.cert), PEM_BYTES).map_err(|cause| bad_cert(&cause))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let chain = chain.map_err(|cause| bad_cert(&cause))?;
    let path = places.path(&row.key).map_err(|cause| bad_key(&cause))?;
    let pem = read_regular(&path, PEM_BYTES).map_err(|cause| bad_key(&cause))?;
    let pem = Zeroizing::new(pem);
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|cause| bad_key(&cause))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| bad_cert(&cause))?;
    let config = config.with_no_client_auth().with_single_cert(chain, key);
    config.map(Arc::new).map_err(|cause| bad_cert(&cause))
}

//! The Unix socket of the API.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};

use super::caller::{Peer, Role};
use super::connections::{self, CONNECTIONS, Impatient, LAST_REQUESTS, Room, UNREAD_TIME};
use super::users::{LocalPeer, PeerCredentials, Users};

/// How many of those may be there that are only told that they may not.
const STRANGERS: usize = 4;

/// A Unix socket that takes so many connections, and asks the kernel which user each one is of.
pub(crate) struct ApiSocket {
    listener: UnixListener,
    users: Arc<Users>,
    /// Those whose user is being looked up.
    arriving: Arc<Semaphore>,
    room: Arc<Room>,
    strangers: Arc<Semaphore>,
}

/// Serves the API until `stop` is ready. It runs on a thread of its own.
///
/// # Errors
///
/// The socket fails.
pub(crate) async fn serve(
    socket: ApiSocket,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (told, stopped) = watch::channel(());
    tokio::select! {
        () = accept(&socket, &router, stopped) => {}
        () = stop => {}
    }
    let _ = told.send(());
    let _ = tokio::time::timeout(LAST_REQUESTS, told.closed()).await;
    Ok(())
}

/// Takes connections, for as long as it is polled.
async fn accept(socket: &ApiSocket, router: &Router, stopped: watch::Receiver<()>) {
    loop {
        match socket.listener.accept().await {
            Ok((stream, _)) => socket.arrived(stream, router.clone(), stopped.clone()),
            // Out of descriptors: some come back.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

impl ApiSocket {
    fn arrived(&self, stream: UnixStream, router: Router, stopped: watch::Receiver<()>) {
        let Some(peer) = PeerCredentials::of(&stream) else {
            return;
        };
        let Ok(arriving) = Arc::clone(&self.arriving).try_acquire_owned() else {
            return;
        };
        let peer = LocalPeer::new(peer, Arc::clone(&self.users));
        let (room, strangers) = (Arc::clone(&self.room), Arc::clone(&self.strangers));
        tokio::spawn(async move {
            let user = peer.user().await;
            drop(arriving);
            // A user that may not even look takes no place from those that may.
            let taken = if user.role >= Role::View {
                room.take(router)
            } else {
                let place = strangers.try_acquire_owned().ok();
                place.map(|place| (place, router))
            };
            let Some((_place, router)) = taken else {
                return;
            };
            let io = Impatient::new(stream, UNREAD_TIME);
            connections::serve(io, Peer::Local(peer), router, stopped).await;
        });
    }
}

/// How long it waits where the kernel gives no connection.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Listens at a path. A socket that a dead daemon has left gives way; a live one does not.
///
/// # Errors
///
/// Another daemon listens there, or the path cannot be used.
pub(crate) async fn listen(path: &Path) -> Result<ApiSocket, String> {
    let cannot = |cause| format!("cannot listen on {}: {cause}", path.display());
    if UnixStream::connect(path).await.is_ok() {
        return Err(format!(
            "another daemon listens on {}: stop it, or give --socket another path",
            path.display()
        ));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path).map_err(cannot)?,
        Ok(_) => {
            return Err(format!(
                "{} is not a socket: give another path",
                path.display()
            ));
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(cannot)?;
    // Who connects is asked for its name; a group that may use it can be given the file.
    let mode = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(path, mode).map_err(cannot)?;
    Ok(ApiSocket {
        listener,
        users: Arc::default(),
        arriving: Arc::new(Semaphore::new(CONNECTIONS)),
        room: Arc::new(Room::new()),
        strangers: Arc::new(Semaphore::new(STRANGERS)),
    })
}

//! The Unix socket of the API.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::caller::PeerUser;
use super::router;
use crate::plane::Plane;

/// The most connections at once; one more is closed at once.
const CONNECTIONS: usize = 64;

/// How many of those may be there who are only told that they may not.
const STRANGERS: usize = 4;

/// A Unix socket that takes so many connections, and asks the kernel who each one is.
pub(crate) struct ApiSocket {
    listener: UnixListener,
    room: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

/// A connection, and its place among those that there can be.
pub(crate) struct ApiConnection {
    stream: UnixStream,
    _place: OwnedSemaphorePermit,
}

/// Serves the API until `stop` is ready. It runs on a thread of its own.
///
/// # Errors
///
/// The socket fails.
pub(crate) async fn serve(
    socket: ApiSocket,
    plane: Arc<Plane>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = router(plane).into_make_service_with_connect_info::<PeerUser>();
    let (told, stopped) = watch::channel(());
    let graceful = async move { drop(stopped.clone().changed().await) };
    let serving = axum::serve(socket, service).with_graceful_shutdown(graceful);
    let late = async move {
        stop.await;
        drop(told);
        tokio::time::sleep(LAST_REQUESTS).await;
    };
    tokio::select! {
        ended = serving.into_future() => ended,
        () = late => Ok(()),
    }
}

impl Listener for ApiSocket {
    type Io = ApiConnection;
    type Addr = PeerUser;

    async fn accept(&mut self) -> (ApiConnection, PeerUser) {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let user = PeerUser::of(&stream);
                    // Who may not even look takes no place from those who may.
                    let room = if user.may_look() {
                        &self.room
                    } else {
                        &self.strangers
                    };
                    if let Ok(place) = Arc::clone(room).try_acquire_owned() {
                        let connection = ApiConnection {
                            stream,
                            _place: place,
                        };
                        return (connection, user);
                    }
                }
                // Out of descriptors: some come back.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<PeerUser> {
        Ok(PeerUser::default())
    }
}

/// How long requests that are under way have when the daemon stops.
const LAST_REQUESTS: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(100);

impl AsyncRead for ApiConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ApiConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

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
        room: Arc::new(Semaphore::new(CONNECTIONS)),
        strangers: Arc::new(Semaphore::new(STRANGERS)),
    })
}

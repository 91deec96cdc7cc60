//! Connections of the API, whatever they come by: how many there are, and how long a peer that does
//! not read or write is waited for.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::http::header::CONNECTION;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tower::ServiceExt;

use super::Problem;
use super::caller::Peer;

/// The most connections of a listener at once.
pub(super) const CONNECTIONS: usize = 64;

/// Those beside them that are only told that there is no place. One more is closed at once.
const TURNED_AWAY: usize = 16;

/// How long the head of a request may take, and how long a connection may be silent before it.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a peer may leave an answer unread.
pub(super) const UNREAD_TIME: Duration = Duration::from_secs(30);

/// How long the body of a request that is turned away is read.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// How long requests that are under way have when they have to end. Events would never.
pub(super) const LAST_REQUESTS: Duration = Duration::from_secs(2);

/// The places of a listener's connections.
pub(super) struct Room {
    served: Arc<Semaphore>,
    turned_away: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            served: Arc::new(Semaphore::new(CONNECTIONS)),
            turned_away: Arc::new(Semaphore::new(TURNED_AWAY)),
        }
    }

    /// A place, and what answers there: `router`, or that there is no place.
    pub(super) fn take(&self, router: Router) -> Option<(OwnedSemaphorePermit, Router)> {
        if let Ok(place) = Arc::clone(&self.served).try_acquire_owned() {
            return Some((place, router));
        }
        let place = Arc::clone(&self.turned_away).try_acquire_owned().ok()?;
        Some((place, Router::new().fallback(turn_away)))
    }
}

/// A peer that is still sending when the connection is closed may never read why: so all of what it
/// sends is taken.
async fn turn_away(mut body: Body) -> impl IntoResponse {
    let drained = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
    ([(CONNECTION, "close")], Problem::full(CONNECTIONS))
}

/// Serves one connection until its peer leaves, or `stop` is told and the request under way is
/// answered.
pub(super) async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    mut stop: watch::Receiver<()>,
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        answer(router.clone(), request.map(Body::new))
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    // How a connection ends matters to nobody but its peer.
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            drop(tokio::time::timeout(LAST_REQUESTS, connection).await);
        }
    }
}

/// A handler that panics costs its own request alone.
async fn answer(router: Router, request: Request<Body>) -> Result<Response, Infallible> {
    let answered = AssertUnwindSafe(router.oneshot(request)).catch_unwind();
    let failed = |_| Ok(Problem::internal().into_response());
    answered.await.unwrap_or_else(failed)
}

/// A stream that fails when its peer has not read for a while.
pub(super) struct Impatient<I> {
    io: I,
    patience: Duration,
    /// Until when it has to have read, while something waits for it.
    until: Option<Pin<Box<Sleep>>>,
}

impl<I: Unpin> Impatient<I> {
    pub(super) fn new(io: I, patience: Duration) -> Self {
        Self {
            io,
            patience,
            until: None,
        }
    }

    fn watched<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.until = None;
            return polled;
        }
        let until = Instant::now() + self.patience;
        let until = self
            .until
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Impatient<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Impatient<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(context, bytes);
        self.watched(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_flush(context);
        self.watched(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_shutdown(context);
        self.watched(polled, context)
    }
}

#[cfg(test)]
pub(super) mod tests;

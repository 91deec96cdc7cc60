//! Connections of the API, whatever they come by: how many there are, and how long a peer that does
//! not read or write is waited for.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tower::ServiceExt;

use super::Problem;
use super::caller::Peer;

/// The most connections of a listener at once; one more is closed at once.
pub(super) const CONNECTIONS: usize = 64;

/// How long the head of a request may take, and how long a connection may be silent before it.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a peer may leave an answer unread.
pub(super) const UNREAD_TIME: Duration = Duration::from_secs(30);

/// How long requests that are under way have when they have to end. Events would never.
pub(super) const LAST_REQUESTS: Duration = Duration::from_secs(2);

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

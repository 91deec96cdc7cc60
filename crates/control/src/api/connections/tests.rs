//! Peers that do not behave, and handlers that do not.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::{Impatient, serve};
use crate::api::caller::{Peer, Role};
use crate::api::users::User;

/// More than a socket takes.
const MUCH: usize = 32 << 20;

fn router() -> Router {
    Router::new()
        .route(
            "/panic",
            get(async || -> &'static str { panic!("a handler that fails") }),
        )
        .route("/much", get(async || Body::from(vec![b'x'; MUCH])))
        .route("/well", get(async || "well"))
}

fn peer() -> Peer {
    Peer::User(User {
        name: "root".to_owned(),
        role: Role::Admin,
    })
}

/// The other end of a connection that is served, and what ends it.
fn connected(patience: Duration) -> (UnixStream, watch::Sender<()>, tokio::task::JoinHandle<()>) {
    let (own, other) = UnixStream::pair().unwrap();
    let (stop, stopped) = watch::channel(());
    let io = Impatient::new(own, patience);
    let served = tokio::spawn(serve(io, peer(), router(), stopped));
    (other, stop, served)
}

/// Asks for a path; `headers` are lines with their ends.
pub(in crate::api) async fn ask(stream: &mut UnixStream, path: &str, headers: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: lunar\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// What comes until this is in it.
pub(in crate::api) async fn read_until(stream: &mut UnixStream, end: &str) -> String {
    let mut text = String::new();
    while !text.contains(end) {
        let mut buffer = [0; 4096];
        let length = stream.read(&mut buffer).await.unwrap();
        assert!(length > 0, "it has ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    text
}

#[tokio::test]
async fn a_handler_that_panics_costs_one_request() {
    let (mut stream, _stop, _) = connected(Duration::from_secs(30));
    ask(&mut stream, "/panic", "").await;
    let answer = read_until(&mut stream, "goes on").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
    // Not even its connection ends.
    ask(&mut stream, "/well", "").await;
    read_until(&mut stream, "well").await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_dropped() {
    let (mut stream, _stop, served) = connected(Duration::from_millis(100));
    ask(&mut stream, "/much", "").await;
    served.await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() < MUCH);
}

#[tokio::test]
async fn one_that_reads_late_is_not() {
    let (mut stream, _stop, _) = connected(Duration::from_secs(30));
    ask(&mut stream, "/much", "").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut read = 0;
    let mut buffer = vec![0; 1 << 20];
    while read < MUCH {
        read += stream.read(&mut buffer).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_waits_ends_when_the_daemon_stops() {
    let (mut stream, stop, served) = connected(Duration::from_secs(30));
    ask(&mut stream, "/well", "").await;
    read_until(&mut stream, "well").await;
    stop.send(()).unwrap();
    served.await.unwrap();
    assert_eq!(stream.read(&mut [0; 16]).await.unwrap(), 0);
}

//! Users of this machine whose groups change while they are connected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use axum::Router;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::{Rig, wait};
use crate::api::caller::{Peer, Role};
use crate::api::connections::serve;
use crate::api::connections::tests::{ask, read_until};
use crate::api::users::{LocalPeer, PeerCredentials, User, Users};
use crate::api::{ApiState, Tokens, router};

/// Whether it is in the group of those who may look.
static IS_MEMBER: AtomicBool = AtomicBool::new(true);

fn look_up(_: PeerCredentials) -> User {
    let role = if IS_MEMBER.load(SeqCst) {
        Role::View
    } else {
        Role::None
    };
    User {
        name: "somebody".to_owned(),
        role,
    }
}

/// A connection that is served, and what keeps it open.
fn connect(router: &Router, users: &Arc<Users>) -> (UnixStream, watch::Sender<()>) {
    let (own, other) = UnixStream::pair().unwrap();
    let credentials = PeerCredentials::of(&own).unwrap();
    let peer = Peer::Local(LocalPeer::new(credentials, Arc::clone(users)));
    let (stop, stopped) = watch::channel(());
    tokio::spawn(serve(own, peer, router.clone(), stopped));
    (other, stop)
}

/// The status that the next answer has, which ends with its one object.
async fn asked(stream: &mut UnixStream) -> String {
    ask(stream, "/v1/status", "").await;
    let answer = read_until(stream, "}").await;
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_user_that_leaves_its_group_may_nothing_more_on_connections_that_are_open() {
    let rig = Rig::new("version = 1\n");
    let plane = Arc::clone(rig.daemon.as_ref().unwrap().plane());
    let tokens = Tokens::read(rig.path("other.json"), Arc::default());
    let router = router(ApiState::new(plane, tokens.into()));
    let users = Arc::new(Users::looked_up_by(look_up, Duration::from_millis(1)));
    wait(async {
        let (mut asking, _open) = connect(&router, &users);
        let (mut reading, _too) = connect(&router, &users);
        assert_eq!(asked(&mut asking).await, "200");
        let header = "Accept: text/event-stream\r\nConnection: close\r\n";
        ask(&mut reading, "/v1/events", header).await;
        read_until(&mut reading, "event: served").await;
        IS_MEMBER.store(false, SeqCst);
        let until = Instant::now() + Duration::from_secs(20);
        while asked(&mut asking).await != "403" {
            assert!(Instant::now() < until);
        }
        // Events that it was let read before have an end too.
        reading.read_to_end(&mut Vec::new()).await.unwrap();
    });
}

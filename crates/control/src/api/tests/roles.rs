//! Every route by everybody who could ask.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use futures_util::future::join_all;
use tower::ServiceExt;

use super::{Rig, wait};
use crate::api::caller::{Peer, Role};
use crate::api::routes::{self, Route};
use crate::api::tokens::NewToken;
use crate::api::users::User;
use crate::api::{ApiState, ShownToken, Tokens, router};

/// Who asks, and what it may.
struct Asker {
    what: &'static str,
    peer: fn(u8) -> Peer,
    token: Option<String>,
    /// Its role, or none if it is not known at all.
    role: Option<Role>,
}

fn from_afar(number: u8) -> Peer {
    // Each from a network of its own, so that pauses do not add up.
    Peer::Address(([192, 0, 2, number], 40_000).into())
}

fn foreign(_: u8) -> Peer {
    user("stranger", Role::None)
}

fn user(name: &str, role: Role) -> Peer {
    Peer::User(User {
        name: name.to_owned(),
        role,
    })
}

impl Asker {
    fn with_token(what: &'static str, token: Option<String>, role: Option<Role>) -> Self {
        Self {
            what,
            peer: from_afar,
            token,
            role,
        }
    }

    fn user(what: &'static str, peer: fn(u8) -> Peer, role: Role) -> Self {
        Self {
            what,
            peer,
            token: None,
            role: Some(role),
        }
    }

    /// What a route has to say to it; `None`: whatever it says to those who may.
    fn refused(&self, route: &Route) -> Option<StatusCode> {
        match self.role {
            None => Some(StatusCode::UNAUTHORIZED),
            Some(role) if role < route.least => Some(StatusCode::FORBIDDEN),
            Some(_) => None,
        }
    }
}

async fn token(state: &ApiState, name: &str, role: Role, valid_s: Option<u64>) -> String {
    let wish = NewToken {
        name: name.to_owned(),
        role,
        valid_s,
    };
    let mut request = Request::post("/v1/tokens")
        .body(Body::from(serde_json::to_string(&wish).unwrap()))
        .unwrap();
    request.extensions_mut().insert(user("root", Role::Admin));
    let answer = router(state.clone()).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    let body = axum::body::to_bytes(answer.into_body(), 4096)
        .await
        .unwrap();
    serde_json::from_slice::<ShownToken>(&body).unwrap().token
}

async fn askers(state: &ApiState) -> Vec<Asker> {
    let view = token(state, "view", Role::View, None).await;
    let operate = token(state, "operate", Role::Operate, Some(600)).await;
    let admin = token(state, "admin", Role::Admin, None).await;
    let expired = token(state, "expired", Role::Admin, Some(0)).await;
    let wrong = format!("lunar_{}", "x".repeat(43));
    vec![
        Asker::with_token("no token", None, None),
        Asker::with_token("a wrong token", Some(wrong), None),
        Asker::with_token("an expired token", Some(expired), None),
        Asker::with_token("view", Some(view), Some(Role::View)),
        Asker::with_token("operate", Some(operate), Some(Role::Operate)),
        Asker::with_token("admin", Some(admin), Some(Role::Admin)),
        Asker::user("a foreign user", foreign, Role::None),
        Asker::user(
            "a user that may look",
            |_| user("one", Role::View),
            Role::View,
        ),
        Asker::user(
            "one that may change",
            |_| user("two", Role::Operate),
            Role::Operate,
        ),
        Asker::user("root", |_| user("root", Role::Admin), Role::Admin),
    ]
}

async fn status(
    state: &ApiState,
    asker: &Asker,
    number: u8,
    method: Method,
    path: &str,
) -> StatusCode {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = &asker.token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert((asker.peer)(number));
    router(state.clone())
        .oneshot(request)
        .await
        .unwrap()
        .status()
}

/// A path with something in it that is not there.
fn path(route: &Route) -> String {
    let path = route.path.replace("{name}", "nothing");
    path.replace("{generation}", "4000")
        .replace("{id}", "65000")
}

fn state(rig: &Rig) -> ApiState {
    let plane = rig.daemon.as_ref().unwrap().plane();
    let tokens = Tokens::read(rig.path("tokens.json"), Arc::default());
    ApiState::new(Arc::clone(plane), tokens.into())
}

#[test]
fn every_route_lets_in_whom_it_may() {
    let rig = Rig::new("version = 1\n");
    let state = &state(&rig);
    let (askers, routes) = (wait(askers(state)), routes::all());
    assert!(routes.len() > 25);
    for asker in &askers {
        let asked = routes.iter().zip(1..).map(async |(route, number)| {
            let path = path(route);
            let is = status(state, asker, number, route.method.clone(), &path).await;
            let what = format!("{}: {} {path}: {is}", asker.what, route.method);
            match asker.refused(route) {
                Some(refused) => assert_eq!(is, refused, "{what}"),
                None => assert!(![401, 403, 405].contains(&is.as_u16()), "{what}"),
            }
        });
        wait(join_all(asked));
    }
    assert_eq!(rig.status().generation, 1);
}

/// What is not there is told to those alone that may look.
#[test]
fn without_a_token_nothing_is_told_of_paths() {
    let rig = Rig::new("version = 1\n");
    let state = &state(&rig);
    let stranger = Asker::with_token("no token", None, None);
    let paths = [(Method::GET, "/v1/disks"), (Method::DELETE, "/v1/status")];
    for (method, path) in paths {
        let is = wait(status(state, &stranger, 1, method, path));
        assert_eq!(is, StatusCode::UNAUTHORIZED);
    }
}

#[test]
fn a_dry_run_is_for_all_who_may_look() {
    let rig = Rig::new("version = 1\n");
    let state = &state(&rig);
    let viewer = Asker::user("view", |_| user("one", Role::View), Role::View);
    let asked = [
        ("/v1/apply?dry-run", StatusCode::OK),
        ("/v1/plan", StatusCode::OK),
        ("/v1/apply", StatusCode::FORBIDDEN),
        ("/v1/rollback/1", StatusCode::FORBIDDEN),
    ];
    for (path, expected) in asked {
        let is = wait(status(state, &viewer, 1, Method::POST, path));
        assert_eq!(is, expected, "{path}");
    }
}

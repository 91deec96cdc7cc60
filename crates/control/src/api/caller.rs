//! What asks, and what it may do.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::problem::Problem;
use super::tokens::{TokenKey, Tokens};
use super::users::LocalPeer;
#[cfg(test)]
use super::users::User;
use super::{Answer, ApiState};
use crate::gate::Author;

/// What somebody may do, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Nothing.
    None,
    /// Look.
    View,
    /// End sessions; change what is served.
    Operate,
    /// Everything, tokens and secrets among it.
    Admin,
}

impl Role {
    /// As it is written.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::View => "view",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    /// A process of this machine. What its user may do is looked up with each request, because it
    /// can change while a connection is open.
    Local(LocalPeer),
    /// A user that is known.
    #[cfg(test)]
    User(User),
    /// A host, which has to show a token.
    Address(SocketAddr),
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    who: String,
    from: String,
    by: String,
    role: Role,
    /// By what it may.
    proof: Proof,
}

/// By what somebody may do things.
#[derive(Clone, Debug)]
enum Proof {
    /// By what it is taken for, for as long as the request takes.
    None,
    Token(TokenKey),
    Local(LocalPeer),
}

impl Caller {
    /// Refuses those who may not.
    ///
    /// # Errors
    ///
    /// The caller may do less than this.
    pub fn must_be(&self, least: Role) -> Result<(), Problem> {
        if self.role >= least {
            return Ok(());
        }
        Err(Problem::forbidden(&self.who, least))
    }

    /// The author of a change.
    #[must_use]
    pub fn author(&self) -> Author {
        Author {
            who: self.who.clone(),
            from: self.from.clone(),
            by: self.by.clone(),
        }
    }

    /// Waits until it may not even look any more: answers may go on for days.
    pub(super) async fn ended(&self, tokens: &Tokens) {
        match &self.proof {
            Proof::Token(key) => tokens.ended(key).await,
            Proof::Local(peer) => peer.loses(Role::View).await,
            Proof::None => std::future::pending().await,
        }
    }

    /// A line for those who want to know who did what.
    pub fn audit(&self, what: &str) {
        tracing::info!("{} from {} ({}) {what}", self.who, self.from, self.by);
    }
}

/// Finds out who asks before anything of the request is looked at.
pub(super) async fn authenticate(
    State(state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Answer<Response> {
    let peer = request.extensions().get::<Peer>().cloned();
    let caller = match peer {
        Some(Peer::Local(peer)) => {
            let user = peer.user().await;
            Caller {
                proof: Proof::Local(peer),
                ..caller(&request, &user.name, user.role)
            }
        }
        #[cfg(test)]
        Some(Peer::User(user)) => caller(&request, &user.name, user.role),
        // An IPv4 address that came by a socket of IPv6 is itself.
        Some(Peer::Address(address)) => {
            let address = address.ip().to_canonical();
            let token = token(&request).ok_or_else(Problem::no_token)?;
            match by_token(&state.tokens, &request, token, address) {
                Some(caller) => caller,
                None => {
                    state.tokens.pauses.pause(address).await;
                    return Err(Problem::wrong_token());
                }
            }
        }
        None => caller(&request, "a peer that is not known", Role::None),
    };
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// Who has shown a token, if that counts.
fn by_token(
    tokens: &Arc<Tokens>,
    request: &Request,
    token: &str,
    address: IpAddr,
) -> Option<Caller> {
    let Some(info) = tokens.shown(token, SystemTime::now()) else {
        match tokens.pauses.may_tell(Instant::now()) {
            Some(0) => tracing::warn!("{address} has shown a token that does not count"),
            Some(untold) => tracing::warn!(
                "{address} has shown a token that does not count, as was done {untold} times more"
            ),
            None => {}
        }
        return None;
    };
    keep_use(tokens);
    Some(Caller {
        proof: Proof::Token(TokenKey::of(token)),
        from: address.to_string(),
        ..caller(request, &format!("token {}", info.name), info.role)
    })
}

/// `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
fn token(request: &Request) -> Option<&str> {
    let written = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = written.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim())
}

/// Nothing waits for it.
fn keep_use(tokens: &Arc<Tokens>) {
    if tokens.is_behind(SystemTime::now()) {
        let tokens = Arc::clone(tokens);
        tokio::task::spawn_blocking(move || tokens.keep_use(SystemTime::now()));
    }
}

fn caller(request: &Request, who: &str, role: Role) -> Caller {
    let agent = request.headers().get("user-agent");
    let by = agent.and_then(|agent| agent.to_str().ok());
    Caller {
        who: who.to_owned(),
        from: "unix socket".to_owned(),
        by: by.unwrap_or("HTTP").chars().take(64).collect(),
        role,
        proof: Proof::None,
    }
}

/// Refuses those who may not use a route, before anything of the request is read.
pub(super) async fn require(
    State(least): State<Role>,
    caller: Caller,
    request: Request,
    next: Next,
) -> Answer<Response> {
    caller.must_be(least)?;
    Ok(next.run(request).await)
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>();
        caller.cloned().ok_or_else(Problem::internal)
    }
}

//! What asks, and what it may do.

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::problem::Problem;
use super::users::User;
use super::{Answer, ApiState};
use crate::gate::Author;

/// What somebody may do, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// The other end of a connection.
#[derive(Clone, Debug)]
pub(super) enum Peer {
    /// A user of this machine.
    User(User),
}

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    who: String,
    by: String,
    role: Role,
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
            from: "unix socket".to_owned(),
            by: self.by.clone(),
        }
    }

    /// A line for those who want to know who did what.
    pub fn audit(&self, what: &str) {
        tracing::info!("{} ({}) {what}", self.who, self.by);
    }
}

/// Finds out who asks before anything of the request is looked at.
pub(super) async fn authenticate(
    State(_state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Answer<Response> {
    let caller = match request.extensions().get::<Peer>() {
        Some(Peer::User(user)) => caller(&request, &user.name, user.role),
        None => caller(&request, "nobody", Role::None),
    };
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

fn caller(request: &Request, who: &str, role: Role) -> Caller {
    let agent = request.headers().get("user-agent");
    let by = agent.and_then(|agent| agent.to_str().ok());
    Caller {
        who: who.to_owned(),
        by: by.unwrap_or("HTTP").chars().take(64).collect(),
        role,
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

//! Who is at the other end, and what it may do. Of a Unix socket the kernel says who it is.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::http::request::Parts;
use axum::serve::IncomingStream;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::net::unix::UCred;

use super::problem::Problem;
use super::socket::ApiSocket;
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

/// The group whose members may operate, and that whose members may look.
const GROUPS: [(&str, Role); 2] = [("lunar", Role::Operate), ("lunar-view", Role::View)];

/// The user at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerUser {
    uid: Option<u32>,
    gid: Option<u32>,
}

impl PeerUser {
    pub(super) fn of(stream: &UnixStream) -> Self {
        let peer = stream.peer_cred().ok();
        Self {
            uid: peer.as_ref().map(UCred::uid),
            gid: peer.as_ref().map(UCred::gid),
        }
    }
}

impl PeerUser {
    /// Whether this user may do anything at all.
    pub(super) fn may_look(self) -> bool {
        user(self).1 >= Role::View
    }
}

impl Connected<IncomingStream<'_, ApiSocket>> for PeerUser {
    fn connect_info(stream: IncomingStream<'_, ApiSocket>) -> Self {
        *stream.remote_addr()
    }
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
            by: self.by.clone(),
        }
    }

    /// A line for those who want to know who did what.
    pub fn audit(&self, what: &str) {
        tracing::info!("{} ({}) {what}", self.who, self.by);
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<PeerUser>>();
        let peer = peer.map(|ConnectInfo(peer)| *peer);
        let agent = parts.headers.get("user-agent");
        let by = agent
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or("HTTP");
        let (who, role) = peer.map_or(("nobody".to_owned(), Role::None), user);
        Ok(Self {
            who,
            by: by.chars().take(64).collect(),
            role,
        })
    }
}

/// The name of a user, and its role: root and the daemon's own user may do everything.
fn user(peer: PeerUser) -> (String, Role) {
    let Some(uid) = peer.uid else {
        return ("nobody".to_owned(), Role::None);
    };
    let user = uzers::get_user_by_uid(uid);
    let name = user.as_ref().and_then(|user| user.name().to_str());
    let name = name.map_or_else(|| format!("uid {uid}"), str::to_owned);
    if uid == 0 || uid == uzers::get_effective_uid() {
        return (name, Role::Admin);
    }
    let gid = peer.gid.unwrap_or(u32::MAX);
    let groups = uzers::get_user_groups(&name, gid).unwrap_or_default();
    let is_in = |group: &str| groups.iter().any(|own| own.name() == group);
    let role = GROUPS.iter().find(|(group, _)| is_in(group));
    (name, role.map_or(Role::None, |(_, role)| *role))
}

//! Users of this machine: of the other end of a Unix socket the kernel says which one it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::UnixStream;
use tokio::net::unix::UCred;

use super::caller::Role;

/// The group whose members may operate, and that whose members may look.
const GROUPS: [(&str, Role); 2] = [("lunar", Role::Operate), ("lunar-view", Role::View)];

/// A user and its group, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PeerCredentials {
    uid: u32,
    gid: u32,
}

/// A user, as this program knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) role: Role,
}

/// The process at the other end of a Unix socket.
#[derive(Clone, Debug)]
pub(super) struct LocalPeer {
    credentials: PeerCredentials,
    users: Arc<Users>,
}

impl LocalPeer {
    pub(super) fn new(credentials: PeerCredentials, users: Arc<Users>) -> Self {
        Self { credentials, users }
    }

    /// Its user, as it is now, or was within [`FRESH`].
    pub(super) async fn user(&self) -> User {
        self.users.user(self.credentials).await
    }

    /// Waits until its user may not do this any more.
    pub(super) async fn loses(&self, role: Role) {
        while self.user().await.role >= role {
            tokio::time::sleep(self.users.fresh).await;
        }
    }
}

/// Users whose names and groups were looked up lately. A look-up may ask a directory over the
/// network, so it has a thread of its own, and is not repeated for each connection.
#[derive(Debug)]
pub(super) struct Users {
    known: Mutex<HashMap<PeerCredentials, (Instant, User)>>,
    look_up: fn(PeerCredentials) -> User,
    fresh: Duration,
}

/// For how long a look-up counts. A user that has left a group may what it did for as long.
const FRESH: Duration = Duration::from_secs(10);

/// How many users are remembered.
const KNOWN_MAX: usize = 256;

impl PeerCredentials {
    pub(super) fn of(stream: &UnixStream) -> Option<Self> {
        let peer: UCred = stream.peer_cred().ok()?;
        Some(Self {
            uid: peer.uid(),
            gid: peer.gid(),
        })
    }
}

impl Default for Users {
    fn default() -> Self {
        Self::looked_up_by(look_up, FRESH)
    }
}

impl Users {
    /// Users that are looked up so, each when it was not for as long as that.
    pub(super) fn looked_up_by(look_up: fn(PeerCredentials) -> User, fresh: Duration) -> Self {
        Self {
            known: Mutex::default(),
            look_up,
            fresh,
        }
    }

    /// The user with these credentials; one that cannot be looked up may do nothing.
    pub(super) async fn user(&self, peer: PeerCredentials) -> User {
        if let Some(user) = self.fresh(peer) {
            return user;
        }
        let look_up = self.look_up;
        let found = tokio::task::spawn_blocking(move || look_up(peer)).await;
        let user = found.unwrap_or_else(|_| User {
            name: format!("uid {}", peer.uid),
            role: Role::None,
        });
        self.remember(peer, user.clone());
        user
    }

    fn fresh(&self, peer: PeerCredentials) -> Option<User> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, user) = known.get(&peer)?;
        (at.elapsed() < self.fresh).then(|| user.clone())
    }

    fn remember(&self, peer: PeerCredentials, user: User) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.retain(|_, (at, _)| at.elapsed() < self.fresh);
        }
        if known.len() < KNOWN_MAX {
            known.insert(peer, (Instant::now(), user));
        }
    }
}

/// The name of a user, and its role: root and the daemon's own user may do everything.
fn look_up(peer: PeerCredentials) -> User {
    let user = uzers::get_user_by_uid(peer.uid);
    let name = user.as_ref().and_then(|user| user.name().to_str());
    let name = name.map_or_else(|| format!("uid {}", peer.uid), str::to_owned);
    let role = if peer.uid == 0 || peer.uid == uzers::get_effective_uid() {
        Role::Admin
    } else {
        role_by_groups(&name, peer.gid)
    };
    User { name, role }
}

fn role_by_groups(name: &str, gid: u32) -> Role {
    let groups = uzers::get_user_groups(name, gid).unwrap_or_default();
    let is_in = |group: &str| groups.iter().any(|own| own.name() == group);
    let role = GROUPS.iter().find(|(group, _)| is_in(group));
    role.map_or(Role::None, |(_, role)| *role)
}

#[cfg(test)]
mod tests;

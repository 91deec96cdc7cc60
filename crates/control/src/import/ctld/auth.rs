//! Who may log in, as an `auth-group` of ctld says it, or a target by itself.

use zeroize::Zeroizing;

use crate::import::block::Node;
use crate::import::draft::{Admission, Draft, Initiator, User};

/// An `auth-group`, or the same statements of a target.
#[derive(Clone, Default)]
pub(super) struct AuthGroup {
    users: Vec<(User, Option<User>)>,
    names: Option<Vec<Initiator>>,
    auth_type: Option<String>,
    /// What it asks for cannot be had here.
    is_closed: bool,
    /// There is such a statement.
    pub(super) is_there: bool,
}

impl AuthGroup {
    /// Takes a statement over; `false` if it is not about access.
    pub(super) fn read(&mut self, draft: &mut Draft, node: &Node) -> bool {
        match node.key() {
            "auth-type" => self.auth_type = Some(node.value().to_owned()),
            "chap" | "chap-mutual" => match users(draft, node) {
                Some(users) => self.users.push(users),
                None => {
                    self.is_closed = true;
                    draft.leave(node.line, node.shown(), crate::import::NO_USER);
                }
            },
            "initiator-name" => {
                let names = self.names.get_or_insert_default();
                match address::normalise_iscsi_name(node.value()) {
                    Ok(name) => names.push(Initiator {
                        line: node.line,
                        name,
                    }),
                    Err(_) => {
                        let why = "this is not the name of an initiator";
                        draft.leave(node.line, node.shown(), why);
                    }
                }
            }
            "initiator-portal" => {
                self.is_closed = true;
                draft.leave(node.line, node.shown(), crate::import::BY_ADDRESS);
            }
            _ => return false,
        }
        self.is_there = true;
        true
    }

    /// Who may log in, and why no initiator may, if so. Without an `auth-type` and without a user
    /// ctld lets no initiator log in.
    pub(super) fn admission(&self, draft: &mut Draft) -> (Admission, Option<&'static str>) {
        let has_user = !self.users.is_empty();
        let why = match (self.auth_type.as_deref(), has_user) {
            _ if self.is_closed => {
                Some("what it asks for is left out above: no initiator can log in")
            }
            (Some("deny"), _) => Some("auth-type deny: no initiator can log in"),
            (Some("chap" | "chap-mutual"), false) => {
                Some("CHAP is asked for without a user: no initiator can log in")
            }
            (Some("none" | "chap" | "chap-mutual"), _) | (None, true) => None,
            (Some(_), _) => Some("this auth-type is not known: no initiator can log in"),
            (None, false) => Some("without auth-type none ctld lets no initiator log in"),
        };
        let mut admission = Admission {
            names: self.names.clone(),
            is_closed: why.is_some(),
            ..Admission::default()
        };
        if self.auth_type.as_deref() == Some("none") {
            for (user, _) in &self.users {
                let text = format!("chap {} ***", user.name);
                draft.leave(user.line, text, "with auth-type none CHAP is not asked for");
            }
        } else {
            admission.mutual = self.users.first().and_then(|(_, mutual)| mutual.clone());
            admission.users = self.users.iter().map(|(user, _)| user.clone()).collect();
        }
        (admission, why)
    }
}

/// `chap USER SECRET`, `chap-mutual USER SECRET USER SECRET`, or the four in a block.
fn users(draft: &mut Draft, node: &Node) -> Option<(User, Option<User>)> {
    let keys: &[&str] = match node.key() {
        "chap" => &["user", "secret"],
        _ => &["user", "secret", "mutual-user", "mutual-secret"],
    };
    for one in node.inner.iter().filter(|one| !keys.contains(&one.key())) {
        draft.leave(one.line, one.shown(), "Lunar has no such setting");
    }
    if node.words.len() != 1 + if node.has_block { 0 } else { keys.len() } {
        return None;
    }
    let of = |key: &str, at: usize| {
        if node.has_block {
            let found = node.inner.iter().find(|one| one.key() == key);
            found.map_or("", Node::value)
        } else {
            node.word(at)
        }
    };
    let user = |name: &str, secret: &str| {
        let is_there = !name.is_empty() && !secret.is_empty();
        is_there.then(|| User {
            line: node.line,
            name: name.to_owned(),
            secret: Zeroizing::new(secret.to_owned()),
        })
    };
    let own = user(of("user", 1), of("secret", 2))?;
    match node.key() {
        "chap" => Some((own, None)),
        _ => {
            let mutual = user(of("mutual-user", 3), of("mutual-secret", 4))?;
            Some((own, Some(mutual)))
        }
    }
}

//! Which initiators may log in to a node, and what they have to prove (RFC 7143 §9.2, §12.1).

use std::collections::{BTreeMap, BTreeSet};

use zeroize::Zeroize;

use crate::auth::Hash;

#[cfg(test)]
mod tests;

/// The initiators that may log in to a node, in groups that are treated alike. The group of each
/// name is found once, when access is granted, and not at each login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAccess {
    groups: Vec<AccessGroup>,
    /// The group of each initiator that one names.
    named: BTreeMap<String, usize>,
    /// The group of all others; without one they are refused.
    everybody: Option<usize>,
}

/// Initiators that have to prove the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessGroup {
    /// Which ones.
    pub initiators: Initiators,
    /// CHAP, which then must be done.
    pub chap: Option<TargetChap>,
}

/// The initiators of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Initiators {
    /// All that no other group names.
    #[default]
    Everybody,
    /// These, by InitiatorName, normalised.
    Named(BTreeSet<String>),
}

impl Default for NodeAccess {
    /// Everybody, without a proof.
    fn default() -> Self {
        AccessGroup::default().into()
    }
}

impl From<AccessGroup> for NodeAccess {
    fn from(group: AccessGroup) -> Self {
        Self::new(vec![group])
    }
}

impl NodeAccess {
    /// Access for these groups; for nobody if there is none. The first group that names an
    /// initiator is its group; one for everybody has those that no other names.
    #[must_use]
    pub fn new(groups: Vec<AccessGroup>) -> Self {
        let (mut named, mut everybody) = (BTreeMap::new(), None);
        for (at, group) in groups.iter().enumerate() {
            match &group.initiators {
                Initiators::Everybody => drop(everybody.get_or_insert(at)),
                Initiators::Named(names) => names.iter().for_each(|name| {
                    named.entry(name.clone()).or_insert(at);
                }),
            }
        }
        Self {
            groups,
            named,
            everybody,
        }
    }

    /// Access for these initiators only, by their normalised names, without a proof.
    #[must_use]
    pub fn only(initiators: BTreeSet<String>) -> Self {
        let initiators = Initiators::Named(initiators);
        AccessGroup {
            initiators,
            chap: None,
        }
        .into()
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[AccessGroup] {
        &self.groups
    }

    /// The group of an initiator, whose name is normalised, as a number; `None` if it may not log
    /// in.
    #[must_use]
    pub fn group_of(&self, initiator: &str) -> Option<usize> {
        self.named.get(initiator).copied().or(self.everybody)
    }

    /// The initiators that may log in, by their normalised names; `None`: everybody may.
    #[must_use]
    pub fn admitted(&self) -> Option<BTreeSet<String>> {
        let names = || self.named.keys().cloned().collect();
        self.everybody.is_none().then(names)
    }

    /// Whether an initiator, whose name is normalised, may log in.
    #[must_use]
    pub fn admits(&self, initiator: &str) -> bool {
        self.group_of(initiator).is_some()
    }
}

/// CHAP credentials. The secrets are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct TargetChap {
    /// The users of initiators; at least one.
    pub users: Vec<ChapUser>,
    /// Our own name and secret for initiators that ask for mutual authentication.
    pub mutual: Option<(String, Vec<u8>)>,
    /// The weakest hash that will do.
    pub minimum: Hash,
}

/// One credential, and the initiator that may use it.
#[derive(Clone, PartialEq, Eq)]
pub struct ChapUser {
    /// CHAP_N.
    pub name: String,
    /// The InitiatorName, normalised, that the user is bound to (RFC 7143 §9.2); `None`: any.
    pub initiator: Option<String>,
    /// The secret.
    pub secret: Vec<u8>,
}

impl ChapUser {
    /// Whether an initiator of this normalised name may log in as this user.
    #[must_use]
    pub fn is_for(&self, initiator: &str) -> bool {
        self.initiator.as_ref().is_none_or(|name| name == initiator)
    }
}

impl Drop for ChapUser {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

impl std::fmt::Debug for ChapUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChapUser")
            .field("name", &self.name)
            .field("initiator", &self.initiator)
            .finish_non_exhaustive()
    }
}

impl Drop for TargetChap {
    fn drop(&mut self) {
        if let Some((_, secret)) = &mut self.mutual {
            secret.zeroize();
        }
    }
}

impl std::fmt::Debug for TargetChap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chap")
            .field("users", &self.users)
            .field("mutual", &self.mutual.as_ref().map(|(user, _)| user))
            .field("minimum", &self.minimum)
            .finish()
    }
}

//! The initiator and the target of a login: the keys that the first text of a login must bring
//! (RFC 7143 §6.3, §13.4, §13.5, §13.21).

use std::net::SocketAddr;
use std::sync::Arc;

use super::status::{self, LoginFault};
use crate::auth::{AdmittedNode, AuthRequirement, chap::ChapProof};
use crate::keys::{Admitted, LoginKey};
use crate::names;
use crate::parameters::SessionPurpose;
use crate::target::{Endpoints, NodeLogin, SessionScope, TargetConfig};
use crate::text;

/// What the first text told.
#[derive(Clone, Debug)]
pub(super) struct LoginIdentity {
    /// InitiatorName, normalised.
    pub(super) initiator: String,
    /// InitiatorAlias.
    pub(super) alias: Option<String>,
    /// TargetName, normalised; a discovery session may go without.
    target: Option<String>,
    /// SessionType=Discovery.
    pub(super) discovery: bool,
    /// The nodes that this initiator may use: the one named, or all.
    candidates: Vec<AdmittedNode>,
    /// The tag of the portal group that the login came by.
    pub(super) portal_group: u16,
}

/// The declarations of one text.
#[derive(Default)]
struct DeclaredKeys<'a> {
    initiator: Option<&'a str>,
    alias: Option<&'a str>,
    target: Option<&'a str>,
    kind: Option<&'a str>,
}

impl<'a> DeclaredKeys<'a> {
    fn of(admitted: &[Admitted<'a>]) -> Self {
        let mut declared = Self::default();
        for (row, value) in admitted {
            let field = match row.key {
                LoginKey::InitiatorName => &mut declared.initiator,
                LoginKey::InitiatorAlias => &mut declared.alias,
                LoginKey::TargetName => &mut declared.target,
                LoginKey::SessionType => &mut declared.kind,
                _ => continue,
            };
            *field = Some(value);
        }
        declared
    }
}

impl LoginIdentity {
    /// From the first text, of a login that came to our address `local`.
    pub(super) fn of(
        admitted: &[Admitted<'_>],
        config: &TargetConfig,
        local: SocketAddr,
    ) -> Result<Self, LoginFault> {
        let declared = DeclaredKeys::of(admitted);
        let initiator = initiator_name(declared.initiator)?;
        let discovery = session_type(declared.kind)?;
        if declared.target.is_none() && !discovery {
            let clause = "RFC 7143 §13.4";
            return Err(LoginFault::new(
                status::MISSING_PARAMETER,
                "no TargetName",
                clause,
            ));
        }
        let target = declared.target.map(known_name).transpose()?;
        let (candidates, portal_group) = match target.as_deref() {
            Some(target) => candidate(config, &initiator, (target, local))?,
            None => (candidates(config, &initiator), names::PORTAL_GROUP),
        };
        let alias = declared.alias.map(str::to_owned);
        Ok(Self {
            initiator,
            alias,
            target,
            discovery,
            candidates,
            portal_group,
        })
    }

    /// From a later text. Names must not be declared again (§13.4, §13.5), yet libiscsi repeats
    /// them in its operational stage: the same once more does no harm, another one does.
    pub(super) fn confirm(&mut self, admitted: &[Admitted<'_>]) -> Result<(), LoginFault> {
        let again = DeclaredKeys::of(admitted);
        let name = |value: &str| names::normalise(value).ok();
        let same = again
            .initiator
            .is_none_or(|value| name(value).as_ref() == Some(&self.initiator))
            && again.target.is_none_or(|value| name(value) == self.target)
            && again
                .kind
                .is_none_or(|value| session_type(Some(value)) == Ok(self.discovery));
        if !same {
            let rule = "another name or session type within a login";
            return Err(LoginFault::new(
                status::INITIATOR_ERROR,
                rule,
                "RFC 7143 §13.5",
            ));
        }
        if let Some(alias) = again.alias {
            self.alias = Some(alias.to_owned());
        }
        Ok(())
    }

    /// What it has to prove.
    pub(super) fn realm(&self) -> AuthRequirement {
        let guarded = |node: &&AdmittedNode| node.chap().is_some();
        AuthRequirement {
            guarded: self.candidates.iter().filter(guarded).cloned().collect(),
            open: self.candidates.is_empty() || !self.candidates.iter().all(|node| guarded(&node)),
            initiator: self.initiator.clone(),
        }
    }

    /// TargetAlias, for normal sessions (§13.6).
    pub(super) fn target_alias(&self) -> Option<&str> {
        if self.discovery {
            None
        } else {
            self.candidates.first()?.node.alias.as_deref()
        }
    }

    /// What the node negotiates, for normal sessions: the answer to a discovery session is the
    /// server's.
    pub(super) fn node_login(&self) -> Option<NodeLogin> {
        if self.discovery {
            None
        } else {
            Some(self.candidates.first()?.node.login)
        }
    }

    /// What it may do with what it has proven; `None` for a normal session with a node that it
    /// may not use after all.
    pub(super) fn purpose(&self, proof: Option<&ChapProof>) -> Option<SessionPurpose> {
        let proven = |one: &&AdmittedNode| {
            let mut nodes = proof.map_or(&[][..], |proof| &proof.nodes).iter();
            one.chap().is_none() || nodes.any(|other| Arc::ptr_eq(&one.node, &other.node))
        };
        let usable = self.candidates.iter().filter(proven);
        let mut usable = usable.map(|one| Arc::clone(&one.node));
        if self.discovery {
            Some(SessionPurpose::Discovery(usable.collect()))
        } else {
            usable.next().map(SessionPurpose::Normal)
        }
    }

    /// Where its port may have one session only. A discovery session that names its target counts
    /// as one with that target (§7.4.2.2).
    pub(super) fn scope(&self, endpoints: Endpoints) -> SessionScope {
        match &self.target {
            Some(target) => SessionScope::Node(target.clone(), self.portal_group),
            None => SessionScope::Portal(endpoints.local),
        }
    }
}

/// Who a login that fails with this text said it was, as [`claim`] puts it. `known` is the
/// InitiatorName of an earlier text.
pub(super) fn claimed(known: Option<String>, bytes: &[u8]) -> Option<String> {
    let pairs = text::parse(bytes).unwrap_or_default();
    let value = |name| pairs.iter().find(|pair| pair.key == name);
    let declared = || names::normalise(value("InitiatorName")?.value).ok();
    let user = value("CHAP_N").map(|pair| pair.value);
    claim(known.or_else(declared), user)
}

/// An initiator and its user for the log.
pub(super) fn claim(initiator: Option<String>, user: Option<&str>) -> Option<String> {
    match (initiator, user) {
        (Some(name), Some(user)) => Some(format!("{name}, user {user:?}")),
        (name, _) => name,
    }
}

fn initiator_name(declared: Option<&str>) -> Result<String, LoginFault> {
    let clause = "RFC 7143 §13.5";
    let Some(name) = declared else {
        return Err(LoginFault::new(
            status::MISSING_PARAMETER,
            "no InitiatorName",
            clause,
        ));
    };
    names::normalise(name).map_err(|_| {
        let rule = "an InitiatorName that is not an iSCSI name";
        LoginFault::new(status::INITIATOR_ERROR, rule, "RFC 7143 §4.2.7")
    })
}

/// Whether it is a discovery session.
fn session_type(declared: Option<&str>) -> Result<bool, LoginFault> {
    match declared {
        None | Some("Normal") => Ok(false),
        Some("Discovery") => Ok(true),
        Some(_) => {
            let clause = "RFC 7143 §13.21";
            Err(LoginFault::new(
                status::SESSION_TYPE,
                "an unknown SessionType",
                clause,
            ))
        }
    }
}

/// A TargetName; one that is not an iSCSI name cannot be known either.
fn known_name(name: &str) -> Result<String, LoginFault> {
    names::normalise(name).map_err(|_| NOT_HERE)
}

/// All nodes that an initiator may use, by whichever portal: SendTargets tells where they are.
fn candidates(config: &TargetConfig, initiator: &str) -> Vec<AdmittedNode> {
    let admitted = |node| AdmittedNode::new(node, initiator);
    config.nodes.iter().filter_map(admitted).collect()
}

/// The node that an initiator named, and the portal group by which it came.
fn candidate(
    config: &TargetConfig,
    initiator: &str,
    (target, local): (&str, SocketAddr),
) -> Result<(Vec<AdmittedNode>, u16), LoginFault> {
    let mut nodes = config.nodes.iter();
    let node = nodes.find(|node| node.name == target).ok_or(NOT_HERE)?;
    let group = node.portal_group_at(local).ok_or(NOT_HERE)?;
    let admitted = AdmittedNode::new(node, initiator).ok_or(NOT_ALLOWED)?;
    Ok((vec![admitted], group.tag))
}

const NOT_ALLOWED: LoginFault = LoginFault::new(
    status::AUTHORIZATION_FAILURE,
    "an initiator that is not allowed",
    "--allow",
);

const NOT_HERE: LoginFault =
    LoginFault::new(status::NOT_FOUND, "an unknown target", "RFC 7143 §11.13.5");

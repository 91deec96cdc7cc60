//! Who logs in, and to what: the keys that the first text of a login must bring
//! (RFC 7143 §6.3, §13.4, §13.5, §13.21).

use std::sync::Arc;

use super::status::{self, Fault};
use crate::auth::{Realm, chap::Proof};
use crate::keys::{Admitted, Key};
use crate::names;
use crate::parameters::Purpose;
use crate::target::{Config, Endpoints, Node, Scope};
use crate::text;

/// What the first text told.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// InitiatorName, normalised.
    pub(super) initiator: String,
    /// InitiatorAlias.
    pub(super) alias: Option<String>,
    /// TargetName, normalised; a discovery session may go without.
    target: Option<String>,
    /// SessionType=Discovery.
    pub(super) discovery: bool,
    /// The nodes that this initiator may use: the one named, or all.
    candidates: Vec<Arc<Node>>,
}

/// The declarations of one text.
#[derive(Default)]
struct Declared<'a> {
    initiator: Option<&'a str>,
    alias: Option<&'a str>,
    target: Option<&'a str>,
    kind: Option<&'a str>,
}

impl<'a> Declared<'a> {
    fn of(admitted: &[Admitted<'a>]) -> Self {
        let mut declared = Self::default();
        for (row, value) in admitted {
            let field = match row.key {
                Key::InitiatorName => &mut declared.initiator,
                Key::InitiatorAlias => &mut declared.alias,
                Key::TargetName => &mut declared.target,
                Key::SessionType => &mut declared.kind,
                _ => continue,
            };
            *field = Some(value);
        }
        declared
    }
}

impl Identity {
    /// From the first text.
    pub(super) fn of(admitted: &[Admitted<'_>], config: &Config) -> Result<Self, Fault> {
        let declared = Declared::of(admitted);
        let initiator = initiator_name(declared.initiator)?;
        let discovery = session_type(declared.kind)?;
        if declared.target.is_none() && !discovery {
            let clause = "RFC 7143 §13.4";
            return Err(Fault::new(
                status::MISSING_PARAMETER,
                "no TargetName",
                clause,
            ));
        }
        let target = declared.target.map(known_name).transpose()?;
        let candidates = candidates(config, &initiator, target.as_deref())?;
        let alias = declared.alias.map(str::to_owned);
        Ok(Self {
            initiator,
            alias,
            target,
            discovery,
            candidates,
        })
    }

    /// From a later text. Names must not be declared again (§13.4, §13.5), yet libiscsi repeats
    /// them in its operational stage: the same once more does no harm, another one does.
    pub(super) fn confirm(&mut self, admitted: &[Admitted<'_>]) -> Result<(), Fault> {
        let again = Declared::of(admitted);
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
            return Err(Fault::new(status::INITIATOR_ERROR, rule, "RFC 7143 §13.5"));
        }
        if let Some(alias) = again.alias {
            self.alias = Some(alias.to_owned());
        }
        Ok(())
    }

    /// What it has to prove.
    pub(super) fn realm(&self) -> Realm {
        let guarded = |node: &&Arc<Node>| node.access.chap.is_some();
        Realm {
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
            self.candidates.first()?.alias.as_deref()
        }
    }

    /// What it may do with what it has proven; `None` for a normal session with a node that it
    /// may not use after all.
    pub(super) fn purpose(&self, proof: Option<&Proof>) -> Option<Purpose> {
        let proven = |node: &Arc<Node>| {
            let nodes = proof.map_or(&[][..], |proof| &proof.nodes);
            node.access.chap.is_none() || nodes.iter().any(|other| Arc::ptr_eq(node, other))
        };
        let mut usable = self.candidates.iter().filter(|node| proven(node)).cloned();
        if self.discovery {
            Some(Purpose::Discovery(usable.collect()))
        } else {
            usable.next().map(Purpose::Normal)
        }
    }

    /// Where its port may have one session only. A discovery session that names its target counts
    /// as one with that target (§7.4.2.2).
    pub(super) fn scope(&self, endpoints: Endpoints) -> Scope {
        match &self.target {
            Some(target) => Scope::Node(target.clone()),
            None => Scope::Portal(endpoints.local),
        }
    }
}

/// Who a login that fails with this text said it was, as [`claim`] puts it. `known` is the
/// InitiatorName of an earlier text.
pub(super) fn claimed(known: Option<String>, octets: &[u8]) -> Option<String> {
    let pairs = text::parse(octets).unwrap_or_default();
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

fn initiator_name(declared: Option<&str>) -> Result<String, Fault> {
    let clause = "RFC 7143 §13.5";
    let Some(name) = declared else {
        return Err(Fault::new(
            status::MISSING_PARAMETER,
            "no InitiatorName",
            clause,
        ));
    };
    names::normalise(name).map_err(|_| {
        let rule = "an InitiatorName that is not an iSCSI name";
        Fault::new(status::INITIATOR_ERROR, rule, "RFC 7143 §4.2.7")
    })
}

/// Whether it is a discovery session.
fn session_type(declared: Option<&str>) -> Result<bool, Fault> {
    match declared {
        None | Some("Normal") => Ok(false),
        Some("Discovery") => Ok(true),
        Some(_) => {
            let clause = "RFC 7143 §13.21";
            Err(Fault::new(
                status::SESSION_TYPE,
                "an unknown SessionType",
                clause,
            ))
        }
    }
}

/// A TargetName; one that is no iSCSI name cannot be known either.
fn known_name(name: &str) -> Result<String, Fault> {
    names::normalise(name).map_err(|_| NOT_HERE)
}

/// The nodes that an initiator may use: the one that it named, or all.
fn candidates(
    config: &Config,
    initiator: &str,
    target: Option<&str>,
) -> Result<Vec<Arc<Node>>, Fault> {
    let Some(target) = target else {
        return Ok(config
            .nodes
            .iter()
            .filter(|node| node.access.admits(initiator))
            .cloned()
            .collect());
    };
    let node = config
        .nodes
        .iter()
        .find(|node| node.name == target)
        .ok_or(NOT_HERE)?;
    if !node.access.admits(initiator) {
        let rule = "an initiator that is not allowed";
        return Err(Fault::new(status::AUTHORIZATION_FAILURE, rule, "--allow"));
    }
    Ok(vec![node.clone()])
}

const NOT_HERE: Fault = Fault::new(status::NOT_FOUND, "an unknown target", "RFC 7143 §11.13.5");

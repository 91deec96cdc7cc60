//! Requests that change what is served, all of them through the gate.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Json;
use runtime::secret::SECRET_BYTES;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{Answer, Caller, Problem, Role, Shared, blocking, number};
use crate::document::{set as set_value, unset};
use crate::gate::{Candidate, ChangeRequest, Outcome};
use crate::plan::Allowed;
use crate::plane::Plane;
use crate::secret::SecretSource;
use crate::tree::Tree;

/// What a changing request says beside its candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    based_on: Option<u64>,
    allowed: Allowed,
    absent_ok: bool,
    dry_run: bool,
}

impl<S: Sync> FromRequestParts<S> for Terms {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut terms = Self {
            based_on: based_on(parts)?,
            ..Self::default()
        };
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(query) = query.map_err(|error| Problem::malformed(&error.to_string()))?;
        for (key, value) in &query {
            match (&**key, &**value) {
                ("dry-run", "") => terms.dry_run = true,
                ("absent-ok", "") => terms.absent_ok = true,
                ("allow", allowed) => {
                    let add = |one: &str| terms.allowed.add(one);
                    let mut all = allowed.split(',');
                    all.try_for_each(add)
                        .map_err(|cause| Problem::malformed(&cause))?;
                }
                _ => return Err(unknown(key)),
            }
        }
        Ok(terms)
    }
}

impl Terms {
    /// What is changed is what was read: two writers do not overrun each other.
    pub(super) fn made_from(&mut self, generation: u64) {
        self.based_on.get_or_insert(generation);
    }
}

fn unknown(key: &str) -> Problem {
    Problem::malformed(&format!("{key:?} is not a parameter of a change"))
        .way_out("give dry-run, absent-ok or allow=cuts,loses=ROW")
}

/// The generation that the author has seen.
fn based_on(parts: &Parts) -> Result<Option<u64>, Problem> {
    let Some(written) = parts.headers.get("if-match") else {
        return Ok(None);
    };
    let number = written
        .to_str()
        .ok()
        .and_then(|text| text.trim_matches('"').parse().ok());
    number.map(Some).ok_or_else(|| {
        Problem::malformed("If-Match is not the number of a generation")
            .way_out("give that of ETag, as in If-Match: \"17\"")
    })
}

/// Has the gate make a change.
pub(crate) async fn change(
    plane: Arc<Plane>,
    caller: Caller,
    candidate: Candidate,
    terms: Terms,
) -> Answer<Json<Outcome>> {
    let least = if terms.dry_run {
        Role::View
    } else {
        Role::Operate
    };
    caller.must_be(least)?;
    let request = ChangeRequest {
        candidate,
        based_on: terms.based_on,
        allowed: terms.allowed,
        absent_ok: terms.absent_ok,
        dry_run: terms.dry_run,
    };
    let result = blocking(move || {
        let result = plane.change(&request, &caller.author());
        if !request.dry_run {
            caller.audit(&told(&result));
        }
        result
    });
    Ok(Json(result.await??))
}

fn told(result: &Result<Outcome, crate::gate::GateError>) -> String {
    match result {
        Ok(outcome) if outcome.from == outcome.generation => "changes nothing".to_owned(),
        Ok(outcome) => {
            let lines: Vec<_> = outcome
                .plan
                .differences
                .iter()
                .map(ToString::to_string)
                .collect();
            let (generation, worst) = (outcome.generation, outcome.worst);
            format!(
                "makes generation {generation} ({worst}): {}",
                lines.join("; ")
            )
        }
        Err(error) => format!("is refused a change: {error}"),
    }
}

/// A document, or where there is none the file.
fn candidate(body: String) -> Candidate {
    if body.trim().is_empty() {
        Candidate::File
    } else {
        Candidate::Text(body)
    }
}

pub(super) async fn plan(
    State(plane): Shared,
    caller: Caller,
    terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    let terms = Terms {
        dry_run: true,
        ..terms
    };
    change(plane, caller, candidate(body), terms).await
}

pub(super) async fn apply(
    State(plane): Shared,
    caller: Caller,
    terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    change(plane, caller, candidate(body), terms).await
}

pub(super) async fn put_config(
    State(plane): Shared,
    caller: Caller,
    terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    change(plane, caller, Candidate::Text(body), terms).await
}

pub(super) async fn rollback(
    State(plane): Shared,
    caller: Caller,
    Path(generation): Path<String>,
    terms: Terms,
) -> Answer<Json<Outcome>> {
    let generation = number(&generation)?;
    change(plane, caller, Candidate::Generation(generation), terms).await
}

/// One value of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// Values to set, in this order: paths such as `volume.db.limit.iops`, and what stands there
    /// then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
    /// Paths to take away, before any is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

pub(super) async fn set(
    State(plane): Shared,
    caller: Caller,
    mut terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    caller.must_be(Role::View)?;
    let request: SetRequest = json(&body)?;
    let served = plane.served();
    terms.made_from(served.generation);
    let tree = changed(served.tree.clone(), &request)?;
    change(plane, caller, Candidate::Tree(tree.into()), terms).await
}

/// The body is the secret. It is never shown again.
pub(super) async fn put_secret(
    State(plane): Shared,
    caller: Caller,
    Path(name): Path<String>,
    body: String,
) -> Answer<StatusCode> {
    caller.must_be(Role::Admin)?;
    let source: Result<SecretSource, _> = format!("state:{name}").parse();
    source.map_err(|_| Problem::malformed(&format!("{name:?} cannot be the name of a secret")))?;
    let secret = Zeroizing::new(body);
    let text = secret.trim_end_matches(['\r', '\n']);
    if !SECRET_BYTES.contains(&text.len()) || text.contains(['\r', '\n']) {
        let what = "a secret is one line of 12 to 255 bytes (RFC 7143 §9.2.1)";
        return Err(Problem::malformed(what));
    }
    caller.audit(&format!("sets the secret state:{name}"));
    let text = Zeroizing::new(text.to_owned());
    blocking(move || plane.put_secret(&name, &text)).await??;
    Ok(StatusCode::NO_CONTENT)
}

fn changed(mut tree: Tree, request: &SetRequest) -> Answer<Tree> {
    for path in &request.unset {
        tree = unset(&tree, path)?;
    }
    for (path, value) in &request.set {
        tree = set_value(&tree, path, value)?;
    }
    Ok(tree)
}

/// A body of JSON, whatever its type is called.
pub(super) fn json<T: serde::de::DeserializeOwned>(body: &str) -> Answer<T> {
    let read = serde_json::from_str(body);
    read.map_err(|error| Problem::malformed(&format!("the body: {error}")))
}

//! Requests that change what is served, all of them through the gate.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Json;
use runtime::secret::SECRET_BYTES;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::body::{JsonBody, Segment, Text};
use super::{Answer, Caller, Problem, Role, Shared, blocking};
use crate::document::{set_all, unset};
use crate::gate::{Author, Candidate, ChangeRequest, Outcome};
use crate::plan::Allowed;
use crate::plane::Plane;
use crate::secret::SecretSource;
use crate::tree::Tree;

/// What a changing request says beside its candidate, and who asks for it. A dry run is for all
/// who may look.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    caller: Caller,
    based_on: Option<u64>,
    allowed: Allowed,
    absent_ok: bool,
    dry_run: bool,
}

/// The same of a request that only asks what would come of a change.
pub(crate) struct DryTerms(Terms);

impl<S: Sync> FromRequestParts<S> for Terms {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let terms = Self::read(parts, state).await?;
        if !terms.dry_run {
            terms.caller.must_be(Role::Operate)?;
        }
        Ok(terms)
    }
}

impl<S: Sync> FromRequestParts<S> for DryTerms {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let terms = Terms::read(parts, state).await?;
        Ok(Self(Terms {
            dry_run: true,
            ..terms
        }))
    }
}

impl Terms {
    async fn read<S: Sync>(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let mut terms = Self {
            caller: Caller::from_request_parts(parts, state).await?,
            based_on: based_on(parts)?,
            allowed: Allowed::default(),
            absent_ok: false,
            dry_run: false,
        };
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let Query(query) = query.map_err(|error| {
            Problem::malformed(&error.body_text())
                .at("the query")
                .way_out(PARAMETERS)
        })?;
        query
            .iter()
            .try_for_each(|(key, value)| terms.add(key, value))?;
        Ok(terms)
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        let wrong = |what: &str| Problem::malformed(what).at("the query");
        match (key, value) {
            ("dry-run", "") => self.dry_run = true,
            ("absent-ok", "") => self.absent_ok = true,
            ("dry-run" | "absent-ok", _) => {
                let what = format!("{key} takes no value");
                return Err(wrong(&what).way_out(PARAMETERS));
            }
            ("allow", allowed) => {
                let add = |one: &str| self.allowed.add(one);
                let mut all = allowed.split(',');
                all.try_for_each(add).map_err(|cause| wrong(&cause))?;
            }
            _ => {
                let what = format!("{key:?} is not a parameter of a change");
                return Err(wrong(&what).way_out(PARAMETERS));
            }
        }
        Ok(())
    }
}

/// What a change takes in its query.
const PARAMETERS: &str = "give dry-run, absent-ok or allow=cuts,loses=ROW";

impl Terms {
    fn request(self, candidate: Candidate) -> ChangeRequest {
        ChangeRequest {
            candidate,
            based_on: self.based_on,
            allowed: self.allowed,
            api_too: self.caller.must_be(Role::Admin).is_ok(),
            absent_ok: self.absent_ok,
            dry_run: self.dry_run,
        }
    }
}

/// The generation that the author has seen.
fn based_on(parts: &Parts) -> Result<Option<u64>, Problem> {
    let Some(written) = parts.headers.get("if-match") else {
        return Ok(None);
    };
    let number = written.to_str().ok().and_then(|text| {
        let quoted = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let number = quoted.unwrap_or(text);
        // `parse` takes a sign, too.
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_plain)
    });
    number.map(Some).ok_or_else(|| {
        Problem::malformed("If-Match is not the number of a generation")
            .at("If-Match")
            .way_out("give that of ETag, as in If-Match: \"17\"")
    })
}

/// Has the gate make a change.
pub(crate) async fn change(
    plane: Arc<Plane>,
    candidate: Candidate,
    terms: Terms,
) -> Answer<Json<Outcome>> {
    let caller = terms.caller.clone();
    let request = terms.request(candidate);
    made(caller, request.dry_run, move |author| {
        Ok(plane.change(&request, author)?)
    })
    .await
}

/// Has the gate change rows of what is served by then, so that no change of other rows is lost that
/// came first.
pub(super) async fn edit(
    plane: Arc<Plane>,
    terms: Terms,
    edit: impl FnOnce(&mut Tree) -> Answer<()> + Send + 'static,
) -> Answer<Json<Outcome>> {
    let (caller, dry_run) = (terms.caller.clone(), terms.dry_run);
    made(caller, dry_run, move |author| {
        plane.edit(author, dry_run, |tree| {
            let mut tree = Tree::clone(tree);
            edit(&mut tree)?;
            Ok(terms.request(Candidate::Tree(tree.into())))
        })
    })
    .await
}

async fn made(
    caller: Caller,
    dry_run: bool,
    make: impl FnOnce(&Author) -> Answer<Outcome> + Send + 'static,
) -> Answer<Json<Outcome>> {
    let result = blocking(move || {
        let result = make(&caller.author());
        if !dry_run {
            caller.audit(&told(&result));
        }
        result
    });
    Ok(Json(result.await??))
}

fn told(result: &Answer<Outcome>) -> String {
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
        Err(problem) => {
            let reasons = problem.detail.replace('\n', "; ");
            format!("is refused a change: {reasons}")
        }
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
    DryTerms(terms): DryTerms,
    Text(body): Text,
) -> Answer<Json<Outcome>> {
    change(plane, candidate(body), terms).await
}

pub(super) async fn apply(
    State(plane): Shared,
    terms: Terms,
    Text(body): Text,
) -> Answer<Json<Outcome>> {
    change(plane, candidate(body), terms).await
}

pub(super) async fn put_config(
    State(plane): Shared,
    terms: Terms,
    Text(body): Text,
) -> Answer<Json<Outcome>> {
    change(plane, Candidate::Text(body), terms).await
}

pub(super) async fn rollback(
    State(plane): Shared,
    terms: Terms,
    Segment(generation): Segment<u64>,
) -> Answer<Json<Outcome>> {
    change(plane, Candidate::Generation(generation), terms).await
}

/// Values to set, and paths to take away.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// Values to set: paths such as `volume.db.limit.iops`, each once, and what stands there then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(String, String)>,
    /// Paths to take away, before any is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

pub(super) async fn set(
    State(plane): Shared,
    terms: Terms,
    JsonBody(request): JsonBody<SetRequest>,
) -> Answer<Json<Outcome>> {
    edit(plane, terms, move |tree| {
        for path in &request.unset {
            unset(tree, path)?;
        }
        Ok(set_all(tree, &request.set)?)
    })
    .await
}

/// The body is the secret. It is never shown again.
pub(super) async fn put_secret(
    State(plane): Shared,
    caller: Caller,
    Segment(name): Segment<String>,
    Text(body): Text,
) -> Answer<StatusCode> {
    let source: Result<SecretSource, _> = format!("state:{name}").parse();
    source.map_err(|_| {
        Problem::malformed(&format!("{name:?} cannot be the name of a secret"))
            .at("the path")
            .way_out("use A-Z, a-z, 0-9, '.', '_' and '-', the first one not '.'")
    })?;
    let secret = Zeroizing::new(body);
    let text = secret.trim_end_matches(['\r', '\n']);
    if !SECRET_BYTES.contains(&text.len()) || text.contains(['\r', '\n']) {
        let what = "a secret is one line of 12 to 255 bytes (RFC 7143 §9.2.1)";
        return Err(Problem::malformed(what).at("the body"));
    }
    caller.audit(&format!("sets the secret state:{name}"));
    let text = Zeroizing::new(text.to_owned());
    blocking(move || plane.put_secret(&name, &text, &caller.author())).await??;
    Ok(StatusCode::NO_CONTENT)
}

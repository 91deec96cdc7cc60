//! The API: HTTP/1.1 with JSON over a Unix socket and, where the tree says so, over TCP.
//!
//! | path | | |
//! |---|---|---|
//! | `/v1/status` | GET | generation, counts, alarms |
//! | `/v1/config` | GET, PUT | the document, as TOML |
//! | `/v1/plan`, `/v1/apply` | POST | a document, or without a body the file as it was edited |
//! | `/v1/set` | POST | one value by its path |
//! | `/v1/history`, `/v1/history/N` | GET | generations, and the document of one |
//! | `/v1/rollback/N` | POST | an earlier generation |
//! | `/v1/{volumes,groups,targets,switches}` | GET | rows |
//! | `/v1/{volumes,groups,targets,switches}/NAME` | GET, PUT, PATCH, DELETE | a row |
//! | `/v1/fabrics` | GET | what switches have: ports, logins, counters |
//! | `/v1/tokens`, `/v1/tokens/NAME` | GET, POST, DELETE | what clients over TCP show |
//! | `/v1/secrets/NAME` | PUT | keeps a secret, which a tree names `state:NAME` |
//! | `/v1/stats`, `/metrics` | GET | counters of volumes, as JSON and for Prometheus |
//! | `/v1/alarms` | GET | what somebody should look at |
//! | `/v1/events` | GET | what happens, as it does |
//! | `/v1/reservations` | GET | which hosts have reserved volumes |
//! | `/v1/jobs` | GET | what takes its time |
//! | `/openapi.json` | GET | the description of all this |
//! | `/v1/sessions`, `/v1/sessions/ID` | GET, DELETE | sessions, and the end of one |
//!
//! What changes something takes `?dry-run`, `?allow=cuts,loses=ROW`, `?absent-ok` and
//! `If-Match: GENERATION`, and answers with the plan. Errors are problems of RFC 9457.

mod body;
mod caller;
mod changes;
mod connections;
mod description;
mod events;
mod jobs;
mod listeners;
mod openapi;
mod problem;
mod reservations;
mod routes;
mod rows;
mod socket;
mod tokens;
mod users;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Json, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

pub use crate::alarm::Alarm;
use crate::gate::Generation;
use crate::metrics::ScrapeRequest;
pub use crate::plane::Fabric;
use crate::plane::{Plane, Session, SessionEnd, Unanswered};
pub use body::BODY_BYTES;
use body::Segment;
pub use caller::{Caller, Role};
pub use changes::SetRequest;
pub use jobs::{Job, JobKind, JobState};
pub use listeners::{ApiListeners, PreparedListeners};
pub use openapi::openapi;
pub use problem::Problem;
pub use reservations::{NexusPorts, NexusRegistration, VolumeReservation, VolumeReservations};
pub(crate) use socket::{ApiSocket, listen, serve};
pub(crate) use tokens::Tokens;
pub use tokens::{NewToken, ShownToken, TokenInfo};

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The generation that is served.
    pub generation: u64,
    /// The configuration file.
    pub config: String,
    /// The configuration file was edited and not applied.
    pub edited: bool,
    /// How many volumes there are.
    pub volumes: usize,
    /// How many targets there are.
    pub targets: usize,
    /// How many switches there are.
    #[serde(default)]
    pub switches: usize,
    /// How many sessions there are; missing where the cores do not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sessions: Option<usize>,
    /// What somebody should look at.
    pub alarms: Vec<String>,
}

/// What the handlers use.
#[derive(Clone)]
pub(crate) struct ApiState {
    plane: Arc<Plane>,
    tokens: Arc<Tokens>,
    /// Room for readers of events.
    readers: Arc<Semaphore>,
}

impl ApiState {
    pub(crate) fn new(plane: Arc<Plane>, tokens: Arc<Tokens>) -> Self {
        Self {
            plane,
            tokens,
            readers: Arc::new(Semaphore::new(events::READERS)),
        }
    }
}

impl FromRef<ApiState> for Arc<Tokens> {
    fn from_ref(state: &ApiState) -> Self {
        Self::clone(&state.tokens)
    }
}

impl FromRef<ApiState> for Arc<Plane> {
    fn from_ref(state: &ApiState) -> Self {
        Self::clone(&state.plane)
    }
}

/// The control plane, for a handler.
pub(crate) type Shared = State<Arc<Plane>>;

/// What a handler answers.
pub(crate) type Answer<T> = Result<T, Problem>;

/// All routes. Who asks is found out first, then whether it may, and then what it asks.
pub(crate) fn router(state: ApiState) -> Router {
    let mut router = Router::new();
    #[cfg(test)]
    {
        router = router.route("/v1/panic", axum::routing::get(tests::problems::panics));
    }
    for route in routes::all() {
        let may = from_fn_with_state(route.entry(), caller::require);
        router = router.route(route.path, route.handler.route_layer(may));
    }
    router
        .fallback(async || Problem::no_path())
        .method_not_allowed_fallback(async || Problem::method())
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn_with_state(state.clone(), caller::authenticate))
        .layer(from_fn(contained))
        .with_state(state)
}

/// A handler that panics has failed; its connection and all others go on.
async fn contained(request: Request, next: Next) -> Response {
    let mut running = pin!(next.run(request));
    poll_fn(|context| {
        let poll = || running.as_mut().poll(context);
        catch_unwind(AssertUnwindSafe(poll))
            .unwrap_or_else(|_| Poll::Ready(Problem::internal().into_response()))
    })
    .await
}

async fn status(State(plane): Shared) -> Answer<Json<Status>> {
    blocking(move || {
        let served = plane.served();
        Json(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            generation: served.generation,
            config: plane.config().display().to_string(),
            edited: plane.is_edited(),
            volumes: served.tree.volume.len(),
            targets: served.tree.target.len(),
            switches: served.tree.switch.len(),
            sessions: plane.sessions().ok().map(|sessions| sessions.len()),
            alarms: plane.alarms().iter().map(Alarm::to_string).collect(),
        })
    })
    .await
}

async fn config(State(plane): Shared) -> Answer<Response> {
    let served = plane.served();
    Ok(document(served.generation, served.text.to_string()))
}

/// A document, with the generation by which it can be changed.
fn document(generation: u64, text: String) -> Response {
    let headers = [
        ("content-type", "application/toml".to_owned()),
        ("etag", format!("\"{generation}\"")),
    ];
    (headers, text).into_response()
}

async fn history(State(plane): Shared) -> Answer<Json<Vec<Generation>>> {
    blocking(move || Json(plane.history())).await
}

async fn generation(State(plane): Shared, Segment(number): Segment<u64>) -> Answer<Response> {
    let text = blocking(move || plane.text_of(number)).await?;
    let text = text.ok_or_else(|| {
        Problem::not_found(&format!("generation {number} is not kept"))
            .way_out("lunar history lists those that are")
    })?;
    Ok(document(number, text))
}

async fn alarms(State(plane): Shared) -> Answer<Json<Vec<Alarm>>> {
    blocking(move || Json(plane.alarms())).await
}

async fn sessions(State(plane): Shared) -> Answer<Json<Vec<Session>>> {
    let sessions = blocking(move || plane.sessions()).await?;
    Ok(Json(sessions?))
}

async fn fabrics(State(plane): Shared) -> Answer<Json<Vec<Fabric>>> {
    blocking(move || Json(plane.fabrics())).await
}

async fn metrics(
    State(plane): Shared,
    headers: HeaderMap,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer<Response> {
    let accept = headers
        .get("accept")
        .and_then(|accept| accept.to_str().ok());
    let request = ScrapeRequest::new(&query, accept.unwrap_or_default());
    let request = request.map_err(|cause| Problem::malformed(&cause))?;
    if let Some(name) = &request.volume
        && !plane.served().tree.volume.contains_key(name)
    {
        return Err(rows::no_row("volume", name));
    }
    let kind = request.format.content_type();
    let text = blocking(move || crate::metrics::metrics(&plane, &request)).await?;
    Ok(([("content-type", kind)], text).into_response())
}

async fn drop_session(
    State(plane): Shared,
    caller: Caller,
    Segment(id): Segment<u16>,
) -> Answer<StatusCode> {
    let author = caller.author();
    let end = blocking(move || plane.drop_session(id, &author)).await??;
    if end != SessionEnd::Unknown {
        caller.audit(&format!("ends session {id}"));
    }
    match end {
        SessionEnd::Ended => Ok(StatusCode::NO_CONTENT),
        SessionEnd::Unknown => Err(Problem::not_found(&format!("there is no session {id}"))
            .way_out("lunar sessions lists those that there are")),
        SessionEnd::Late => Err(
            Problem::late(&format!("session {id} has not ended within 5 s"))
                .way_out("it ends when its commands do: lunar sessions tells whether it is there"),
        ),
        SessionEnd::Unanswered => Err(Unanswered.into()),
    }
}

/// Does what may block on a thread for that; where it panics, one request has failed.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Answer<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::internal())
}

#[cfg(test)]
mod tests;

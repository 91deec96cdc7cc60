//! The API: HTTP/1.1 with JSON over a Unix socket.
//!
//! | path | | |
//! |---|---|---|
//! | `/v1/status` | GET | generation, counts, alarms |
//! | `/v1/config` | GET, PUT | the document, as TOML |
//! | `/v1/plan`, `/v1/apply` | POST | a document, or without a body the file as it was edited |
//! | `/v1/set` | POST | one value by its path |
//! | `/v1/history`, `/v1/history/N` | GET | generations, and the document of one |
//! | `/v1/rollback/N` | POST | an earlier generation |
//! | `/v1/{volumes,groups,targets}` | GET | rows |
//! | `/v1/{volumes,groups,targets}/NAME` | GET, PUT, PATCH, DELETE | a row |
//! | `/v1/secrets/NAME` | PUT | keeps a secret, which a tree names `state:NAME` |
//! | `/v1/stats`, `/metrics` | GET | counters of volumes, as JSON and for Prometheus |
//! | `/v1/sessions`, `/v1/sessions/ID` | GET, DELETE | sessions, and the end of one |
//!
//! What changes something takes `?dry-run`, `?allow=cuts,loses=ROW`, `?absent-ok` and
//! `If-Match: GENERATION`, and answers with the plan. Errors are problems of RFC 9457.

mod caller;
mod changes;
mod problem;
mod rows;
mod socket;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::Poll;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get, post, put};
use serde::{Deserialize, Serialize};

use crate::gate::Generation;
use crate::metrics::VolumeStats;
use crate::plane::{Plane, Session};
pub use caller::{Caller, Role};
pub use changes::SetRequest;
pub use problem::Problem;
pub(crate) use socket::{ApiSocket, listen, serve};

/// The most bytes of a request's body.
pub const BODY_BYTES: usize = 4 << 20;

/// How the daemon is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// The generation that is served.
    pub generation: u64,
    /// The configuration file was edited and not applied.
    pub edited: bool,
    /// How many volumes there are.
    pub volumes: usize,
    /// How many targets there are.
    pub targets: usize,
    /// How many sessions there are.
    pub sessions: usize,
    /// What somebody should look at.
    pub alarms: Vec<String>,
}

/// What the handlers use.
pub(crate) type Shared = State<Arc<Plane>>;

/// What a handler answers.
pub(crate) type Answer<T> = Result<T, Problem>;

/// All routes.
pub fn router(plane: Arc<Plane>) -> Router {
    let row = get(rows::one)
        .put(rows::put)
        .patch(rows::patch)
        .delete(rows::remove);
    let routes = Router::new();
    #[cfg(test)]
    let routes = routes.route("/v1/panic", get(tests::panics));
    routes
        .route("/v1/status", get(status))
        .route("/v1/config", get(config).put(changes::put_config))
        .route("/v1/plan", post(changes::plan))
        .route("/v1/apply", post(changes::apply))
        .route("/v1/set", post(changes::set))
        .route("/v1/history", get(history))
        .route("/v1/history/{generation}", get(generation))
        .route("/v1/rollback/{generation}", post(changes::rollback))
        .route("/v1/secrets/{name}", put(changes::put_secret))
        .route("/v1/stats", get(stats))
        .route("/metrics", get(metrics))
        .route("/v1/{section}", get(rows::all))
        .route("/v1/{section}/{name}", row)
        .route("/v1/sessions", get(sessions))
        .route("/v1/sessions/{id}", delete(drop_session))
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || Problem::method())
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(from_fn(contained))
        .with_state(plane)
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

async fn status(State(plane): Shared, caller: Caller) -> Answer<Json<Status>> {
    caller.must_be(Role::View)?;
    blocking(move || {
        let served = plane.served();
        Json(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            generation: served.generation,
            edited: plane.is_edited(),
            volumes: served.tree.volume.len(),
            targets: served.tree.target.len(),
            sessions: plane.sessions().len(),
            alarms: plane.alarms(),
        })
    })
    .await
}

async fn config(State(plane): Shared, caller: Caller) -> Answer<Response> {
    caller.must_be(Role::View)?;
    let served = plane.served();
    Ok(document(served.generation, served.text.clone()))
}

/// A document, with the generation by which it can be changed.
fn document(generation: u64, text: String) -> Response {
    let headers = [
        ("content-type", "application/toml".to_owned()),
        ("etag", format!("\"{generation}\"")),
    ];
    (headers, text).into_response()
}

async fn history(State(plane): Shared, caller: Caller) -> Answer<Json<Vec<Generation>>> {
    caller.must_be(Role::View)?;
    blocking(move || Json(plane.history())).await
}

async fn generation(
    State(plane): Shared,
    caller: Caller,
    Path(written): Path<String>,
) -> Answer<Response> {
    caller.must_be(Role::View)?;
    let number = number(&written)?;
    let text = blocking(move || plane.text_of(number)).await?;
    let text = text.ok_or_else(|| {
        Problem::not_found(&format!("generation {number} is not kept"))
            .way_out("lunar history lists those that are")
    })?;
    Ok(document(number, text))
}

async fn sessions(State(plane): Shared, caller: Caller) -> Answer<Json<Vec<Session>>> {
    caller.must_be(Role::View)?;
    blocking(move || Json(plane.sessions())).await
}

async fn stats(State(plane): Shared, caller: Caller) -> Answer<Json<Vec<VolumeStats>>> {
    caller.must_be(Role::View)?;
    blocking(move || Json(plane.stats())).await
}

async fn metrics(State(plane): Shared, caller: Caller) -> Answer<Response> {
    caller.must_be(Role::View)?;
    let text = blocking(move || crate::metrics::metrics(&plane)).await?;
    Ok(([("content-type", "text/plain; version=0.0.4")], text).into_response())
}

async fn drop_session(
    State(plane): Shared,
    caller: Caller,
    Path(written): Path<String>,
) -> Answer<StatusCode> {
    caller.must_be(Role::Operate)?;
    let id = number(&written)?;
    let what = format!("ends session {id}");
    caller.audit(&what);
    match blocking(move || plane.drop_session(id)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found(&format!("there is no session {id}"))
            .way_out("lunar sessions lists those that there are")),
    }
}

/// A number in a path.
fn number<T: FromStr>(written: &str) -> Answer<T> {
    let wrong = |_| {
        Problem::malformed(&format!(
            "{written:?} is not a number that could stand here"
        ))
    };
    written.parse().map_err(wrong)
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

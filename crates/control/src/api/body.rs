//! The body and the path of a request, read so that all that is wrong with them is a [`Problem`].

use std::str::FromStr;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::{Answer, Problem};

/// The most bytes of a body.
pub const BODY_BYTES: usize = 4 << 20;

/// How long a body may take, so that a client that sends nothing gives its place back.
const BODY_TIME: Duration = Duration::from_secs(30);

/// What curl says of `--data` if it is not told otherwise.
const FORM: &str = "application/x-www-form-urlencoded";

/// A document, or another text.
pub(super) struct Text(pub(super) String);

/// A value in JSON.
pub(super) struct JsonBody<T>(pub(super) T);

/// The one segment of a path that is not fixed.
pub(super) struct Segment<T>(pub(super) T);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_text = |kind: &str| {
            kind.starts_with("text/")
                || ["application/toml", "application/octet-stream", FORM].contains(&kind)
        };
        must_be(&request, is_text, "application/toml or text/plain")?;
        text(request, state).await.map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json =
            |kind: &str| kind == "application/json" || kind.ends_with("+json") || kind == FORM;
        must_be(&request, is_json, "application/json")?;
        let text = text(request, state).await?;
        let read = serde_json::from_str(&text);
        read.map(Self).map_err(|error| not_json(&error))
    }
}

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Segment<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let segment = Path::<String>::from_request_parts(parts, state).await;
        let Path(written) = segment
            .map_err(|_| Problem::malformed("a name in the path is not UTF-8").at("the path"))?;
        let wrong = |_| {
            let what = format!("{written:?} is not a number that could stand here");
            Problem::malformed(&what).at("the path")
        };
        written.parse().map(Self).map_err(wrong)
    }
}

/// Refuses a body that says of itself that it is something else. One that says nothing is taken.
fn must_be(request: &Request, fits: impl Fn(&str) -> bool, way_out: &str) -> Answer<()> {
    let Some(written) = request.headers().get(CONTENT_TYPE) else {
        return Ok(());
    };
    let written = written.to_str().unwrap_or_default();
    let kind = written.split(';').next().unwrap_or_default().trim();
    if fits(&kind.to_ascii_lowercase()) {
        return Ok(());
    }
    Err(Problem::kind(&format!("{written:?} is not taken here"))
        .at("Content-Type")
        .way_out(&format!("send {way_out}")))
}

async fn text<S: Send + Sync>(request: Request, state: &S) -> Answer<String> {
    // What it says of itself is believed before it is sent.
    if request.body().size_hint().lower() > BODY_BYTES as u64 {
        return Err(Problem::too_large(BODY_BYTES));
    }
    let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await;
    let bytes = read
        .map_err(|_| Problem::slow())?
        .map_err(|cause| not_read(&cause))?;
    let not_text = |_| {
        Problem::malformed("the body is not UTF-8")
            .at("the body")
            .way_out("send it as UTF-8")
    };
    String::from_utf8(bytes.into()).map_err(not_text)
}

fn not_read(cause: &BytesRejection) -> Problem {
    match cause.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(BODY_BYTES),
        _ => Problem::malformed("the body has broken off").at("the body"),
    }
}

/// serde_json writes the place behind the cause.
fn not_json(error: &serde_json::Error) -> Problem {
    let place = format!("line {}, column {}", error.line(), error.column());
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Problem::malformed(&crate::document::in_words(what))
        .at(&format!("the body, {place}"))
        .way_out("send JSON as lunar manual api describes it")
}

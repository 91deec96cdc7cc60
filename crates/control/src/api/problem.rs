//! What is wrong with a request, as RFC 9457 has it: `application/problem+json`.

use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::caller::Role;
use crate::check::TreeProblem;
use crate::document::{DocumentProblem, SetError};
use crate::gate::{GateError, Outcome};
use crate::plane::Unanswered;

/// What is wrong, where, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The status code.
    pub status: u16,
    /// What kind of problem it is.
    pub title: String,
    /// What is wrong, in lines.
    pub detail: String,
    /// Where it is wrong: a file, a row and key, a line and column, or a part of the request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub way_out: Option<String>,
    /// What the change would have done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Outcome>)]
    pub outcome: Option<Box<Outcome>>,
}

/// What each status means that is not a success.
pub(super) const STATUSES: &[(u16, &str)] = &[
    (400, "malformed: the request is"),
    (
        401,
        "unauthorized: there is no token, or one that does not count",
    ),
    (
        403,
        "forbidden: the role does less than this, or the change is one of `[api]`",
    ),
    (404, "not found: there is nothing of this name"),
    (408, "too slow: the body has not come within 30 s"),
    (
        409,
        "refused: more would come of it than was allowed, as `outcome` tells. edited: the file \
         was, by hand. no file: it is missing. failed, conflict, cannot be kept: something cannot \
         be had",
    ),
    (
        412,
        "stale: another generation is served than that of If-Match",
    ),
    (413, "too large: the body has more than 4 MiB"),
    (
        415,
        "unsupported media type: the body says that it is something else",
    ),
    (422, "invalid: the document or a row does not fit together"),
    (
        500,
        "failed: the handler has; what is served goes on. not kept: a token is revoked, and comes \
         back at the next start if it cannot be kept until then",
    ),
    (
        503,
        "crowded: there are 16 readers of events already. busy: another change has been under way \
         for 20 s, or 15 wait for it. full: this listener has 64 connections already",
    ),
    (
        504,
        "too late: the cores have not answered within 5 s, or a session has not ended in that time",
    ),
];

impl Problem {
    fn new(status: StatusCode, title: &str, detail: &str) -> Self {
        Self {
            status: status.as_u16(),
            title: title.to_owned(),
            detail: detail.to_owned(),
            at: None,
            way_out: None,
            outcome: None,
        }
    }

    pub(super) fn way_out(self, way_out: &str) -> Self {
        Self {
            way_out: Some(way_out.to_owned()),
            ..self
        }
    }

    pub(super) fn at(self, at: &str) -> Self {
        Self {
            at: Some(at.to_owned()).filter(|at| !at.is_empty()),
            ..self
        }
    }

    pub(super) fn malformed(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub(super) fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found", detail)
    }

    pub(super) fn no_path() -> Self {
        Self::not_found("there is nothing at this path")
            .at("the path")
            .way_out("lunar manual api lists the paths that there are")
    }

    pub(super) fn method() -> Self {
        let what = "this path takes other methods";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "not allowed here", what)
            .at("the method")
            .way_out("the header Allow lists those that it takes")
    }

    pub(super) fn no_token() -> Self {
        let what = "who asks over TCP has to show a token";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", what)
            .at("Authorization")
            .way_out("send Authorization: Bearer TOKEN; POST /v1/tokens makes one")
    }

    pub(super) fn wrong_token() -> Self {
        let what = "this token does not count, or does not any more";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", what)
            .at("Authorization")
            .way_out("GET /v1/tokens lists those that do; POST /v1/tokens makes one")
    }

    pub(super) fn conflict(detail: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    /// What is asked of the cores has not come in time.
    pub(super) fn late(detail: &str) -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "too late", detail)
    }

    /// It was done, and does not outlive the daemon yet.
    pub(super) fn not_kept(detail: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "not kept", detail)
    }

    pub(super) fn crowded(most: usize) -> Self {
        let what = format!("{most} readers of events are there already");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "crowded", &what)
            .way_out("end one of them, or ask again later")
    }

    pub(super) fn full(most: usize) -> Self {
        let what = format!("the API has {most} connections here already, and takes no more");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "full", &what).way_out(
            "ask again later, as one that sends no request is closed after 30 s, or end the \
             programs that hold them open (ss -x -p, ss -t -p)",
        )
    }

    pub(super) fn kind(detail: &str) -> Self {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        Self::new(status, "unsupported media type", detail)
    }

    pub(super) fn too_large(most: usize) -> Self {
        let what = format!("the body has more than {} MiB", most >> 20);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too large", &what)
            .at("the body")
            .way_out("change rows one by one, or write the file and use /v1/apply without a body")
    }

    pub(super) fn slow() -> Self {
        let what = "the body has not come within 30 s";
        Self::new(StatusCode::REQUEST_TIMEOUT, "too slow", what)
            .at("the body")
            .way_out("send it again")
    }

    pub(super) fn internal() -> Self {
        let what = "the handler has failed, which the log tells; what is served goes on";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", what)
            .way_out("read the log of the daemon, and report what it says")
    }

    pub(super) fn forbidden(who: &str, least: Role) -> Self {
        let (group, role) = match least {
            Role::View => ("lunar-view or lunar", "look"),
            Role::Operate => ("lunar", "change anything"),
            _ => ("root", "do this"),
        };
        Self::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            &format!("{who} may not {role}"),
        )
        .way_out(&format!(
            "ask as root, as a member of the group {group}, or with a token of such a role"
        ))
    }
}

impl From<GateError> for Problem {
    fn from(error: GateError) -> Self {
        let (status, title) = match &error {
            GateError::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale"),
            GateError::Edited(_) => (StatusCode::CONFLICT, "edited"),
            GateError::NoFile(_) => (StatusCode::CONFLICT, "no file"),
            GateError::Document(_) | GateError::Tree(_) | GateError::InFile { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid")
            }
            GateError::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            GateError::Api => (StatusCode::FORBIDDEN, "forbidden"),
            GateError::NoRow(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            GateError::Refused { .. } => (StatusCode::CONFLICT, "refused"),
            GateError::NoGeneration(_) => (StatusCode::NOT_FOUND, "not found"),
            GateError::Failed(_) => (StatusCode::CONFLICT, "failed"),
            GateError::Store(_) => (StatusCode::CONFLICT, "cannot be kept"),
        };
        let problem = Self::new(status, title, &error.to_string());
        match error {
            GateError::Refused { outcome, .. } => {
                let allow = outcome.plan.needs().join(",");
                Self {
                    detail: "more would come of it than is allowed".to_owned(),
                    outcome: Some(outcome),
                    ..problem.way_out(&format!("allow={allow} in the query"))
                }
            }
            GateError::InFile { file, cause } => Self::from(*cause).in_file(file),
            GateError::Document(found) => problem.in_document(found),
            GateError::Tree(found) => match &*found {
                [one] => problem.in_tree(one),
                _ => problem,
            },
            GateError::Api => problem
                .at("api")
                .way_out("leave [api] as it is, or ask as root or with a token of the role admin"),
            _ => problem,
        }
    }
}

impl Problem {
    fn in_file(self, file: String) -> Self {
        let places: Vec<_> = [Some(file), self.at.clone()]
            .into_iter()
            .flatten()
            .collect();
        self.at(&places.join(": "))
    }

    fn in_document(self, found: DocumentProblem) -> Self {
        let place = found.place;
        let place = place.map(|at| format!("line {}, column {}", at.line, at.column));
        let key = Some(found.key).filter(|key| !key.is_empty());
        let places: Vec<_> = place.into_iter().chain(key).collect();
        Self {
            detail: found.what,
            way_out: found.way_out,
            ..self.at(&places.join(": "))
        }
    }

    fn in_tree(self, found: &TreeProblem) -> Self {
        Self {
            detail: found.what.clone(),
            ..self.at(&found.at).way_out(&found.way_out)
        }
    }
}

impl From<Unanswered> for Problem {
    fn from(cause: Unanswered) -> Self {
        Self::late(&cause.to_string()).way_out("ask again; /v1/alarms tells whether it stays so")
    }
}

impl From<SetError> for Problem {
    fn from(error: SetError) -> Self {
        let what = error.to_string();
        let invalid = || Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", &what);
        match error {
            SetError::NotSet(_) => Self::not_found(&what),
            SetError::Value { path, cause } => Self {
                detail: cause,
                ..invalid().at(&path)
            },
            SetError::Path(_) | SetError::NewTarget(_) | SetError::Twice(_) => invalid(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(CONTENT_TYPE, kind)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

//! What is wrong with a request, as RFC 9457 has it: `application/problem+json`.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::caller::Role;
use crate::document::SetError;
use crate::gate::{GateError, Outcome};

/// What is wrong, where, and the way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The status code.
    pub status: u16,
    /// What kind of problem it is.
    pub title: String,
    /// What is wrong, in lines.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub way_out: Option<String>,
    /// What the change would have done.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<Box<Outcome>>,
}

impl Problem {
    fn new(status: StatusCode, title: &str, detail: &str) -> Self {
        Self {
            status: status.as_u16(),
            title: title.to_owned(),
            detail: detail.to_owned(),
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

    pub(super) fn malformed(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub(super) fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found", detail)
    }

    pub(super) fn method() -> Self {
        let what = "this path takes other methods";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "not allowed here", what)
    }

    pub(super) fn internal() -> Self {
        let what = "the handler has failed, which the log tells; what is served goes on";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", what)
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
        .way_out(&format!("ask as root, or as a member of the group {group}"))
    }
}

impl From<GateError> for Problem {
    fn from(error: GateError) -> Self {
        let (status, title) = match &error {
            GateError::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale"),
            GateError::Edited(_) => (StatusCode::CONFLICT, "edited"),
            GateError::Document(_) | GateError::Tree(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid")
            }
            GateError::Refused { .. } => (StatusCode::CONFLICT, "refused"),
            GateError::NoGeneration(_) => (StatusCode::NOT_FOUND, "not found"),
            GateError::Failed(_) => (StatusCode::CONFLICT, "failed"),
            GateError::Store(_) => (StatusCode::CONFLICT, "cannot be kept"),
        };
        let mut problem = Self::new(status, title, &error.to_string());
        if let GateError::Refused { outcome, way_out } = error {
            problem.outcome = Some(outcome);
            problem.way_out = Some(way_out);
        }
        problem
    }
}

impl From<SetError> for Problem {
    fn from(error: SetError) -> Self {
        let status = match error {
            SetError::NotSet(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, "invalid", &error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let body = serde_json::to_string(&self).unwrap_or_default();
        (status, [(CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}

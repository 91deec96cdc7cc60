//! `/v1/jobs`: what takes its time, while it does.
//!
//! A change of what is served is one, with all that it opens, reserves and makes longer; so are
//! those that wait for it. A volume or a portal that is missing is tried again until it is back. A
//! host formats or sanitizes a volume. What is done is no job any more: history and log tell of it.

use std::time::Duration;

use axum::extract::State;
use axum::response::Json;
use engine::server::LongOperationReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Answer, Shared, blocking};
use crate::plane::{Plane, TurnInfo};

/// Something that takes its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// What kind it is.
    pub kind: JobKind,
    /// How it stands.
    pub state: JobState,
    /// The row that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// What it is, in a line.
    pub detail: String,
    /// For how long it has been there, in seconds, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub age_s: Option<u64>,
    /// How much of it is done, from 0 to 1, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress: Option<f64>,
}

/// What takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobKind {
    /// What is served changes.
    Change,
    /// A volume is absent, and tried again.
    Volume,
    /// Nothing listens at a portal, and it is tried again.
    Portal,
    /// A host formats a volume (FORMAT UNIT).
    Format,
    /// A host sanitizes a volume (SANITIZE).
    Sanitize,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobState {
    /// It goes on.
    Running,
    /// It waits for something else.
    Waiting,
    /// It has failed, and what it was about cannot be used until it is done again.
    Failed,
}

pub(super) async fn jobs(State(plane): Shared) -> Answer<Json<Vec<Job>>> {
    Ok(Json(blocking(move || of(&plane)).await?))
}

/// Where the cores do not answer, of which there is an alarm, what hosts have begun is left out.
fn of(plane: &Plane) -> Vec<Job> {
    let mut jobs: Vec<_> = plane.turns().into_iter().map(change).collect();
    jobs.extend(plane.absent().into_iter().map(volume));
    jobs.extend(plane.missing_portals().into_iter().map(portal));
    let operations = plane.long_operations().unwrap_or_default();
    jobs.extend(operations.iter().map(operation));
    jobs
}

fn change(turn: TurnInfo) -> Job {
    let (state, does) = if turn.is_under_way {
        (JobState::Running, "is made")
    } else {
        (JobState::Waiting, "waits for the one before")
    };
    let author = turn.author;
    Job {
        kind: JobKind::Change,
        state,
        at: None,
        detail: format!("a change by {} ({}) {does}", author.who, author.by),
        age_s: Some(turn.age.as_secs()),
        progress: None,
    }
}

fn volume((name, age): (String, Duration)) -> Job {
    Job {
        kind: JobKind::Volume,
        state: JobState::Waiting,
        at: Some(format!("volume.{name}")),
        detail: "what holds its blocks cannot be opened: it is tried again every 5 s".to_owned(),
        age_s: Some(age.as_secs()),
        progress: None,
    }
}

fn portal((_, detail): (String, String)) -> Job {
    Job {
        kind: JobKind::Portal,
        state: JobState::Waiting,
        at: None,
        detail: format!("{detail}: it is tried again every 5 s"),
        age_s: None,
        progress: None,
    }
}

fn operation(told: &LongOperationReport) -> Job {
    let (kind, command) = match told.kind {
        "format" => (JobKind::Format, "FORMAT UNIT"),
        _ => (JobKind::Sanitize, "SANITIZE"),
    };
    let (state, detail) = match told.progress {
        Some(_) => (JobState::Running, format!("a host has sent {command}")),
        None => (
            JobState::Failed,
            format!("{command} has failed: no host can use it until one goes well"),
        ),
    };
    Job {
        kind,
        state,
        at: Some(format!("volume.{}", told.unit)),
        detail,
        age_s: None,
        progress: told.progress,
    }
}

#[cfg(test)]
mod tests;

//! `/v1/alarms`: what somebody should look at, now.

use axum::extract::State;
use axum::response::Json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Answer, Shared, blocking};
use crate::plane::Plane;

/// Something that somebody should look at. It goes by itself when its cause does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// What kind it is: `start`, `edited` or `absent`.
    pub kind: String,
    /// The row that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// What is wrong, in lines.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub way_out: Option<String>,
}

pub(super) async fn alarms(State(plane): Shared) -> Answer<Json<Vec<Alarm>>> {
    blocking(move || Json(of(&plane))).await
}

fn of(plane: &Plane) -> Vec<Alarm> {
    let mut alarms: Vec<_> = plane.alarms().into_iter().map(start).collect();
    if plane.is_edited() {
        alarms.push(edited(plane.served().generation));
    }
    let absent = plane.stats().into_iter().filter(|volume| volume.absent);
    alarms.extend(absent.map(|volume| self::absent(&volume.volume)));
    alarms
}

/// Told at the start, until something is applied.
fn start(detail: String) -> Alarm {
    Alarm {
        kind: "start".to_owned(),
        at: None,
        detail,
        way_out: None,
    }
}

fn edited(generation: u64) -> Alarm {
    Alarm {
        kind: "edited".to_owned(),
        at: None,
        detail: "the configuration file was edited and not applied".to_owned(),
        way_out: Some(format!(
            "lunar plan shows what has changed, lunar apply takes it, lunar rollback {generation} \
             drops it"
        )),
    }
}

fn absent(volume: &str) -> Alarm {
    Alarm {
        kind: "absent".to_owned(),
        at: Some(format!("volume.{volume}")),
        detail: "what holds its blocks cannot be opened, and hosts are told NOT READY".to_owned(),
        way_out: Some("bring it back: it is tried again every 5 s".to_owned()),
    }
}

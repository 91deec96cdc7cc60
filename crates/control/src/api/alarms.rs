//! `/v1/alarms`: what somebody should look at, now.

use axum::extract::State;
use axum::response::Json;

use super::{Answer, Shared, blocking};
use crate::alarm::Alarm;

pub(super) async fn alarms(State(plane): Shared) -> Answer<Json<Vec<Alarm>>> {
    blocking(move || Json(plane.alarms())).await
}

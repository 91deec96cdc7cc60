//! Rows of the tree, one by one.

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::body::{JsonBody, Segment};
use super::changes::{Terms, edit};
use super::routes::Section;
use super::{Answer, Problem, Shared};
use crate::gate::Outcome;
use crate::plane::Served;
use crate::tree::Tree;

pub(super) async fn all<S: Section>(State(plane): Shared) -> Answer<Response> {
    let served = plane.served();
    Ok(tagged(&served, value(S::rows(&served.tree))))
}

pub(super) async fn one<S: Section>(
    State(plane): Shared,
    Segment(name): Segment<String>,
) -> Answer<Response> {
    let served = plane.served();
    let row = S::rows(&served.tree).get(&name);
    let row = row.ok_or_else(|| no_row(S::KEY, &name))?;
    Ok(tagged(&served, value(row)))
}

pub(super) async fn put<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
    JsonBody(row): JsonBody<Value>,
) -> Answer<Json<Outcome>> {
    edit(plane, terms, move |tree| put_row::<S>(tree, name, row)).await
}

/// A merge patch (RFC 7396).
pub(super) async fn patch<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
    JsonBody(changes): JsonBody<Value>,
) -> Answer<Json<Outcome>> {
    edit(plane, terms, move |tree| {
        let row = S::rows(tree).get(&name);
        let mut row = row.map(value).ok_or_else(|| no_row(S::KEY, &name))?;
        merge(&mut row, &changes, 0);
        put_row::<S>(tree, name, row)
    })
    .await
}

pub(super) async fn remove<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
) -> Answer<Json<Outcome>> {
    edit(plane, terms, move |tree| {
        let removed = S::rows_mut(tree).remove(&name);
        removed.map(drop).ok_or_else(|| no_row(S::KEY, &name))
    })
    .await
}

/// Puts a row into a tree. No other is looked at.
fn put_row<S: Section>(tree: &mut Tree, name: String, row: Value) -> Answer<()> {
    let read = serde_json::from_value::<S::Row>(row);
    let row = read.map_err(|error| {
        let place = format!("{}.{name}", S::KEY);
        Problem::malformed(&crate::document::in_words(&error.to_string())).at(&place)
    })?;
    S::rows_mut(tree).insert(name, row);
    Ok(())
}

pub(super) fn no_row(key: &str, name: &str) -> Problem {
    Problem::not_found(&format!("there is no {key} {name:?}"))
        .way_out(&format!("/v1/{} lists those that there are", plural(key)))
}

/// Of the name of a section.
pub(super) fn plural(key: &str) -> String {
    let end = if key.ends_with("ch") { "es" } else { "s" };
    format!("{key}{end}")
}

fn value(row: &impl Serialize) -> Value {
    // Keys are texts, and numbers are finite.
    serde_json::to_value(row).unwrap_or_default()
}

/// Deeper is no row.
const DEPTH_MAX: usize = 8;

fn merge(row: &mut Value, changes: &Value, depth: usize) {
    match (row, changes) {
        (Value::Object(row), Value::Object(changes)) if depth < DEPTH_MAX => {
            for (key, change) in changes {
                match change {
                    Value::Null => drop(row.remove(key)),
                    _ => merge(row.entry(key).or_insert(Value::Null), change, depth + 1),
                }
            }
        }
        (row @ Value::Null, Value::Object(_)) if depth < DEPTH_MAX => {
            *row = Value::Object(Map::new());
            merge(row, changes, depth);
        }
        (row, changes) => *row = changes.clone(),
    }
}

fn tagged(served: &Served, value: Value) -> Response {
    let tag = [("etag", format!("\"{}\"", served.generation))];
    (tag, Json(value)).into_response()
}

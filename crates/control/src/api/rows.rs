//! Rows of the tree, one by one.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Json, Response};
use serde_json::{Map, Value};

use super::changes::{Terms, change, json};
use super::{Answer, Caller, Problem, Role, Shared};
use crate::gate::{Candidate, Outcome};
use crate::plane::Served;
use crate::tree::Tree;

/// The sections of a tree, as paths name them and as documents do.
const SECTIONS: [(&str, &str); 3] = [
    ("volumes", "volume"),
    ("groups", "group"),
    ("targets", "target"),
];

pub(super) async fn all(
    State(plane): Shared,
    caller: Caller,
    Path(section): Path<String>,
) -> Answer<Response> {
    caller.must_be(Role::View)?;
    let served = plane.served();
    Ok(tagged(
        &served,
        Value::Object(rows(&served.tree, key(&section)?)),
    ))
}

pub(super) async fn one(
    State(plane): Shared,
    caller: Caller,
    Path((section, name)): Path<(String, String)>,
) -> Answer<Response> {
    caller.must_be(Role::View)?;
    let (served, key) = (plane.served(), key(&section)?);
    let row = rows(&served.tree, key).remove(&name);
    Ok(tagged(&served, row.ok_or_else(|| no_row(key, &name))?))
}

pub(super) async fn put(
    State(plane): Shared,
    caller: Caller,
    Path((section, name)): Path<(String, String)>,
    mut terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    caller.must_be(Role::View)?;
    let (key, row): (_, Value) = (key(&section)?, json(&body)?);
    let served = plane.served();
    terms.made_from(served.generation);
    let tree = with(&served, key, |rows| drop(rows.insert(name, row)))?;
    change(plane, caller, Candidate::Tree(tree.into()), terms).await
}

/// A merge patch (RFC 7396).
pub(super) async fn patch(
    State(plane): Shared,
    caller: Caller,
    Path((section, name)): Path<(String, String)>,
    mut terms: Terms,
    body: String,
) -> Answer<Json<Outcome>> {
    caller.must_be(Role::View)?;
    let (key, changes): (_, Value) = (key(&section)?, json(&body)?);
    let served = plane.served();
    terms.made_from(served.generation);
    let mut row = rows(&served.tree, key)
        .remove(&name)
        .ok_or_else(|| no_row(key, &name))?;
    merge(&mut row, &changes, 0);
    let tree = with(&served, key, |rows| drop(rows.insert(name, row)))?;
    change(plane, caller, Candidate::Tree(tree.into()), terms).await
}

pub(super) async fn remove(
    State(plane): Shared,
    caller: Caller,
    Path((section, name)): Path<(String, String)>,
    mut terms: Terms,
) -> Answer<Json<Outcome>> {
    caller.must_be(Role::View)?;
    let (served, key) = (plane.served(), key(&section)?);
    terms.made_from(served.generation);
    if !rows(&served.tree, key).contains_key(&name) {
        return Err(no_row(key, &name));
    }
    let tree = with(&served, key, |rows| drop(rows.remove(&name)))?;
    change(plane, caller, Candidate::Tree(tree.into()), terms).await
}

fn key(section: &str) -> Answer<&'static str> {
    let found = SECTIONS.iter().find(|(path, _)| *path == section);
    let key = found.map(|(_, key)| *key);
    key.ok_or_else(|| Problem::not_found("there is nothing at this path"))
}

fn no_row(key: &str, name: &str) -> Problem {
    Problem::not_found(&format!("there is no {key} {name:?}"))
}

fn rows(tree: &Tree, key: &str) -> Map<String, Value> {
    let mut tree = serde_json::to_value(tree).unwrap_or_default();
    match tree.get_mut(key).map(Value::take) {
        Some(Value::Object(rows)) => rows,
        _ => Map::new(),
    }
}

/// The tree with other rows in a section.
fn with(served: &Served, key: &str, change: impl FnOnce(&mut Map<String, Value>)) -> Answer<Tree> {
    let mut rows = rows(&served.tree, key);
    change(&mut rows);
    let mut tree = serde_json::to_value(&served.tree).unwrap_or_default();
    tree[key] = Value::Object(rows);
    let read = serde_json::from_value(tree);
    read.map_err(|error| Problem::malformed(&crate::document::in_words(&error.to_string())))
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

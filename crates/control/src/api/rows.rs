//! Rows of the tree, one by one.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use serde_json::{Map, Value};

use super::body::{JsonBody, Segment};
use super::changes::{Terms, change};
use super::routes::Section;
use super::{Answer, Problem, Shared};
use crate::gate::{Candidate, Outcome};
use crate::plane::Served;
use crate::tree::Tree;

pub(super) async fn all<S: Section>(State(plane): Shared) -> Answer<Response> {
    let served = plane.served();
    let rows = rows(&served.tree, S::KEY);
    Ok(tagged(&served, Value::Object(rows)))
}

pub(super) async fn one<S: Section>(
    State(plane): Shared,
    Segment(name): Segment<String>,
) -> Answer<Response> {
    let served = plane.served();
    let row = rows(&served.tree, S::KEY).remove(&name);
    Ok(tagged(&served, row.ok_or_else(|| no_row(S::KEY, &name))?))
}

pub(super) async fn put<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
    JsonBody(row): JsonBody<Value>,
) -> Answer<Json<Outcome>> {
    let edit = RowEdit::<S>::begin(plane.served(), name, terms);
    let tree = edit.with(|rows, name| drop(rows.insert(name, row)))?;
    change(plane, tree, edit.terms).await
}

/// A merge patch (RFC 7396).
pub(super) async fn patch<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
    JsonBody(changes): JsonBody<Value>,
) -> Answer<Json<Outcome>> {
    let edit = RowEdit::<S>::begin(plane.served(), name, terms);
    let mut row = edit.there()?;
    merge(&mut row, &changes, 0);
    let tree = edit.with(|rows, name| drop(rows.insert(name, row)))?;
    change(plane, tree, edit.terms).await
}

pub(super) async fn remove<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
) -> Answer<Json<Outcome>> {
    let edit = RowEdit::<S>::begin(plane.served(), name, terms);
    edit.there()?;
    let tree = edit.with(|rows, name| drop(rows.remove(&name)))?;
    change(plane, tree, edit.terms).await
}

/// A change of one row of what is served.
struct RowEdit<S> {
    served: Arc<Served>,
    name: String,
    terms: Terms,
    section: PhantomData<S>,
}

impl<S: Section> RowEdit<S> {
    fn begin(served: Arc<Served>, name: String, mut terms: Terms) -> Self {
        terms.made_from(served.generation);
        Self {
            served,
            name,
            terms,
            section: PhantomData,
        }
    }

    /// The row as it is.
    fn there(&self) -> Answer<Value> {
        let row = rows(&self.served.tree, S::KEY).remove(&self.name);
        row.ok_or_else(|| no_row(S::KEY, &self.name))
    }

    /// The tree with other rows in the section.
    fn with(&self, change: impl FnOnce(&mut Map<String, Value>, String)) -> Answer<Candidate> {
        let mut rows = rows(&self.served.tree, S::KEY);
        change(&mut rows, self.name.clone());
        let mut tree = serde_json::to_value(&self.served.tree).unwrap_or_default();
        tree[S::KEY] = Value::Object(rows);
        let read = serde_json::from_value::<Tree>(tree);
        let tree = read.map_err(|error| {
            Problem::malformed(&crate::document::in_words(&error.to_string())).at(&format!(
                "{}.{}",
                S::KEY,
                self.name
            ))
        })?;
        Ok(Candidate::Tree(tree.into()))
    }
}

fn no_row(key: &str, name: &str) -> Problem {
    Problem::not_found(&format!("there is no {key} {name:?}"))
        .way_out(&format!("/v1/{key}s lists those that there are"))
}

fn rows(tree: &Tree, key: &str) -> Map<String, Value> {
    let mut tree = serde_json::to_value(tree).unwrap_or_default();
    match tree.get_mut(key).map(Value::take) {
        Some(Value::Object(rows)) => rows,
        _ => Map::new(),
    }
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

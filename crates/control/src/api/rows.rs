//! Rows of the tree, one by one.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
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
    let edit = RowEdit::<S>::begin(plane.served(), name, terms);
    let tree = edit.with(row)?;
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
    let tree = edit.with(row)?;
    change(plane, tree, edit.terms).await
}

pub(super) async fn remove<S: Section>(
    State(plane): Shared,
    terms: Terms,
    Segment(name): Segment<String>,
) -> Answer<Json<Outcome>> {
    let edit = RowEdit::<S>::begin(plane.served(), name, terms);
    edit.there()?;
    let tree = edit.without();
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
        let row = S::rows(&self.served.tree).get(&self.name);
        row.map(value).ok_or_else(|| no_row(S::KEY, &self.name))
    }

    /// The tree with this row. No other is looked at.
    fn with(&self, row: Value) -> Answer<Candidate> {
        let read = serde_json::from_value::<S::Row>(row);
        let row = read.map_err(|error| {
            Problem::malformed(&crate::document::in_words(&error.to_string())).at(&format!(
                "{}.{}",
                S::KEY,
                self.name
            ))
        })?;
        let mut tree = Tree::clone(&self.served.tree);
        S::rows_mut(&mut tree).insert(self.name.clone(), row);
        Ok(Candidate::Tree(tree.into()))
    }

    /// The tree without the row.
    fn without(&self) -> Candidate {
        let mut tree = Tree::clone(&self.served.tree);
        S::rows_mut(&mut tree).remove(&self.name);
        Candidate::Tree(tree.into())
    }
}

pub(super) fn no_row(key: &str, name: &str) -> Problem {
    Problem::not_found(&format!("there is no {key} {name:?}"))
        .way_out(&format!("/v1/{key}s lists those that there are"))
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

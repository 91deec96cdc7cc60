//! A document that describes another tree, with as little of its text changed as there can be.

mod array;

use std::collections::BTreeMap;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use super::edit::edit_rows;
use super::{canonical, parse};
use crate::tree::Tree;

/// The text of `document`, changed to describe `tree`. Comments and order stay; the comments of a
/// row that goes, go with it. A text that is no tree is replaced whole.
#[must_use]
pub fn rewrite(document: &str, tree: &Tree) -> String {
    match parse(document) {
        // Not even the last line gets an end.
        Ok(old) if old == *tree => document.to_owned(),
        Ok(old) => {
            edit_rows(document, &old, tree).unwrap_or_else(|| rewrite_from(document, &old, tree))
        }
        Err(_) => rewrite_from("", &Tree::default(), tree),
    }
}

/// The same of a document whose tree is known. What it costs beside reading the text follows from
/// how many rows are not the same.
pub(super) fn rewrite_from(document: &str, old: &Tree, tree: &Tree) -> String {
    let mut text: DocumentMut = document.parse().unwrap_or_default();
    let (old, new) = without_equal_rows(old, tree);
    let (old, new) = (canonical(&old), canonical(&new));
    let mut sections = Vec::new();
    for (name, is_there) in sections_of(tree) {
        let rows = |of: &DocumentMut| of.get(name).and_then(Item::as_table_like).is_some();
        if is_there && text.get(name).is_some_and(Item::is_table_like) {
            sections.push(name);
        } else if !is_there || !rows(&new) {
            text.remove(name);
        }
    }
    let empty = Table::new();
    let rest = |of: &DocumentMut| {
        let mut table = of.as_table().clone();
        table.retain(|name, _| !sections.contains(&name));
        table
    };
    merge(text.as_table_mut(), &rest(&old), &rest(&new), 0);
    for name in &sections {
        let rows = |of: &'_ DocumentMut| of.get(name).cloned().unwrap_or(Item::None);
        let (old, new) = (rows(&old), rows(&new));
        let (old, new) = (old.as_table_like(), new.as_table_like());
        if let Some(written) = text.get_mut(name).and_then(Item::as_table_like_mut) {
            merge(written, old.unwrap_or(&empty), new.unwrap_or(&empty), 1);
        }
    }
    with_ends_of(document, text.to_string())
}

/// The sections of rows, and whether a tree has any in them.
fn sections_of(tree: &Tree) -> [(&'static str, bool); 4] {
    [
        ("volume", !tree.volume.is_empty()),
        ("group", !tree.group.is_empty()),
        ("target", !tree.target.is_empty()),
        ("switch", !tree.switch.is_empty()),
    ]
}

/// Two trees, without the rows that both have.
fn without_equal_rows(one: &Tree, other: &Tree) -> (Tree, Tree) {
    fn only<T: Clone + PartialEq>(
        one: &BTreeMap<String, T>,
        other: &BTreeMap<String, T>,
    ) -> BTreeMap<String, T> {
        let differs = |(name, row): &(&String, &T)| other.get(*name) != Some(row);
        let rows = one.iter().filter(differs);
        rows.map(|(name, row)| (name.clone(), row.clone()))
            .collect()
    }
    let of = |one: &Tree, other: &Tree| Tree {
        version: one.version,
        daemon: one.daemon.clone(),
        api: one.api.clone(),
        discovery: one.discovery.clone(),
        volume: only(&one.volume, &other.volume),
        group: only(&one.group, &other.group),
        target: only(&one.target, &other.target),
        switch: only(&one.switch, &other.switch),
    };
    (of(one, other), of(other, one))
}

/// The ends of lines are those of the first one.
fn with_ends_of(document: &str, text: String) -> String {
    let first = document.split_once('\n');
    if first.is_some_and(|(first, _)| first.ends_with('\r')) {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text
    }
}

/// Makes `text` say what `new` says; what is the same in `old` and `new` is left as it is written.
fn merge(text: &mut dyn TableLike, old: &dyn TableLike, new: &dyn TableLike, depth: usize) {
    for (name, _) in old.iter() {
        if !new.contains_key(name) {
            text.remove(name);
        }
    }
    for (name, item) in new.iter() {
        let before = old.get(name);
        let Some(written) = text.get_mut(name) else {
            text.entry_format(&Key::new(name))
                .or_insert(fresh(item, depth));
            continue;
        };
        if before.is_some_and(|before| is_same(before, item)) {
            continue;
        }
        let tables = before
            .and_then(Item::as_table_like)
            .zip(item.as_table_like());
        match (written, tables) {
            (Item::Value(Value::InlineTable(written)), Some((old, new))) => {
                merge_inline(written, old, new, depth + 1);
            }
            (Item::Table(written), Some((old, new))) => merge(written, old, new, depth + 1),
            (Item::Value(written), _) => replace(written, before, item),
            (written, _) => *written = fresh(item, depth),
        }
    }
}

/// The same in a line, whose spaces are put in order where keys have come or gone.
fn merge_inline(text: &mut InlineTable, old: &dyn TableLike, new: &dyn TableLike, depth: usize) {
    let keys = |table: &InlineTable| -> Vec<String> {
        table.iter().map(|(name, _)| name.to_owned()).collect()
    };
    let before = keys(text);
    merge(text, old, new, depth);
    if before != keys(text) && !text.to_string().contains('\n') {
        text.fmt();
    }
}

/// Another value in the same place, between the same comments.
fn replace(written: &mut Value, before: Option<&Item>, item: &Item) {
    let Some(new) = item
        .as_value()
        .map(plain)
        .or_else(|| inline(item).map(Value::from))
    else {
        return;
    };
    match (&mut *written, &new) {
        (Value::Array(written), Value::Array(new)) => {
            array::merge(written, before.and_then(Item::as_array), new);
        }
        _ => {
            let decor = written.decor().clone();
            *written = new;
            *written.decor_mut() = decor;
        }
    }
}

/// How a part is written that was not there: rows as tables with a header, all below in a line.
fn fresh(item: &Item, depth: usize) -> Item {
    let Some(table) = item.as_table_like().filter(|_| depth < ROWS) else {
        let value = item.as_value().map(plain);
        let value = value.or_else(|| inline(item).map(Value::from));
        return value.map_or(Item::None, Item::Value);
    };
    let mut made = Table::new();
    // Without a header of its own: `[volume]` says nothing that `[volume.db]` does not.
    made.set_implicit(depth == 0 && table.iter().all(|(_, inner)| inner.is_table_like()));
    for (name, inner) in table.iter() {
        made.entry_format(&Key::new(name))
            .or_insert(fresh(inner, depth + 1));
    }
    Item::Table(made)
}

/// Rows are in the second level of tables: `[volume.db]`.
const ROWS: usize = 2;

fn inline(item: &Item) -> Option<InlineTable> {
    let table = item.as_table_like()?;
    let mut made = InlineTable::new();
    for (name, inner) in table.iter() {
        let value = match inner.as_value() {
            Some(value) if !value.is_inline_table() => plain(value),
            _ => inline(inner)?.into(),
        };
        made.insert_formatted(&Key::new(name), value);
    }
    Some(made)
}

/// A value as it is written by itself.
pub(super) fn plain(value: &Value) -> Value {
    let mut value = match value {
        Value::Array(all) => all.iter().map(plain).collect::<Array>().into(),
        Value::InlineTable(_) => {
            let made = inline(&Item::Value(value.clone()));
            made.map_or_else(|| value.clone(), Value::from)
        }
        _ => value.clone(),
    };
    value.decor_mut().clear();
    value
}

pub(super) fn text_of(value: &Value) -> String {
    plain(value).to_string()
}

fn is_same(one: &Item, other: &Item) -> bool {
    match (one.as_table_like(), other.as_table_like()) {
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, inner)| other.get(name).is_some_and(|other| is_same(inner, other)))
        }
        (None, None) => one.as_value().map(text_of) == other.as_value().map(text_of),
        _ => false,
    }
}

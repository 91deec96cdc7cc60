//! One value of a tree by its path: `volume.db.limit.iops=20k`.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::{DocumentMut, Item, Key, TableLike, Value};

use super::canonical;
use crate::tree::Tree;

/// Why a value cannot be set, or taken away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// No path.
    #[error("{0:?} is not a path: write SECTION.ROW.KEY, as in volume.db.readonly")]
    Path(String),
    /// A target that is not there yet, whose name is not told from the key behind it.
    #[error("there is no target of this name: quote that of a new one, as in '{0}'")]
    NewTarget(String),
    /// Twice in one change.
    #[error("{0} is given twice")]
    Twice(String),
    /// Nothing stands there that could be taken away.
    #[error("{0} is not set")]
    NotSet(String),
    /// The value does not fit there.
    #[error("{path}: {cause}")]
    Value {
        /// Where.
        path: String,
        /// Why.
        cause: String,
    },
}

/// Sets the value at a path: TOML, or a text without its quotes.
///
/// # Errors
///
/// The path leads nowhere, or the value does not fit; the tree is as it was.
pub fn set(tree: &mut Tree, path: &str, value: &str) -> Result<(), SetError> {
    let names = names(tree, path)?;
    let text = Value::from(value);
    let values = value.parse::<Value>().ok().into_iter().chain([text]);
    let mut first = None;
    for value in values {
        let mut document = canonical(&part(tree, &names));
        put(document.as_table_mut(), &names, value);
        match read(path, document) {
            Ok(part) => {
                put_back(tree, &names, part);
                return Ok(());
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| SetError::Path(path.to_owned())))
}

/// Sets values at their paths. One may need another that comes behind it, or both may need each
/// other, as the user of CHAP and its secret do.
///
/// # Errors
///
/// As of [`set`], or a path is there twice; some of the values may stand in the tree then.
pub fn set_all(tree: &mut Tree, values: &[(String, String)]) -> Result<(), SetError> {
    let mut paths = BTreeSet::new();
    if let Some((path, _)) = values.iter().find(|(path, _)| !paths.insert(path)) {
        return Err(SetError::Twice(path.clone()));
    }
    let mut rows: BTreeMap<Vec<String>, Vec<Waiting<'_>>> = BTreeMap::new();
    for (path, value) in values {
        if let Err(error) = set(tree, path, value) {
            let names = names(tree, path)?;
            let row = names.iter().take(2).cloned().collect();
            let waiting = Waiting {
                names,
                value,
                error,
            };
            rows.entry(row).or_default().push(waiting);
        }
    }
    rows.into_values()
        .try_for_each(|row| set_together(tree, row))
}

/// A value that cannot be set alone.
struct Waiting<'a> {
    names: Vec<String>,
    value: &'a str,
    error: SetError,
}

/// Sets values of one row at once, each of which may be TOML, or a text.
fn set_together(tree: &mut Tree, mut row: Vec<Waiting<'_>>) -> Result<(), SetError> {
    let first = row[0].names.clone();
    let mut wrong = None;
    for texts in 0..1_u32 << row.len().min(MOST_TOGETHER) {
        let mut document = canonical(&part(tree, &first));
        for (at, one) in row.iter().enumerate() {
            let is_text = at < MOST_TOGETHER && texts >> at & 1 == 1;
            let toml = one.value.parse::<Value>().ok().filter(|_| !is_text);
            let value = toml.unwrap_or_else(|| Value::from(one.value));
            put(document.as_table_mut(), &one.names, value);
        }
        match read(&first[..first.len().min(2)].join("."), document) {
            Ok(part) => {
                put_back(tree, &first, part);
                return Ok(());
            }
            Err(error) => drop(wrong.get_or_insert(error)),
        }
    }
    match (row.len(), wrong) {
        (2.., Some(wrong)) => Err(wrong),
        _ => Err(row.remove(0).error),
    }
}

/// Of how many values each is tried as TOML and as a text.
const MOST_TOGETHER: usize = 6;

/// Takes away what stands at a path.
///
/// # Errors
///
/// Nothing stands there, or something has to; the tree is as it was.
pub fn unset(tree: &mut Tree, path: &str) -> Result<(), SetError> {
    let names = names(tree, path)?;
    let mut document = canonical(&part(tree, &names));
    take(document.as_table_mut(), &names).ok_or_else(|| SetError::NotSet(path.to_owned()))?;
    let part = read(path, document)?;
    put_back(tree, &names, part);
    Ok(())
}

/// The part of a tree that a path leads into: of all rows one.
fn part(tree: &Tree, names: &[String]) -> Tree {
    match names {
        [section, row, ..] => tree.with_row_alone(section, row),
        _ => tree.clone(),
    }
}

fn put_back(tree: &mut Tree, names: &[String], part: Tree) {
    match names {
        [section, row, ..] => tree.take_row(section, row, part),
        _ => *tree = part,
    }
}

fn read(path: &str, document: DocumentMut) -> Result<Tree, SetError> {
    let wrong = |cause| SetError::Value {
        path: path.to_owned(),
        cause,
    };
    let tree: Tree = toml_edit::de::from_document(document)
        .map_err(|error| wrong(super::problem::one_line(error.message())))?;
    match super::unknown_version(tree.version.into()) {
        Some((what, way_out)) => Err(wrong(format!("{what}; {way_out}"))),
        None => Ok(tree),
    }
}

/// The keys of a path. The names of rows need no quotes where the tree has such a row.
fn names(tree: &Tree, path: &str) -> Result<Vec<String>, SetError> {
    let wrong = || SetError::Path(path.to_owned());
    if let Some(rest) = path.strip_prefix("target.") {
        let targets = tree.target.keys().filter(|name| rest.starts_with(&***name));
        if let Some(name) = targets.max_by_key(|name| name.len()) {
            let rest = &rest[name.len()..];
            let below = match rest.strip_prefix('.') {
                Some(rest) => Key::parse(rest).map_err(|_| wrong())?,
                None if rest.is_empty() => Vec::new(),
                None => return Err(wrong()),
            };
            let below = below.iter().map(|key| key.get().to_owned());
            return Ok(["target".to_owned(), name.clone()]
                .into_iter()
                .chain(below)
                .collect());
        }
        if !rest.starts_with(['"', '\'']) {
            return Err(SetError::NewTarget(quoted(rest)));
        }
    }
    let keys = Key::parse(path).map_err(|_| wrong())?;
    Ok(keys.iter().map(|key| key.get().to_owned()).collect())
}

/// The path of a value of a target, its name in quotes. It ends before the first key of such a row.
fn quoted(rest: &str) -> String {
    let at = TARGET_KEYS.iter().filter_map(|key| {
        let ends = |at: &usize| {
            let behind = &rest[at + 1 + key.len()..];
            behind.is_empty() || behind.starts_with('.')
        };
        let dotted = format!(".{key}");
        let mut found = rest.match_indices(&dotted).map(|(at, _)| at);
        found.find(ends)
    });
    match at.min() {
        Some(at) => format!("target.\"{}\"{}", &rest[..at], &rest[at..]),
        None => format!("target.\"{rest}\".portals"),
    }
}

/// What the row of a target has.
const TARGET_KEYS: [&str; 6] = ["alias", "portals", "luns", "allow", "view", "login"];

fn put(table: &mut dyn TableLike, names: &[String], value: Value) {
    match names {
        [] => {}
        [last] => drop(table.insert(last, Item::Value(value))),
        [first, rest @ ..] => {
            let inner = table.entry(first).or_insert_with(toml_edit::table);
            if !inner.is_table_like() {
                let before = std::mem::replace(inner, toml_edit::table());
                if before.is_str() {
                    // `luns.0.access` of a LUN that is only a name until then.
                    inner["volume"] = before;
                } else if before.is_array() {
                    // `portals.6` of portals that had no tag until then.
                    inner["1"] = before;
                }
            }
            if let Some(inner) = inner.as_table_like_mut() {
                put(inner, rest, value);
            }
        }
    }
}

fn take(table: &mut dyn TableLike, names: &[String]) -> Option<Item> {
    match names {
        [] => None,
        [last] => table.remove(last),
        [first, rest @ ..] => take(table.get_mut(first)?.as_table_like_mut()?, rest),
    }
}

impl Tree {
    /// The same without rows, but for one.
    fn with_row_alone(&self, section: &str, name: &str) -> Self {
        Self {
            version: self.version,
            daemon: self.daemon.clone(),
            api: self.api.clone(),
            discovery: self.discovery.clone(),
            volume: alone(&self.volume, name, section == "volume"),
            group: alone(&self.group, name, section == "group"),
            target: alone(&self.target, name, section == "target"),
            switch: alone(&self.switch, name, section == "switch"),
        }
    }

    /// What [`Self::with_row_alone`] gave comes back with that row changed, or without it.
    fn take_row(&mut self, section: &str, name: &str, part: Self) {
        fn take<T>(rows: &mut BTreeMap<String, T>, name: &str, part: BTreeMap<String, T>) {
            rows.remove(name);
            rows.extend(part);
        }
        match section {
            "volume" => take(&mut self.volume, name, part.volume),
            "group" => take(&mut self.group, name, part.group),
            "target" => take(&mut self.target, name, part.target),
            "switch" => take(&mut self.switch, name, part.switch),
            _ => {}
        }
        self.version = part.version;
        (self.daemon, self.api, self.discovery) = (part.daemon, part.api, part.discovery);
    }
}

fn alone<T: Clone>(
    rows: &BTreeMap<String, T>,
    name: &str,
    is_section: bool,
) -> BTreeMap<String, T> {
    let row = rows.get_key_value(name).filter(|_| is_section);
    let row = row.map(|(name, row)| (name.clone(), row.clone()));
    row.into_iter().collect()
}

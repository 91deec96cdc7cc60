//! Nothing is dropped silently: any change of a line or a value changes what comes out, unless the
//! list of what is left out names it.

use serde_json::Value;

use super::{SAMPLES, sample};
use crate::import::{Format, Imported, LeftOut, import};

/// All but the lines of what is left out.
fn content(imported: &Imported) -> impl PartialEq + use<> {
    let left = imported
        .left_out
        .iter()
        .map(|left| (left.text.clone(), left.why.clone()));
    let left: Vec<_> = left.collect();
    (imported.tree.clone(), imported.secrets.clone(), left)
}

#[test]
fn a_line_that_changes_changes_the_import() {
    for (name, format, text) in SAMPLES
        .iter()
        .filter(|(_, format, _)| *format != Format::Lio)
    {
        let imported = import(*format, text).unwrap();
        let before = content(&imported);
        for (number, line) in text.lines().enumerate() {
            let bare = line.split('#').next().unwrap_or_default().trim_end();
            if bare.is_empty() {
                continue;
            }
            let quote = bare.ends_with('"');
            let changed = if quote {
                format!("{}zz\"", bare.trim_end_matches('"'))
            } else {
                format!("{}zz", bare.trim_end_matches('\\'))
            };
            let mut lines: Vec<&str> = text.lines().collect();
            lines[number] = &changed;
            let is_named = imported
                .left_out
                .iter()
                .any(|left| covers(text, left, number + 1));
            if let Ok(after) = import(*format, &lines.join("\n")) {
                assert!(is_named || content(&after) != before, "{name}: {line}");
            }
        }
    }
}

/// Whether a line, or a block around it, is on the list. The samples are indented.
fn covers(text: &str, left: &LeftOut, number: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines().skip(left.line.saturating_sub(1));
    let first = lines.next().map_or(0, indent);
    let inner = lines
        .take_while(|line| line.trim().is_empty() || indent(line) > first)
        .count();
    let is_block = left.text.contains("{…}");
    left.line == number || (is_block && (left.line..=left.line + inner + 1).contains(&number))
}

/// Fields that say nothing: names of links in configfs, and the size of an image of Ceph, which
/// knows it.
const NOTHING: [&str; 2] = ["alias", "size"];

#[test]
fn a_value_that_changes_changes_the_import() {
    for name in ["lio-targetcli", "lio-fabrics"] {
        let (format, text) = sample(name);
        let imported = import(format, text).unwrap();
        let root: Value = serde_json::from_str(text).unwrap();
        for path in leaves(&root) {
            let mut changed = root.clone();
            let value = changed.pointer_mut(&path).unwrap();
            *value = other(value);
            let named = named(&imported, &path);
            let Ok(after) = import(format, &changed.to_string()) else {
                continue;
            };
            let is_nothing = NOTHING.iter().any(|key| path.ends_with(&format!("/{key}")));
            let is_same = content(&after) == content(&imported);
            assert!(named || is_nothing || !is_same, "{name}: {path}");
        }
    }
}

/// Whether a value, or what it is part of, is on the list.
fn named(imported: &Imported, pointer: &str) -> bool {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        match part.parse::<usize>() {
            Ok(number) => path.push_str(&format!("[{number}]")),
            Err(_) if path.is_empty() => path.push_str(part),
            Err(_) => path.push_str(&format!(".{part}")),
        }
        let is_it = |text: &str| {
            let rest = text.strip_prefix(&path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ':']))
        };
        if imported.left_out.iter().any(|left| is_it(&left.text)) {
            return true;
        }
    }
    false
}

fn leaves(root: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![(String::new(), root)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                open.extend(
                    fields
                        .iter()
                        .map(|(key, value)| (format!("{path}/{key}"), value)),
                );
            }
            Value::Array(items) => {
                let numbered = items.iter().enumerate();
                open.extend(numbered.map(|(number, item)| (format!("{path}/{number}"), item)));
            }
            _ => all.push(path),
        }
    }
    all
}

fn other(value: &Value) -> Value {
    match value {
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Number(number) => Value::from(number.as_i64().unwrap() + 1),
        Value::String(text) => Value::from(format!("{text}9")),
        other => other.clone(),
    }
}

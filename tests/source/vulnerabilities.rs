//! `docs/vulnerabilities.md`: a class that is shown to be impossible is shown by tests that exist.

use std::collections::BTreeSet;
use std::fs;

use crate::sources;

/// What the table says of one vulnerability.
struct Row {
    id: String,
    class: String,
    tests: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(tests::top().join("docs/vulnerabilities.md")).unwrap();
    let lines = text.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [id, _, class, _, tests] = cells[..] else {
        panic!("{} columns: {line}", cells.len());
    };
    let tests = tests.split('`').skip(1).step_by(2);
    Row {
        id: id.to_owned(),
        class: class.to_owned(),
        tests: tests.map(str::to_owned).collect(),
    }
}

/// The names of all functions under `#[test]`.
fn tests_that_exist() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in sources() {
        let code = source.code();
        let mut lines = code.iter().map(|(_, line)| line.trim());
        while lines.any(|line| line == "#[test]") {
            let function = lines.clone().find_map(|line| line.strip_prefix("fn "));
            names.extend(function.and_then(|rest| Some(rest.split_once('(')?.0.to_owned())));
        }
    }
    names
}

#[test]
fn every_test_that_is_named_exists() {
    let existing = tests_that_exist();
    assert!(existing.len() > 500, "{} tests were found", existing.len());
    for Row { id, tests, .. } in rows() {
        for test in tests {
            assert!(existing.contains(&test), "{id}: there is no test {test}");
        }
    }
}

#[test]
fn every_class_is_shown_by_a_test() {
    let rows = rows();
    assert!(rows.len() > 15, "{} rows were found", rows.len());
    for class in ["a", "b", "c", "d", "e", "f"] {
        let of_class = |row: &&Row| row.class.split(", ").any(|one| one == class);
        let shown = |row: &Row| !row.tests.is_empty();
        assert!(rows.iter().filter(of_class).any(shown), "class {class}");
    }
}

//! Tests of the source itself: rules that matter and that nobody should have to watch over.
#![forbid(unsafe_code)]
#![cfg(test)]

mod dependencies;
mod documents;
mod tidy;
mod vulnerabilities;

use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
pub(crate) struct Source {
    /// Its path from the top folder.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

impl Source {
    /// Whether it holds nothing but tests.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let marked = name.starts_with("test_") || name.ends_with("_tests.rs");
        marked || name == "tests.rs" || self.path.contains("tests/")
    }

    /// Its lines, numbered from 1, with comments and the contents of strings taken out.
    pub(crate) fn code(&self) -> Vec<(usize, String)> {
        self.text
            .lines()
            .zip(1..)
            .map(|(line, number)| (number, bare(line)))
            .collect()
    }
}

/// Every Rust file of the repository that is not made by a tool.
pub(crate) fn sources() -> Vec<Source> {
    let top = tests::top();
    let mut paths = Vec::new();
    for dir in ["crates", "tests", "xtask", "fuzz"] {
        collect(&top.join(dir), &mut paths);
    }
    assert!(paths.len() > 20, "the walk finds the sources");
    let read = |path: PathBuf| Source {
        text: fs::read_to_string(&path).unwrap(),
        path: path
            .strip_prefix(&top)
            .unwrap()
            .to_string_lossy()
            .into_owned(),
    };
    paths.into_iter().map(read).collect()
}

fn collect(dir: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        // What cargo builds; `src/target` is a role.
        if path.is_dir() && !path.ends_with("fuzz/target") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// A line without strings on it and without a comment at its end. Good for rustfmt's output, where
/// a string over several lines is rare and looks like no code that is searched for.
fn bare(line: &str) -> String {
    let mut code = String::new();
    let mut chars = line.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => {
                chars.next();
            }
            '"' => quoted = !quoted,
            '/' if !quoted && chars.peek() == Some(&'/') => break,
            _ if quoted => {}
            '\'' if is_quote_char(&chars) => {
                chars.nth(1);
            }
            c => code.push(c),
        }
    }
    code
}

/// After a `'`: whether it began the character `'"'`.
fn is_quote_char(rest: &std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    rest.clone().take(2).eq(['"', '\''])
}

#[test]
fn strings_and_comments_are_no_code() {
    let lines = [
        ("let a = 1; // unsafe", "let a = 1; "),
        ("call(\"unsafe \\\" {\", b)", "call(, b)"),
        ("/// panic!", ""),
        ("c == '\"' && d", "c ==  && d"),
    ];
    for (line, code) in lines {
        assert_eq!(bare(line), code);
    }
}

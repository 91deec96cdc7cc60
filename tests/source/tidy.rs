//! Lines, functions and files of a size that can be read; panics and `unsafe` where they belong.

use crate::{Source, sources};

const COLUMNS: usize = 100;
const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 500;

/// Files that are longer on purpose, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// What ends a thread. A peer can reach all of the protocol crates, so they have none.
const PANICS: &[&str] = &[
    ".unwrap()",
    ".expect(",
    "panic!(",
    "unreachable!(",
    "todo!(",
    "unimplemented!(",
];

/// Fails with all of `wrong` at once.
#[track_caller]
fn none(wrong: impl IntoIterator<Item = String>) {
    let wrong: Vec<_> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Fails with all lines of code of which something is told, of the files that are meant.
#[track_caller]
fn no_line(is_meant: impl Fn(&Source) -> bool, told: impl Fn(&str) -> Option<String>) {
    let all = sources();
    let of_interest = all.iter().filter(|source| is_meant(source));
    none(of_interest.flat_map(|source| {
        let code = source.code().into_iter();
        let told = code.filter_map(|(number, line)| Some((number, told(&line)?)));
        told.map(|(number, told)| format!("{}:{number}: {told}", source.path))
            .collect::<Vec<_>>()
    }));
}

#[test]
fn lines_have_100_columns_at_most() {
    let mut wrong = Vec::new();
    for source in sources() {
        for (line, number) in source.text.lines().zip(1..) {
            let columns = line.chars().count();
            // A row of a table cannot be broken.
            let row = line.trim_start().starts_with("//! |");
            if columns > COLUMNS && !row {
                wrong.push(format!("{}:{number}: {columns} columns", source.path));
            }
        }
    }
    none(wrong);
}

#[test]
fn functions_have_70_lines_at_most() {
    none(sources().iter().flat_map(long_functions));
}

/// Goes by rustfmt's indentation: a function ends at the brace below the `fn`. Empty lines and
/// comments do not count.
fn long_functions(source: &Source) -> Vec<String> {
    let code = source.code();
    let mut long = Vec::new();
    for (at, (number, line)) in code.iter().enumerate() {
        let Some(indent) = function_indent(line) else {
            continue;
        };
        let body = code[at..].iter().map(|(_, line)| line.as_str());
        let closing = format!("{})", " ".repeat(indent));
        let mut signature = body.clone().take_while(|line| !line.ends_with('{'));
        if signature.any(|line| line.starts_with(&closing) && line.ends_with(';')) {
            // A trait asks for it.
            continue;
        }
        let end = format!("{}}}", " ".repeat(indent));
        let lines = body.take_while(|line| *line != end);
        let count = lines.filter(|line| !line.trim().is_empty()).count() + 1;
        if !line.ends_with('}') && !line.ends_with(';') && count > FUNCTION_LINES {
            long.push(format!("{}:{number}: {count} lines", source.path));
        }
    }
    long
}

/// How far a line that begins a function is indented.
fn function_indent(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let before = text
        .split("fn ")
        .next()
        .filter(|before| before.len() < text.len())?;
    let words = [
        "pub",
        "const",
        "async",
        "unsafe",
        "extern",
        "pub(crate)",
        "pub(super)",
    ];
    let known = before.split_whitespace().all(|word| words.contains(&word));
    known.then_some(line.len() - text.len())
}

#[test]
fn files_have_500_lines_at_most() {
    let mut wrong = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        let excused = LONG_FILES.iter().any(|(path, _)| *path == source.path);
        if lines > FILE_LINES && !excused {
            wrong.push(format!("{}: {lines} lines: split it by duty", source.path));
        }
        if lines <= FILE_LINES && excused {
            let told = "no longer long, take it off the list";
            wrong.push(format!("{}: {told}", source.path));
        }
    }
    none(wrong);
}

#[test]
fn unsafe_is_said_in_io_only() {
    let is_other = |source: &Source| !source.path.starts_with("crates/io/");
    no_line(is_other, |line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.find(|word| *word == "unsafe").map(str::to_owned)
    });
}

#[test]
fn every_other_crate_forbids_it() {
    let is_wrong = |source: &Source| {
        let mut roots = ["src/lib.rs", "src/main.rs"].iter();
        let is_root = roots.any(|end| source.path.ends_with(end));
        let exempt = source.path.starts_with("crates/io/") || source.path.starts_with("fuzz/");
        is_root && !exempt && !source.text.contains("#![forbid(unsafe_code)]")
    };
    let wrong = sources().into_iter().filter(is_wrong);
    none(wrong.map(|source| source.path));
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut wrong = Vec::new();
    for source in sources() {
        if !source.path.starts_with("crates/io/src/") {
            continue;
        }
        let text: Vec<_> = source.text.lines().collect();
        for (number, line) in source.code() {
            let says = line.contains("unsafe {") || line.contains("unsafe impl");
            if says && !explained(&text[..number]) {
                wrong.push(format!("{}:{number}: no SAFETY comment", source.path));
            }
        }
    }
    none(wrong);
}

/// Whether the lines up to an `unsafe`, back to the end of the statement before it, hold a SAFETY
/// comment.
fn explained(lines: &[&str]) -> bool {
    let mut above = lines.iter().rev();
    let own = above.next().is_some_and(|line| line.contains("SAFETY:"));
    let ends = |line: &&&str| {
        let line = line.trim_end();
        !line.trim_start().starts_with("//") && (line.ends_with(';') || line.ends_with('}'))
    };
    own || above
        .take_while(|line| !ends(line))
        .any(|line| line.contains("SAFETY:"))
}

#[test]
fn protocol_crates_have_no_panic() {
    let is_protocol = |source: &Source| {
        let mut crates = ["scsi", "rdma", "iscsi", "fc"].iter();
        let is_of = |name: &&str| source.path.starts_with(&format!("crates/{name}/src/"));
        crates.any(is_of) && !source.is_test()
    };
    no_line(is_protocol, |line| {
        let found = PANICS.iter().find(|panic| line.contains(**panic))?;
        Some((*found).to_owned())
    });
}

/// No file has a line of code that begins so.
#[track_caller]
fn no_line_begins(with: &str) {
    no_line(
        |_| true,
        |line| Some(line.trim_start().strip_prefix(with)?.to_owned()),
    );
}

#[test]
fn tests_stand_in_files_of_their_own() {
    no_line_begins("mod tests {");
}

#[test]
fn no_test_is_ignored() {
    no_line_begins("#[ignore");
}

#[test]
fn the_scanner_sees_a_long_function() {
    let body = "        step();\n".repeat(FUNCTION_LINES);
    let text = format!("impl A {{\n    pub(crate) fn long() {{\n{body}    }}\n}}\n");
    let source = Source {
        path: "a.rs".into(),
        text,
    };
    assert_eq!(long_functions(&source), ["a.rs:2: 72 lines"]);
}

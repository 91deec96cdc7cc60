//! Configuration files of other targets: whatever a text says, the tree of it can be written.

use std::collections::BTreeSet;

use control::document;
use control::import::{self as importer, Format, ImportProblem, Imported};
use control::secret::SecretSource;
use control::tree::Tree;

/// The first byte picks the format, the rest is the text; behind a zero stands the second file of
/// `iet`.
pub fn import(data: &[u8]) {
    let Some((first, text)) = data.split_first() else {
        return;
    };
    let format = Format::ALL[usize::from(*first) % Format::ALL.len()];
    let text = String::from_utf8_lossy(text);
    let (outcome, lines) = match text.split_once('\0') {
        Some((text, allow)) if format == Format::Iet => {
            let lines = text.lines().count().max(allow.lines().count());
            (importer::import_iet(text, allow), lines)
        }
        _ => (importer::import(format, &text), text.lines().count()),
    };
    match outcome {
        Ok(imported) => is_sound(&imported, lines),
        Err(ImportProblem { line, way_out, .. }) => {
            assert!((1..=lines + 1).contains(&line) && !way_out.is_empty());
        }
    }
}

fn is_sound(imported: &Imported, lines: usize) {
    let written = document::write(&imported.tree);
    let again = document::parse(&written);
    assert_eq!(again.as_ref(), Ok(&imported.tree), "{written}");
    for left in &imported.left_out {
        assert!((1..=lines + 1).contains(&left.line), "{left}");
    }
    let named = secrets(&imported.tree);
    assert!(named.iter().eq(imported.secrets.keys()), "{named:?}");
    let exported = importer::export_lio(&imported.tree, &|_| None);
    let back = importer::import(Format::Lio, &exported.text);
    assert!(back.is_ok(), "{back:?}");
}

/// The names of all secrets that a tree refers to.
fn secrets(tree: &Tree) -> BTreeSet<String> {
    let groups = tree.group.values();
    let rows = groups.flat_map(|group| group.chap.iter().chain(&group.mutual));
    let names = rows.filter_map(|row| match &row.secret {
        SecretSource::State(name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

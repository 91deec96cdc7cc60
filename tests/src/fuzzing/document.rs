//! The configuration file of a daemon: what is written of a text says the same, and what was not
//! changed stays as it was.

use control::document::{DocumentProblem, parse, rewrite, set, unset, write};
use control::tree::Tree;

/// A document. Behind each zero stands a change of it: `PATH=VALUE` sets, and `PATH` takes away.
pub fn document(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\0');
    let document = parts.next().unwrap_or_default();
    let tree = match parse(document) {
        Ok(tree) => tree,
        Err(problem) => return is_sound(document, &problem),
    };
    assert_eq!(rewrite(document, &tree), document, "nothing has changed");
    let written = write(&tree);
    assert_eq!(parse(&written).as_ref(), Ok(&tree), "{written}");
    parts.fold((document.to_owned(), tree), changed);
}

fn changed((text, tree): (String, Tree), change: &str) -> (String, Tree) {
    let mut next = tree.clone();
    let done = match change.split_once('=') {
        Some((path, value)) => set(&mut next, path, value),
        None => unset(&mut next, change),
    };
    if let Err(cause) = done {
        assert_eq!(next, tree, "{cause}");
        return (text, tree);
    }
    let rewritten = rewrite(&text, &next);
    let read = parse(&rewritten);
    assert_eq!(read.as_ref(), Ok(&next), "{text}\n---\n{rewritten}");
    (rewritten, next)
}

fn is_sound(document: &str, problem: &DocumentProblem) {
    assert!(!problem.what.is_empty());
    if let Some(place) = problem.place {
        let lines = document.lines().count() + 1;
        assert!((1..=lines).contains(&place.line), "{place:?}");
        assert!(place.column > 0, "{place:?}");
    }
}

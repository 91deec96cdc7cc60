//! Statements in blocks, which three of the formats are made of.

use super::{DEPTH_MAX, ImportProblem};

/// A statement: its words, and the statements of its block if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    /// The line at which it begins.
    pub(super) line: usize,
    /// Its words; the first says what it is.
    pub(super) words: Vec<String>,
    /// What stands in its block; empty without one.
    pub(super) inner: Vec<Node>,
    /// There is a block, which may be empty.
    pub(super) has_block: bool,
    /// It was written as `key = value`, with the value out of quotes.
    pub(super) is_bare_value: bool,
}

impl Node {
    /// A statement of these words.
    pub(super) fn new(line: usize, words: Vec<String>) -> Self {
        Self {
            line,
            words,
            ..Self::default()
        }
    }

    /// What it is; empty for an empty statement.
    pub(super) fn key(&self) -> &str {
        self.word(0)
    }

    /// The first word behind the key.
    pub(super) fn value(&self) -> &str {
        self.word(1)
    }

    /// A word by its place; empty where there is none.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word)
    }

    /// All behind the key, joined by spaces.
    pub(super) fn values(&self) -> String {
        self.words.get(1..).unwrap_or_default().join(" ")
    }

    /// As the list of what is left out shows it, without secrets.
    pub(super) fn shown(&self) -> String {
        let words = super::words::shown(&self.words.join(" "));
        if self.has_block {
            format!("{words} {{…}}")
        } else {
            words
        }
    }
}

/// Builds nested statements.
#[derive(Default)]
pub(super) struct Blocks {
    done: Vec<Node>,
    open: Vec<Node>,
}

impl Blocks {
    /// Adds a statement without a block.
    pub(super) fn add(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(outer) => outer.inner.push(node),
            None => self.done.push(node),
        }
    }

    /// Begins a block.
    pub(super) fn open(&mut self, mut node: Node) -> Result<(), ImportProblem> {
        if self.open.len() >= DEPTH_MAX {
            let what = format!("blocks are more than {DEPTH_MAX} deep");
            return Err(ImportProblem::new(node.line, what, "close the ones before"));
        }
        node.has_block = true;
        self.open.push(node);
        Ok(())
    }

    /// Ends the innermost block, if there is one.
    pub(super) fn close(&mut self, line: usize) -> Result<(), ImportProblem> {
        let Some(node) = self.open.pop() else {
            let what = "this closes a block that was not opened";
            return Err(ImportProblem::new(
                line,
                what,
                "take it out, or open the block",
            ));
        };
        self.add(node);
        Ok(())
    }

    /// The block that would be closed next.
    pub(super) fn innermost(&self) -> Option<&Node> {
        self.open.last()
    }

    /// All statements, if every block is closed.
    pub(super) fn finish(self) -> Result<Vec<Node>, ImportProblem> {
        match self.open.last() {
            None => Ok(self.done),
            Some(node) => {
                let what = format!("the block of {:?} is not closed", node.key());
                let way_out = "close it before the file ends: it may be cut off";
                Err(ImportProblem::new(node.line, what, way_out))
            }
        }
    }
}

//! What can follow in a line: nodes, commands and the names of their parameters.

use control::shell::{Node, commands_at};
use control::tree::Tree;
use rustyline::completion::Completer as Complete;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Completes by what is served when the line is begun.
pub(super) struct Completer {
    pub(super) tree: Tree,
    pub(super) here: Node,
}

impl Completer {
    /// Where the last word begins, and what could stand there.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(' ').map_or(0, |at| at + 1);
        let word = &line[start..];
        let mut all = self.paths(word);
        let before = line[..start].trim();
        let node = self.node(before.split(' ').next().unwrap_or_default());
        let used = before.split(' ').next_back().unwrap_or_default();
        let commands = commands_at(&node);
        match commands.iter().find(|command| command.name == used) {
            Some(command) => all.extend(command.parameter_names().map(|name| format!("{name}="))),
            None => all.extend(commands.iter().map(|command| command.name.to_owned())),
        }
        all.retain(|one| one.starts_with(word));
        all.sort();
        all.dedup();
        (start, all)
    }

    /// Paths that begin as a word does.
    fn paths(&self, word: &str) -> Vec<String> {
        let (folder, _) = word.rsplit_once('/').map_or(("", word), |(folder, rest)| {
            (if folder.is_empty() { "/" } else { folder }, rest)
        });
        let children = self.node(folder).children(&self.tree);
        let lead = match folder {
            "" => String::new(),
            "/" => "/".to_owned(),
            folder => format!("{folder}/"),
        };
        children
            .iter()
            .map(|child| format!("{lead}{}", child.name()))
            .collect()
    }

    /// The node of a path; the current one where it is none.
    fn node(&self, path: &str) -> Node {
        let start = if path.starts_with('/') {
            Node::Root
        } else {
            self.here.clone()
        };
        let mut node = start.clone();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match node.child(&self.tree, part) {
                Some(child) => node = child,
                None => return self.here.clone(),
            }
        }
        node
    }
}

impl Complete for Completer {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(&line[..position]))
    }
}

impl Hinter for Completer {
    type Hint = String;
}

impl Highlighter for Completer {}
impl Validator for Completer {}
impl Helper for Completer {}

#[cfg(test)]
mod tests;

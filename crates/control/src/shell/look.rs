//! Renders `ls`: one line per node, with dots up to its summary at the right edge.

use super::node::Node;
use super::summary::summary;
use super::{Context, Preferences};

/// The state of rendering.
struct Look<'a> {
    context: &'a Context<'a>,
    corner: char,
    has_summary: bool,
    depth: usize,
    lines: Vec<String>,
}

/// Renders the tree below a node down to a depth; 0 is unlimited.
pub(super) fn tree(
    context: &Context<'_>,
    prefs: &Preferences,
    node: &Node,
    depth: usize,
) -> String {
    let mut look = Look {
        context,
        corner: if prefs.flag("tree_round_nodes") {
            'o'
        } else {
            '+'
        },
        has_summary: prefs.flag("tree_status_mode"),
        depth: if depth == 0 { usize::MAX } else { depth },
        lines: Vec::new(),
    };
    if prefs.flag("tree_show_root") {
        look.node(node, "", "  ", 0);
    } else {
        look.children(node, "", 0);
    }
    look.lines.join("\n")
}

impl Look<'_> {
    /// Renders a node behind its margin. Its children get `bar` in addition.
    fn node(&mut self, node: &Node, margin: &str, bar: &str, depth: usize) {
        let line = self.line(node, margin);
        self.lines.push(line);
        if depth < self.depth {
            self.children(node, &format!("{margin}{bar}"), depth + 1);
        }
    }

    fn children(&mut self, node: &Node, margin: &str, depth: usize) {
        let children = node.children(self.context.tree);
        let last = children.len().saturating_sub(1);
        for (at, child) in children.iter().enumerate() {
            let bar = if at < last { "| " } else { "  " };
            self.node(child, margin, bar, depth);
        }
    }

    fn line(&self, node: &Node, margin: &str) -> String {
        let name = node.name();
        let head = format!("{margin}{}- {name}", self.corner);
        if !self.has_summary {
            return head;
        }
        let summary = format!("[{}]", summary(node, self.context));
        let used = head.chars().count() + summary.chars().count() + 2;
        let dots = ".".repeat(self.context.width.saturating_sub(used));
        format!("{head} {dots} {summary}")
    }
}

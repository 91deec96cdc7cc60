//! A document in which some rows change: those are rewritten and read again, and no others.
//!
//! To read a document of 10,000 rows takes longer than all else that a change of one costs. What
//! [`super::rewrite`] does to a whole document is done here to the lines of each row that changes,
//! as a document of its own, and what is read of it has to be that row. So the whole says what it
//! should: lines of a table that are exchanged for those of the same table, or of none, change
//! nothing of what others say.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::layout::{Layout, Section};
use super::rewrite::rewrite_from;
use super::{DocumentProblem, parse};
use crate::tree::{GroupRow, SwitchRow, TargetRow, Tree, VERSION, VolumeRow, pairs};

/// The text of `document`, which says `old`, changed to say `new`, and what is read of it.
///
/// # Errors
///
/// What would be written is not read as a tree.
pub(crate) fn edit(
    document: &str,
    old: &Tree,
    new: &Arc<Tree>,
) -> Result<(String, Arc<Tree>), DocumentProblem> {
    if let Some(text) = edit_rows(document, old, new) {
        debug_assert_eq!(parse(&text).as_ref(), Ok(&**new), "{document}\n---\n{text}");
        return Ok((text, Arc::clone(new)));
    }
    let text = rewrite_from(document, old, new);
    let tree = parse(&text)?;
    Ok((text, tree.into()))
}

/// The same where rows alone change, and have lines of their own.
pub(super) fn edit_rows(document: &str, old: &Tree, new: &Tree) -> Option<String> {
    let mut edits = Edits::of(document, old, new)?;
    // What comes behind one row is written before what takes the place of the next.
    edits
        .edits
        .sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    let (mut text, mut at) = (String::with_capacity(document.len() + 256), 0);
    for edit in edits.edits.iter().chain(&edits.sections) {
        text += document.get(at..edit.lines.start)?;
        if !text.is_empty() && !text.ends_with('\n') && !edit.text.is_empty() {
            text += edits.line_end;
        }
        text += &edit.text;
        at = edit.lines.end;
    }
    text += document.get(at..)?;
    Some(text)
}

/// Other text in place of some lines.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) lines: Range<usize>,
    pub(super) text: String,
}

/// What is to be done to a document.
#[derive(Debug)]
pub(super) struct Edits<'a> {
    document: &'a str,
    layout: Layout<'a>,
    /// How its lines end.
    line_end: &'static str,
    /// The line that makes a document of the lines of a row.
    head: String,
    /// In sections that are there.
    pub(super) edits: Vec<Edit>,
    /// The sections that come, behind all others.
    pub(super) sections: Vec<Edit>,
}

impl<'a> Edits<'a> {
    /// All that changes, row by row; `None` where there is more to it than that.
    pub(super) fn of(document: &'a str, old: &Tree, new: &Tree) -> Option<Self> {
        let is_of_rows = old.version == new.version
            && old.daemon == new.daemon
            && old.api == new.api
            && old.discovery == new.discovery;
        let (first, _) = document.split_once('\n').filter(|_| is_of_rows)?;
        let line_end = if first.ends_with('\r') { "\r\n" } else { "\n" };
        let mut edits = Self {
            document,
            layout: Layout::of(document),
            line_end,
            head: format!("version = {VERSION}{line_end}"),
            edits: Vec::new(),
            sections: Vec::new(),
        };
        edits.section("volume", &old.volume, &new.volume)?;
        edits.section("group", &old.group, &new.group)?;
        edits.section("target", &old.target, &new.target)?;
        edits.section("switch", &old.switch, &new.switch)?;
        Some(edits)
    }

    fn section<T: Row>(
        &mut self,
        name: &str,
        old: &BTreeMap<String, T>,
        new: &BTreeMap<String, T>,
    ) -> Option<()> {
        let (mut changed, mut come) = (Vec::new(), BTreeMap::new());
        for pair in pairs(old, new) {
            match pair {
                (name, Some(before), after) if after != Some(before) => {
                    changed.push((name, before, after));
                }
                (name, None, Some(row)) => drop(come.insert(name.clone(), row.clone())),
                _ => {}
            }
        }
        if changed.is_empty() && come.is_empty() {
            return Some(());
        }
        let section = self.layout.section(name)?;
        for (name, row, after) in changed {
            let lines = section?.row(name)?;
            let alone = |row: &T| T::tree([(name.clone(), row.clone())].into());
            let text = match after {
                Some(new) => self.rewritten(lines.clone(), &alone(row), &alone(new))?,
                None => String::new(),
            };
            self.edits.push(Edit { lines, text });
        }
        if !come.is_empty() {
            let at = section.map_or(self.layout.end(), Section::end);
            let text = self.rewritten(at..at, &Tree::default(), &T::tree(come))?;
            let into = match section {
                Some(_) => &mut self.edits,
                None => &mut self.sections,
            };
            into.push(Edit {
                lines: at..at,
                text,
            });
        }
        Some(())
    }

    /// What is written in place of some lines, if it is read as it is meant.
    fn rewritten(&self, lines: Range<usize>, old: &Tree, new: &Tree) -> Option<String> {
        let alone = format!("{}{}", self.head, self.document.get(lines)?);
        let text = rewrite_from(&alone, old, new);
        let is_right = parse(&text).is_ok_and(|read| read == *new);
        let text = text.strip_prefix(&self.head)?;
        is_right.then(|| text.to_owned())
    }
}

/// A row of a section.
trait Row: Clone + PartialEq {
    /// A tree of these rows alone.
    fn tree(rows: BTreeMap<String, Self>) -> Tree;
}

impl Row for VolumeRow {
    fn tree(volume: BTreeMap<String, Self>) -> Tree {
        Tree {
            volume,
            ..Tree::default()
        }
    }
}

impl Row for GroupRow {
    fn tree(group: BTreeMap<String, Self>) -> Tree {
        Tree {
            group,
            ..Tree::default()
        }
    }
}

impl Row for TargetRow {
    fn tree(target: BTreeMap<String, Self>) -> Tree {
        Tree {
            target,
            ..Tree::default()
        }
    }
}

impl Row for SwitchRow {
    fn tree(switch: BTreeMap<String, Self>) -> Tree {
        Tree {
            switch,
            ..Tree::default()
        }
    }
}

#[cfg(test)]
mod tests;

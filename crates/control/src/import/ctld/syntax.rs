//! The syntax of ctl.conf and what people write of UCL.
//!
//! ```text
//! target iqn.2012-06.com.example:a {         target {
//!     auth-group no-authentication               "iqn.2012-06.com.example:a" {
//!     lun 0 {                                        auth-group = no-authentication;
//!         path /dev/zvol/tank/a                      lun { 0 { path = "/dev/zvol/tank/a" } }
//!     }                                          }
//! }                                          }
//! ```
//!
//! Both become the left one: `key = value` and `key: value` are statements of two words, a list is
//! one statement for each item, and a section that holds named blocks is one statement for each.
//! A statement ends with its line, at `;` or `,`, or where its block ends. Not read are UCL's
//! macros (`.include`), variables and here-documents; such statements are named as not known.

use crate::import::ImportProblem;
use crate::import::block::{Blocks, Node};

/// The statements of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ImportProblem> {
    let mut parser = Parser {
        rest: text,
        line: 1,
        blocks: Blocks::default(),
        open: Node::default(),
        lists: Vec::new(),
        depth: 0,
    };
    parser.run()?;
    Ok(named(parser.blocks.finish()?))
}

struct Parser<'a> {
    rest: &'a str,
    line: usize,
    blocks: Blocks,
    /// The statement whose words are being read.
    open: Node,
    /// The words that each item of a list begins with, and the depth at which the list stands.
    lists: Vec<(Vec<String>, usize)>,
    depth: usize,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), ImportProblem> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                '\n' => {
                    if !self.block_follows() {
                        self.end();
                    }
                    self.step(1);
                    self.line += 1;
                }
                '#' => self.skip_to("\n"),
                '/' if self.rest.starts_with("/*") => self.skip_comment(),
                c if c.is_whitespace() => self.step(c.len_utf8()),
                ';' | ',' => {
                    self.end();
                    self.step(1);
                }
                '{' => self.begin_block()?,
                '}' => self.end_block()?,
                '[' if !is_ipv6(self.rest) => self.begin_list()?,
                ']' => self.end_list()?,
                '=' if self.open.words.len() == 1 => {
                    self.open.is_bare_value = true;
                    self.step(1);
                }
                '"' | '\'' => self.quoted(c)?,
                _ => self.word(),
            }
        }
        self.end();
        if self.lists.is_empty() {
            Ok(())
        } else {
            Err(self.wrong("a list is not closed", "close it by ]"))
        }
    }

    /// Whether the next thing that is said opens a block: it belongs to the statement before.
    fn block_follows(&self) -> bool {
        self.rest.trim_start().starts_with('{')
    }

    /// Ends the statement that is being read.
    fn end(&mut self) {
        let mut node = std::mem::take(&mut self.open);
        if node.words.is_empty() {
            return;
        }
        if let Some((words, _)) = self.lists.last().filter(|(_, depth)| *depth == self.depth) {
            node.words.splice(0..0, words.iter().cloned());
        }
        self.blocks.add(node);
    }

    fn begin_block(&mut self) -> Result<(), ImportProblem> {
        let mut node = std::mem::take(&mut self.open);
        if let Some((words, _)) = self.lists.last().filter(|(_, depth)| *depth == self.depth) {
            node.words.splice(0..0, words.iter().cloned());
        }
        if node.words.is_empty() && self.depth > 0 {
            let what = "a block begins without saying of what";
            return Err(self.wrong(what, "write for example target NAME {"));
        }
        node.line = if node.line == 0 { self.line } else { node.line };
        self.blocks.open(node)?;
        self.depth += 1;
        self.step(1);
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), ImportProblem> {
        self.end();
        if self
            .lists
            .last()
            .is_some_and(|(_, depth)| *depth == self.depth)
        {
            return Err(self.wrong("a block ends within a list", "close the list by ] first"));
        }
        self.blocks.close(self.line)?;
        self.depth = self.depth.saturating_sub(1);
        self.step(1);
        Ok(())
    }

    fn begin_list(&mut self) -> Result<(), ImportProblem> {
        let words = std::mem::take(&mut self.open).words;
        let nested = self
            .lists
            .last()
            .is_some_and(|(_, depth)| *depth == self.depth);
        if words.is_empty() || nested {
            let what = "a list begins without saying of what";
            return Err(self.wrong(what, "write for example listen = [ADDRESS, ADDRESS]"));
        }
        self.lists.push((words, self.depth));
        self.step(1);
        Ok(())
    }

    fn end_list(&mut self) -> Result<(), ImportProblem> {
        self.end();
        match self.lists.pop() {
            Some((_, depth)) if depth == self.depth => {
                self.step(1);
                Ok(())
            }
            _ => Err(self.wrong("this closes a list that was not opened", "take it out")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<(), ImportProblem> {
        self.step(1);
        let mut text = String::new();
        loop {
            let end = self
                .rest
                .find([quote, '\\', '\n'])
                .unwrap_or(self.rest.len());
            text.push_str(&self.rest[..end]);
            self.step(end);
            match self.rest.chars().next() {
                Some('\\') => {
                    let escaped = self.rest[1..].chars().next().filter(|c| *c != '\n');
                    text.extend(escaped);
                    self.step(1 + escaped.map_or(0, char::len_utf8));
                }
                Some(c) if c == quote => break,
                _ => {
                    let what = "a text is not closed by a quote in its line";
                    return Err(self.wrong(what, "close it before the line ends"));
                }
            }
        }
        self.step(1);
        self.open.is_bare_value = false;
        self.push(text);
        // JSON has a colon behind a key in quotes.
        if self.open.words.len() == 1 && self.rest.starts_with(':') {
            self.step(1);
        }
        Ok(())
    }

    fn word(&mut self) {
        let is_key = self.open.words.is_empty();
        let ends = |c: char| c.is_whitespace() || ";,{}\"'".contains(c) || (is_key && c == '=');
        // An IPv6 address has brackets of its own.
        let inner = self.rest.find(']').filter(|_| self.rest.starts_with('['));
        let from = inner.unwrap_or(0);
        let ends = |c: char| ends(c) || (inner.is_none() && c == ']');
        let end = self.rest[from..]
            .find(ends)
            .map_or(self.rest.len(), |end| from + end);
        let end = end.max(self.rest.chars().next().map_or(0, char::len_utf8));
        let (word, _) = self.rest.split_at(end);
        let word = match word.strip_suffix(':') {
            Some(key) if is_key && !key.is_empty() => {
                self.open.is_bare_value = true;
                key
            }
            _ => word,
        };
        let word = word.to_owned();
        self.step(end);
        self.push(word);
    }

    fn push(&mut self, word: String) {
        if self.open.words.is_empty() {
            self.open.line = self.line;
        }
        self.open.words.push(word);
    }

    fn skip_to(&mut self, end: &str) {
        let at = self.rest.find(end).unwrap_or(self.rest.len());
        self.step(at);
    }

    fn skip_comment(&mut self) {
        let end = self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
        self.line += self.rest[..end].matches('\n').count();
        self.step(end);
    }

    fn step(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn wrong(&self, what: &str, way_out: &str) -> ImportProblem {
        ImportProblem::new(self.line, what, way_out)
    }
}

/// `[2001:db8::1]:3260` is an address, `[192.0.2.1, …]` a list.
fn is_ipv6(text: &str) -> bool {
    let inner = text[1..].split_once(']').map_or("", |(inner, _)| inner);
    let is_part = |c: char| c.is_ascii_alphanumeric() || ":.%".contains(c);
    inner.matches(':').count() > 1 && inner.chars().all(is_part)
}

/// Brings sections of named blocks to one statement for each, and takes braces around all away.
fn named(nodes: Vec<Node>) -> Vec<Node> {
    let mut all = Vec::new();
    for node in nodes {
        match (&node.words[..], node.has_block) {
            // Braces around the whole file.
            ([], true) => all.extend(named(node.inner)),
            ([key], true) if SECTIONS.contains(&&**key) => {
                all.extend(section(key, node.inner));
            }
            _ => all.push(Node {
                inner: named(node.inner),
                ..node
            }),
        }
    }
    all
}

/// `lun { 0 { … } }` is `lun 0 { … }`; and a LUN or portal group of a list has its number or name
/// within.
fn section(key: &str, inner: Vec<Node>) -> Vec<Node> {
    let name = |node: &Node| ["number", "name"].contains(&node.key()) && !node.has_block;
    if let Some(first) = inner.iter().find(|node| name(node)).map(|node| node.line) {
        let mut inner = inner;
        let mut words = vec![key.to_owned()];
        for wanted in ["number", "name", "auth-group-name"] {
            let at = inner
                .iter()
                .position(|node| node.key() == wanted && !node.has_block);
            words.extend(at.map(|at| inner.remove(at).value().to_owned()));
        }
        let has_block = !inner.is_empty();
        return vec![Node {
            inner: named(inner),
            has_block,
            ..Node::new(first, words)
        }];
    }
    let each = inner.into_iter().map(|mut node| {
        node.words.insert(0, key.to_owned());
        node.inner = named(node.inner);
        node
    });
    each.collect()
}

const SECTIONS: &[&str] = &[
    "auth-group",
    "controller",
    "lun",
    "portal-group",
    "target",
    "transport-group",
];

//! Resolves the path and the command of a line.

use super::command::{Command, commands_at};
use super::grammar::{Line, Parameter, Word};
use super::node::Node;
use super::{Refusal, Shell, settings};
use crate::tree::Tree;

/// A resolved line.
pub(super) struct Meant {
    pub(super) node: Node,
    /// Whether the path resolved only from the node created last.
    pub(super) is_below_last: bool,
    /// `None` if the line is a path alone, which enters the node.
    pub(super) command: Option<&'static Command>,
    pub(super) parameters: Vec<Parameter>,
}

/// The point at which the resolution of a path failed.
struct Stop {
    at: Node,
    word: String,
    steps: usize,
}

/// Resolves the node and the command of a line.
pub(super) fn line(shell: &Shell, tree: &Tree, line: Line) -> Result<Meant, Refusal> {
    let line = path_without_slash(shell, tree, line);
    let line = command_in_path(shell, tree, line);
    let (mut node, mut is_below_last) = match &line.path {
        Some(path) => path_of(shell, tree, path)?,
        None => (shell.here.clone(), false),
    };
    let command = match &line.command {
        Some(word) => Some(command_of(&node, &word.text)?),
        None => None,
    };
    if line.path.is_none()
        && let Some(better) = place_of_setting(shell, tree, &line)
    {
        (node, is_below_last) = (better, true);
    }
    Ok(Meant {
        node,
        is_below_last,
        command,
        parameters: line.parameters,
    })
}

/// A path whose last part is a command: `/saveconfig` is `/ saveconfig`.
fn command_in_path(shell: &Shell, tree: &Tree, mut line: Line) -> Line {
    let path = line.path.as_deref().unwrap_or_default();
    let Some((above, word)) = path.rsplit_once('/') else {
        return line;
    };
    let above = format!("{above}/");
    let is_node = path_of(shell, tree, path).is_ok();
    let Some((node, _)) = path_of(shell, tree, &above).ok().filter(|_| !is_node) else {
        return line;
    };
    if commands_at(&node).iter().any(|one| one.name == word) {
        let first = line.command.replace(Word::bare(word));
        line.parameters
            .splice(..0, first.map(|word| word.parameter()));
        line.path = Some(above);
    }
    line
}

/// Takes a first word that is not a command but a child of the current node as a path: `iscsi ls`.
fn path_without_slash(shell: &Shell, tree: &Tree, mut line: Line) -> Line {
    let Some(word) = line.command.take_if(|_| line.path.is_none()) else {
        return line;
    };
    let is_command = commands_at(&shell.here)
        .iter()
        .any(|one| one.name == word.text);
    if is_command || shell.here.child(tree, &word.text).is_none() {
        line.command = Some(word);
        return line;
    }
    line.path = Some(word.text);
    if let Some(Parameter::Value(word)) = line.parameters.first() {
        line.command = Some(Word::bare(word));
        line.parameters.remove(0);
    }
    line
}

fn command_of(node: &Node, word: &str) -> Result<&'static Command, Refusal> {
    let commands = commands_at(node);
    if let Some(found) = commands.iter().find(|one| one.name == word) {
        return Ok(found);
    }
    let what = format!("{} has no command {word}.", node.path());
    let names = || commands.iter().map(|one| one.name);
    Err(
        Refusal::new(what).way_out(match address::nearest(word, names()) {
            Some(near) => format!("Did you mean {near}?"),
            None => format!("It has {}.", names().collect::<Vec<_>>().join(", ")),
        }),
    )
}

/// Resolves `set` and `get` of a group that the current node lacks: the node created last, or the
/// nearest one above it, that has the group with the first setting of the line.
fn place_of_setting(shell: &Shell, tree: &Tree, line: &Line) -> Option<Node> {
    let mut words = line.parameters.iter();
    let is_setting = matches!(
        line.command.as_ref().map(|word| word.text.as_str()),
        Some("set" | "get")
    );
    let Some(Parameter::Value(group)) = words.next().filter(|_| is_setting) else {
        return None;
    };
    let key = words.next().map(|word| match word {
        Parameter::Value(key) | Parameter::Keyword(key, _) => key.as_str(),
    });
    if settings::has(&shell.here, group, None) {
        return None;
    }
    above_last(shell, tree).find(|node| settings::has(node, group, key))
}

/// Resolves a path. The flag tells whether it resolved only from the node created last.
pub(super) fn path_of(shell: &Shell, tree: &Tree, path: &str) -> Result<(Node, bool), Refusal> {
    if let Some(bookmark) = path.strip_prefix('@') {
        return Ok((bookmarked(shell, tree, bookmark)?, false));
    }
    if path.starts_with('/') {
        let found = walk(tree, &Node::Root, path);
        return found
            .map(|node| (node, false))
            .map_err(|stop| stop.told(tree));
    }
    let here = match walk(tree, &shell.here, path) {
        Ok(node) => return Ok((node, false)),
        Err(stop) => stop,
    };
    let root = match walk(tree, &Node::Root, path) {
        Ok(node) => return Ok((node, false)),
        Err(stop) => stop,
    };
    let mut above = above_last(shell, tree);
    if let Some(node) = above.find_map(|node| walk(tree, &node, path).ok()) {
        return Ok((node, true));
    }
    let furthest = if root.steps > here.steps { root } else { here };
    Err(furthest.told(tree))
}

/// The node created last and its ancestors, without those that were deleted meanwhile.
fn above_last(shell: &Shell, tree: &Tree) -> impl Iterator<Item = Node> {
    let all = shell.last_made.iter().flat_map(Node::upwards);
    all.filter(|node| node.exists(tree))
}

fn bookmarked(shell: &Shell, tree: &Tree, name: &str) -> Result<Node, Refusal> {
    if name == "last"
        && let Some(last) = shell.last_made.as_ref().filter(|last| last.exists(tree))
    {
        return Ok(last.clone());
    }
    let path = shell.prefs.bookmarks.get(name);
    let path = path.ok_or_else(|| Refusal::new(format!("No such bookmark {name}.")))?;
    walk(tree, &Node::Root, path).map_err(|stop| stop.told(tree))
}

fn walk(tree: &Tree, from: &Node, path: &str) -> Result<Node, Stop> {
    let words = path.split('/').filter(|word| !matches!(*word, "" | "."));
    let mut node = from.clone();
    for (steps, word) in words.enumerate() {
        let next = match word {
            ".." => Some(node.parent()),
            _ => node.child(tree, word),
        };
        node = next.ok_or_else(|| Stop {
            at: node,
            word: word.to_owned(),
            steps,
        })?;
    }
    Ok(node)
}

impl Stop {
    fn told(&self, tree: &Tree) -> Refusal {
        let at = self.at.path();
        let what = format!("No such path: {at} has no {}.", self.word);
        if let Some((_, reason)) = ELSEWHERE.iter().find(|(word, _)| *word == self.word) {
            return Refusal::new(what).way_out(*reason);
        }
        let children = self.at.children(tree);
        let names: Vec<_> = children.iter().map(Node::name).collect();
        let near = address::nearest(&self.word, names.iter().map(String::as_str));
        Refusal::new(what).way_out(match near {
            Some(near) => format!("Did you mean {near}?"),
            None if names.is_empty() => "It is empty.".to_owned(),
            None if names.len() > NAMED => {
                format!(
                    "It has {} and {} more.",
                    names[..NAMED].join(", "),
                    names.len() - NAMED
                )
            }
            None => format!("It has {}.", names.join(", ")),
        })
    }
}

/// How many nodes an error lists; as many as fit in two or three lines.
const NAMED: usize = 8;

/// Nodes of targetcli that Lunar does not have.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "ib_srpt",
        "Lunar has no SRP; it serves iSCSI and FCoE: /iscsi, /tcm_fc.",
    ),
    (
        "srpt",
        "Lunar has no SRP; it serves iSCSI and FCoE: /iscsi, /tcm_fc.",
    ),
    (
        "qla2xxx",
        "Only a kernel has Fibre Channel adapters; Lunar has FCoE: /tcm_fc.",
    ),
    (
        "vhost",
        "Only a kernel has vhost; Lunar serves iSCSI and FCoE: /iscsi, /tcm_fc.",
    ),
    (
        "sbp",
        "Lunar has no FireWire; it serves iSCSI and FCoE: /iscsi, /tcm_fc.",
    ),
    ("rd_dr", "RAM disks are below rd_mcp."),
    ("alua", "Lunar has no ALUA groups."),
];

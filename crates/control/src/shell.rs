//! The shell: the words and the grammar of targetcli, over a [`Tree`].
//!
//! It does no I/O and has no clock. A line reads the running tree and yields an answer and a
//! candidate tree, which the caller sends to the gate. Facts about the machine come in through
//! [`Machine`].
//!
//! | file | duty |
//! |---|---|
//! | [`grammar`] | a line in its words |
//! | `node`, `kind`, `resolve` | nodes, and the paths to them |
//! | `command`, `run` | which node has which command, and one line while it is carried out |
//! | `look`, `summary` | what `ls` shows |
//! | `navigation`, `common`, `root` | `cd`, `ls`, `help`, `saveconfig` and the like |
//! | `backstores`, `fabrics`, `luns`, `acls`, `portals` | `create` and `delete` of each node |
//! | `iser` | iSER at a portal |
//! | `settings` | `get` and `set`: attributes, parameters, CHAP, preferences |
//! | `access` | how ACLs stand in a tree, as a table |
//!
//! A relative path is resolved at the current node, then at the root, then at the node created last
//! and the nodes above it. In the last case the answer names the node. `get` and `set` of a group
//! that the current node lacks resolve likewise.
//!
//! # How a caller uses it
//!
//! [`Shell::run`] changes the shell only if the line succeeds. If the gate refuses the candidate,
//! the caller restores a clone of the shell from before the line. To combine many lines into one
//! plan, the caller passes the candidate of each line as the [`Context::tree`] of the next. Secrets
//! must be stored before the candidate is sent.

mod access;
mod acls;
mod backstores;
mod command;
mod common;
mod fabrics;
pub mod grammar;
mod iser;
mod kind;
mod look;
mod luns;
mod navigation;
mod node;
mod portals;
mod preferences;
mod resolve;
mod root;
mod run;
mod settings;
mod summary;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use crate::tree::Tree;
pub use command::{Command, commands_at};
pub use kind::BackstoreKind;
pub use node::{Fabric, Node, TpgPlace};
pub use preferences::Preferences;
use run::Run;
pub use settings::names as setting_names;

/// The state of a shell between two lines.
#[derive(Clone, Debug)]
pub struct Shell {
    here: Node,
    /// Nodes that were entered, for `cd <` and `cd >`.
    visited: Vec<Node>,
    /// The index of the current node in `visited`.
    visit: usize,
    last_made: Option<Node>,
    /// CHAP credentials of which only one half was typed.
    half_chap: BTreeMap<settings::ChapPlace, settings::HalfChap>,
    /// Preferences, which the caller stores from one shell to the next.
    pub prefs: Preferences,
}

/// The input of a line.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The running tree, or the candidate of the lines before.
    pub tree: &'a Tree,
    /// Facts about the machine.
    pub machine: &'a dyn Machine,
    /// The generation of the running tree.
    pub generation: u64,
    /// Where the document is kept.
    pub config_path: &'a str,
    /// Columns of the terminal; 80 where there is none.
    pub width: usize,
}

/// Facts about the machine that are not in the tree.
pub trait Machine {
    /// The state of a volume; `None` if no volume of this name is served yet.
    fn volume(&self, name: &str) -> Option<VolumeFact>;
    /// Sessions of initiators.
    fn sessions(&self) -> Vec<SessionFact>;
    /// Ethernet interfaces by name, with their MAC addresses.
    fn interfaces(&self) -> Vec<(String, [u8; 6])>;
    /// IP addresses of the machine; `None` where they are not known.
    fn addresses(&self) -> Option<Vec<IpAddr>>;
    /// What the IQN of a new target begins with, up to the colon: `iqn.2026-11.org.lunar.host`.
    fn iqn_base(&self) -> String;
    /// Twelve random hexadecimal digits, others each time.
    fn serial(&self) -> String;
    /// The InitiatorName in a file such as `/etc/iscsi/initiatorname.iscsi`.
    ///
    /// # Errors
    ///
    /// Why there is none, as a part of a sentence.
    fn initiator_name(&self, path: &str) -> Result<String, String>;
}

/// The state of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeFact {
    /// Its capacity in bytes, if that is known.
    pub size: Option<u64>,
    /// Whether it is open. A volume that cannot be opened is absent.
    pub is_present: bool,
}

/// A session of an initiator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFact {
    /// Identifies the session.
    pub id: u64,
    /// The initiator's IQN or WWPN.
    pub initiator: String,
    /// InitiatorAlias, or empty.
    pub alias: String,
    /// The target.
    pub target: String,
    /// The address of the initiator.
    pub address: String,
    /// Whether the initiator authenticated by CHAP.
    pub is_authenticated: bool,
}

/// The result of a line.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The text to display, without a newline at its end.
    pub answer: String,
    /// The candidate for the gate; `None` if the line does not change the tree.
    pub change: Option<Tree>,
    /// Secrets to be stored before the candidate is sent.
    pub secrets: Vec<TypedSecret>,
    /// A further action of the caller.
    pub effect: Effect,
}

/// An action that the caller takes after a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// Nothing more.
    #[default]
    None,
    /// The preferences have changed and should be stored.
    Preferences,
    /// The shell ends.
    Exit,
}

/// A secret that was typed. The tree refers to it as `state:NAME`.
#[derive(Clone, PartialEq, Eq)]
pub struct TypedSecret {
    /// NAME.
    pub name: String,
    /// The secret.
    pub secret: String,
}

/// Why a line failed. Neither shell nor tree has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The error.
    pub what: String,
    /// How to correct it.
    pub way_out: Option<String>,
}

/// Bounds the history of `cd <`, which would otherwise grow with every line of a script.
const VISITS: usize = 100;

impl Default for Shell {
    fn default() -> Self {
        Self::new(Preferences::default())
    }
}

impl Shell {
    /// A shell at the root.
    #[must_use]
    pub fn new(prefs: Preferences) -> Self {
        Self {
            here: Node::Root,
            visited: vec![Node::Root],
            visit: 0,
            last_made: None,
            half_chap: BTreeMap::new(),
            prefs,
        }
    }

    /// The current node. If it was deleted meanwhile, it is the nearest node above that exists.
    #[must_use]
    pub fn here(&self, tree: &Tree) -> Node {
        let mut upwards = self.here.upwards();
        upwards.find(|node| node.exists(tree)).unwrap_or(Node::Root)
    }

    /// Resolves a path as a line does.
    ///
    /// # Errors
    ///
    /// The node at which the path stops, and its children.
    pub fn node_at(&self, tree: &Tree, path: &str) -> Result<Node, Refusal> {
        resolve::path_of(self, tree, path).map(|(node, _)| node)
    }

    /// The prompt.
    #[must_use]
    pub fn prompt(&self, tree: &Tree) -> String {
        format!("{}> ", self.here(tree).path())
    }

    /// Runs one line.
    ///
    /// # Errors
    ///
    /// Why the line failed.
    pub fn run(&mut self, line: &str, context: &Context<'_>) -> Result<Outcome, Refusal> {
        let mut next = self.clone();
        let outcome = next.carry_out(line, context)?;
        *self = next;
        Ok(outcome)
    }

    fn carry_out(&mut self, line: &str, context: &Context<'_>) -> Result<Outcome, Refusal> {
        self.here = self.here(context.tree);
        let line = grammar::parse(line)?;
        if line.path.is_none() && line.command.is_none() {
            return Ok(Outcome::default());
        }
        let meant = resolve::line(self, context.tree, line)?;
        let mut run = Run::new(self, context, meant.node);
        if meant.is_below_last {
            let path = run.node.path();
            run.say(format!("Using {path}, relative to the node created last."));
        }
        match meant.command {
            Some(command) => {
                let args = command.bind(meant.parameters)?;
                (command.run)(&mut run, &args)?;
            }
            None => navigation::enter(&mut run),
        }
        Ok(run.outcome())
    }

    /// Changes the current node.
    fn enter(&mut self, node: Node) {
        if node != self.here {
            self.visited.truncate(self.visit + 1);
            self.visited.push(node.clone());
            if self.visited.len() > VISITS {
                self.visited.remove(0);
            }
            self.visit = self.visited.len() - 1;
        }
        self.here = node;
    }
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            what,
            way_out: None,
        }
    }

    pub(crate) fn way_out(self, way_out: impl Into<String>) -> Self {
        let way_out = Some(way_out.into());
        Self { way_out, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.way_out {
            Some(way_out) => write!(f, " {way_out}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Debug for TypedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypedSecret({})", self.name)
    }
}

#[cfg(test)]
mod tests;

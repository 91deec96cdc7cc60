//! The state of one line while it runs.

use std::borrow::Cow;

use super::node::{Node, TpgPlace};
use super::{Context, Effect, Machine, Outcome, Refusal, Shell, TypedSecret};
use crate::tree::Tree;

/// The state of one line while it runs.
pub(super) struct Run<'a> {
    pub(super) shell: &'a mut Shell,
    pub(super) context: &'a Context<'a>,
    /// The node that the command applies to.
    pub(super) node: Node,
    tree: Cow<'a, Tree>,
    answer: Vec<String>,
    secrets: Vec<TypedSecret>,
    effect: Effect,
    made: Option<Node>,
}

impl<'a> Run<'a> {
    pub(super) fn new(shell: &'a mut Shell, context: &'a Context<'a>, node: Node) -> Self {
        Self {
            shell,
            context,
            node,
            tree: Cow::Borrowed(context.tree),
            answer: Vec::new(),
            secrets: Vec::new(),
            effect: Effect::None,
            made: None,
        }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The candidate. The running tree is copied by the first call.
    pub(super) fn edit(&mut self) -> &mut Tree {
        self.tree.to_mut()
    }

    pub(super) fn machine(&self) -> &'a dyn Machine {
        self.context.machine
    }

    pub(super) fn say(&mut self, line: impl Into<String>) {
        self.answer.push(line.into());
    }

    pub(super) fn end_with(&mut self, effect: Effect) {
        self.effect = effect;
    }

    /// Records the node that the command created.
    pub(super) fn made(&mut self, node: Node) {
        self.made = Some(node);
    }

    /// Hands a secret to the caller and returns its name. Every secret gets a new name: otherwise
    /// the gate would see no difference, and a rollback would not restore the old secret.
    pub(super) fn keep_secret(&mut self, group: &str, secret: &str) -> String {
        let name = format!("{group}.{}", self.machine().serial());
        self.secrets.push(TypedSecret {
            name: name.clone(),
            secret: secret.to_owned(),
        });
        name
    }

    /// The portal group of the node.
    pub(super) fn place(&self) -> Result<TpgPlace, Refusal> {
        let place = self.node.place().cloned();
        place.ok_or_else(|| Refusal::new("This node belongs to no portal group."))
    }

    /// The target of the node.
    pub(super) fn target(&self) -> Result<String, Refusal> {
        match &self.node {
            Node::Target(name) => Ok(name.clone()),
            _ => Ok(self.place()?.target),
        }
    }

    pub(super) fn outcome(mut self) -> Outcome {
        if let Some(node) = self.made.take() {
            self.enter_if_wanted(&node);
            self.shell.last_made = Some(node);
        }
        let change = match self.tree {
            Cow::Owned(tree) if tree != *self.context.tree => Some(tree),
            _ => None,
        };
        Outcome {
            answer: self.answer.join("\n"),
            change,
            secrets: self.secrets,
            effect: self.effect,
        }
    }

    fn enter_if_wanted(&mut self, node: &Node) {
        if self.shell.prefs.flag("auto_cd_after_create") {
            let path = node.path();
            self.say(format!("Entering new node {path}."));
            self.shell.enter(node.clone());
        }
    }
}

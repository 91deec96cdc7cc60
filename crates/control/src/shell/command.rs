//! Commands: how they are described, and how parameters are bound.

mod table;

use std::collections::BTreeMap;

use super::Refusal;
use super::grammar::Parameter;
use super::node::Node;
use super::run::Run;

/// The result of a command. Its answer is in the [`Run`].
pub(super) type Done = Result<(), Refusal>;

/// A command.
pub struct Command {
    /// The word that is typed.
    pub name: &'static str,
    /// Parameters in positional order. `[name]` is optional, `value…` takes any number of values,
    /// `key=value…` any number of pairs, and `a|b` are two names of one parameter.
    pub parameters: &'static [&'static str],
    /// One sentence of help.
    pub purpose: &'static str,
    pub(super) run: fn(&mut Run<'_>, &Args) -> Done,
}

/// The bound parameters of a command.
#[derive(Debug, Default)]
pub(super) struct Args {
    bound: BTreeMap<&'static str, String>,
    /// Positional values beyond the named parameters.
    pub(super) values: Vec<String>,
    /// Pairs whose key is not a named parameter.
    pub(super) pairs: Vec<(String, String)>,
}

/// The commands that a node has, its own first.
#[must_use]
pub fn commands_at(node: &Node) -> Vec<&'static Command> {
    table::own(node).iter().chain(table::EVERYWHERE).collect()
}

impl Command {
    /// The usage line.
    #[must_use]
    pub fn syntax(&self) -> String {
        let words = [self.name]
            .into_iter()
            .chain(self.parameters.iter().copied());
        words.collect::<Vec<_>>().join(" ")
    }

    /// The names of the parameters, in positional order.
    pub fn parameter_names(&self) -> impl Iterator<Item = &'static str> {
        let names = self.parameters.iter().map(|one| names_of(one).0);
        names.filter(|name| !name.ends_with('…'))
    }

    fn takes(&self, rest: &str) -> bool {
        self.parameters
            .last()
            .is_some_and(|last| last.trim_matches(['[', ']']) == rest)
    }

    /// The named parameter that a key means.
    fn named(&self, key: &str) -> Option<&'static str> {
        let mut all = self.parameters.iter().map(|one| names_of(one));
        all.find(|(name, other)| *name == key || *other == Some(key))
            .map(|(name, _)| name)
    }

    /// Binds values by position and pairs by key.
    pub(super) fn bind(&self, typed: Vec<Parameter>) -> Result<Args, Refusal> {
        let mut args = Args::default();
        let mut places = self.parameter_names();
        let most = self.parameter_names().count();
        let given = typed
            .iter()
            .filter(|one| matches!(one, Parameter::Value(_)))
            .count();
        for parameter in typed {
            match parameter {
                Parameter::Value(value) => match places.next() {
                    Some(name) => args.put(name, value)?,
                    None if self.takes(VALUES) => args.values.push(value),
                    None => return Err(self.too_many(given, most)),
                },
                Parameter::Keyword(key, value) => match self.named(&key) {
                    Some(name) => args.put(name, value)?,
                    None if self.takes(PAIRS) => args.pairs.push((key, value)),
                    None => return Err(self.unexpected(&key)),
                },
            }
        }
        self.check_required(&args)?;
        Ok(args)
    }

    fn check_required(&self, args: &Args) -> Done {
        let required = self.parameters.iter().filter(|one| !one.starts_with('['));
        let mut names = required.map(|one| names_of(one).0);
        match names.find(|name| args.get(name).is_none()) {
            Some(name) => Err(self.misuse(format!("Missing required parameter {name}."))),
            None => Ok(()),
        }
    }

    fn too_many(&self, given: usize, most: usize) -> Refusal {
        self.misuse(format!(
            "Got {given} positional parameters, expected at most {most}."
        ))
    }

    fn unexpected(&self, key: &str) -> Refusal {
        let what = format!("Unexpected keyword parameter '{key}'.");
        match address::nearest(key, self.parameter_names()) {
            Some(near) => Refusal::new(what).way_out(format!("Did you mean {near}?")),
            None => self.misuse(what),
        }
    }

    fn misuse(&self, what: String) -> Refusal {
        Refusal::new(what).way_out(format!("Usage: {}", self.syntax()))
    }
}

/// The name of a parameter and its alias.
fn names_of(parameter: &'static str) -> (&'static str, Option<&'static str>) {
    let bare = parameter.trim_matches(['[', ']']);
    match bare.split_once('|') {
        Some((name, other)) => (name, Some(other)),
        None => (bare, None),
    }
}

impl Args {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.bound.get(name).map(String::as_str)
    }

    /// A required parameter.
    pub(super) fn need(&self, name: &str) -> Result<&str, Refusal> {
        let missing = || Refusal::new(format!("Missing required parameter {name}."));
        self.get(name).ok_or_else(missing)
    }

    /// A boolean parameter.
    pub(super) fn flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        self.get(name).map_or(Ok(default), |text| truth(name, text))
    }

    fn put(&mut self, name: &'static str, value: String) -> Done {
        match self.bound.insert(name, value) {
            Some(_) => Err(Refusal::new(format!("Duplicate parameter {name}."))),
            None => Ok(()),
        }
    }
}

/// Parses a boolean as configshell does.
pub(super) fn truth(name: &str, text: &str) -> Result<bool, Refusal> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(true),
        "0" | "false" | "no" => Ok(false),
        _ => Err(Refusal::new(format!("{name}: '{text}' is not true|false."))),
    }
}

const VALUES: &str = "value…";
const PAIRS: &str = "key=value…";

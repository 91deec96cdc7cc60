//! One shell: each line is run on what the daemon serves, and what comes of it goes to its gate.

use control::api::Status;
use control::client::{ApiClient, ApiError, ApiRequest, Method};
use control::document::{parse, rewrite};
use control::gate::Outcome;
use control::shell::{Context, Effect, Preferences, Shell, TypedSecret};
use control::tree::Tree;

use super::complete::Completer;
use super::machine::DaemonMachine;
use crate::VerbError;
use crate::manage::{failure, segment};

/// A shell, and the daemon that it changes.
pub(super) struct ShellSession {
    client: ApiClient,
    pub(super) shell: Shell,
    allow: Vec<String>,
    /// Nothing is changed.
    pub(super) is_dry: bool,
    /// Lines are gathered, to become one change.
    pub(super) gathers: bool,
    gathered: Option<Running>,
    /// Those that were typed in lines that are gathered.
    secrets: Vec<TypedSecret>,
}

/// What the daemon serves, or would after the lines until now.
#[derive(Clone)]
struct Running {
    generation: u64,
    /// The configuration file.
    config: String,
    text: String,
    tree: Tree,
    /// What lines that take something away have to be allowed. It was asked for in so many words.
    taken: Vec<String>,
}

/// What a line answers.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) is_exit: bool,
}

impl ShellSession {
    pub(super) fn new(client: ApiClient, prefs: Preferences, allow: Vec<String>) -> Self {
        Self {
            client,
            shell: Shell::new(prefs),
            allow,
            is_dry: false,
            gathers: false,
            gathered: None,
            secrets: Vec::new(),
        }
    }

    pub(super) fn prompt(&self) -> String {
        self.running().map_or_else(
            |_| "> ".to_owned(),
            |running| self.shell.prompt(&running.tree),
        )
    }

    pub(super) fn completer(&self) -> Result<Completer, VerbError> {
        let tree = self.running()?.tree;
        let here = self.shell.here(&tree);
        Ok(Completer { tree, here })
    }

    /// Runs a line. The shell is where it was if the daemon refuses what comes of it.
    pub(super) fn run(&mut self, line: &str) -> Result<Answer, VerbError> {
        let mut running = self.running()?;
        let machine = DaemonMachine::new(&self.client)?;
        let context = Context {
            tree: &running.tree,
            machine: &machine,
            generation: running.generation,
            config_path: &running.config,
            width: 80,
        };
        let before = self.shell.clone();
        let outcome = self.shell.run(line, &context).map_err(VerbError::failed)?;
        let mut text = outcome.answer;
        if self.gathers {
            self.secrets.extend(outcome.secrets);
        } else if !self.is_dry {
            // Half of a credential changes nothing yet.
            self.keep_secrets(&outcome.secrets)?;
        }
        if let Some(tree) = outcome.change {
            let old = std::mem::replace(&mut running.tree, tree);
            if takes_away(line) && !self.is_dry {
                let had = self.needs(&running, &old);
                let has = self.needs(&running, &running.tree).into_iter();
                running.taken.extend(has.filter(|need| !had.contains(need)));
            }
            if self.gathers {
                if self.is_dry {
                    text.clear();
                }
                self.gathered = Some(running);
            } else {
                let sent = self.send(&running);
                let told = sent.inspect_err(|_| self.shell = before)?;
                text = if self.is_dry { told } else { text };
            }
        }
        Ok(Answer {
            text,
            is_exit: outcome.effect == Effect::Exit,
        })
    }

    /// Sends what was gathered.
    pub(super) fn commit(&mut self) -> Result<(), VerbError> {
        let secrets = std::mem::take(&mut self.secrets);
        if !self.is_dry {
            self.keep_secrets(&secrets)?;
        }
        let Some(gathered) = self.gathered.take() else {
            return Ok(());
        };
        let told = self.send(&gathered)?;
        if self.is_dry {
            crate::documents::print(format!("{told}\n").as_bytes())?;
        }
        Ok(())
    }

    fn running(&self) -> Result<Running, VerbError> {
        if let Some(gathered) = &self.gathered {
            return Ok(gathered.clone());
        }
        let wrong = |error: ApiError| failure(&error);
        let status: Status = self
            .client
            .ask(Method::GET, &ApiRequest::new("/v1/status"))
            .map_err(wrong)?;
        let text = self
            .client
            .text(Method::GET, &ApiRequest::new("/v1/config"))
            .map_err(wrong)?;
        let tree = parse(&text).map_err(VerbError::failed)?;
        Ok(Running {
            generation: status.generation,
            config: status.config,
            text,
            tree,
            taken: Vec::new(),
        })
    }

    fn keep_secrets(&self, secrets: &[TypedSecret]) -> Result<(), VerbError> {
        for one in secrets {
            let request = ApiRequest {
                path: format!("/v1/secrets/{}", segment(&one.name)),
                body: Some(one.secret.clone()),
                based_on: None,
            };
            let kept = self.client.text(Method::PUT, &request);
            kept.map_err(|error| failure(&error))?;
        }
        Ok(())
    }

    /// Sends a candidate; returns its plan.
    fn send(&self, running: &Running) -> Result<String, VerbError> {
        let mut request = candidate(running, &running.tree);
        let wrong = |error: ApiError| failure(&error);
        let plan: Outcome = self.client.ask(Method::POST, &request).map_err(wrong)?;
        if self.is_dry {
            return Ok(plan.plan.to_string());
        }
        let needs = plan.plan.needs();
        let taken = running.taken.iter().filter(|one| needs.contains(one));
        let allow: Vec<_> = self
            .allow
            .iter()
            .chain(taken)
            .map(|one| segment(one))
            .collect();
        request.path = format!("/v1/apply?allow={}", allow.join(","));
        if allow.is_empty() {
            request.path = "/v1/apply".to_owned();
        }
        self.client
            .ask::<Outcome>(Method::POST, &request)
            .map_err(wrong)?;
        Ok(plan.plan.to_string())
    }

    /// What would have to be allowed for a tree; nothing for one that is not whole yet.
    fn needs(&self, running: &Running, tree: &Tree) -> Vec<String> {
        let plan = self.client.ask(Method::POST, &candidate(running, tree));
        plan.map_or(Vec::new(), |outcome: Outcome| outcome.plan.needs())
    }
}

/// Asks for the plan of a tree.
fn candidate(running: &Running, tree: &Tree) -> ApiRequest {
    ApiRequest {
        path: "/v1/plan".to_owned(),
        body: Some(rewrite(&running.text, tree)),
        based_on: Some(running.generation),
    }
}

/// Whether the command of a line takes something away.
fn takes_away(line: &str) -> bool {
    let (words, _) = control::shell::grammar::words(line);
    let mut words = words.iter().filter(|word| !word.is_path());
    let command = words.next().map(|word| &*word.text);
    matches!(command, Some("delete" | "clearconfig"))
}

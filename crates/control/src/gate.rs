//! The one gate by which what is configured changes: old or new, and never between.
//!
//! ```text
//!   candidate -> parse -> check -> plan -> allowed? -> prepare -> commit -> switch
//!                                             |           |         |
//!                                          dry run     volumes,   history, then
//!                                          ends here   portals,   the file: synced,
//!                                                      secrets    renamed
//! ```
//!
//! What fails up to the commit has changed nothing. The commit is one rename. What the engine
//! refuses after it (a host owes data to a volume that is exchanged) takes the file back. A process
//! that is killed anywhere serves the old tree or the new one at its next start.
//!
//! The gate does no I/O of its own: [`Store`] keeps, [`Engine`] serves.

mod error;
mod permission;

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check::{TreeProblem, check, new_overlaps};
use crate::document::{edit, parse};
use crate::plan::{Allowed, FabricLogins, Impact, Plan, SessionFact, plan};
use crate::tree::Tree;
pub use error::GateError;
use permission::{are_rows, permit};

/// What serves the tree.
pub trait Engine {
    /// The sessions that there are.
    ///
    /// # Errors
    ///
    /// The cores do not tell.
    fn sessions(&self) -> Result<Vec<SessionFact>, String>;

    /// The ports that are logged in to the fabrics of switches.
    fn fabric_logins(&self) -> FabricLogins {
        FabricLogins::default()
    }

    /// Reads again what the tree that is served only names: secrets, and zones in files.
    ///
    /// # Errors
    ///
    /// What cannot be read; the old ones count.
    fn refresh(&mut self, tree: &Arc<Tree>) -> Result<(), Vec<String>>;

    /// Keeps a secret under a name.
    ///
    /// # Errors
    ///
    /// It cannot be kept.
    fn keep_secret(&mut self, name: &str, secret: &str) -> Result<(), String>;

    /// Serves a tree in place of the one that is served. `persist` is called when all that can fail
    /// has been done and nothing is visible yet, with the sessions that there are then.
    ///
    /// # Errors
    ///
    /// Why nothing has changed, in lines.
    fn apply(
        &mut self,
        tree: &Arc<Tree>,
        absent_ok: bool,
        persist: Persist<'_>,
    ) -> Result<(), Vec<String>>;
}

/// Keeps a change of which these sessions are told, or says why it is not made.
pub type Persist<'a> = &'a mut dyn FnMut(&[SessionFact]) -> Result<(), String>;

/// What keeps the document and its history.
pub trait Store {
    /// The file as it is now; `None` where there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    fn file(&self) -> Result<Option<String>, String>;

    /// Is told of what is about to be done without a new generation: names are read again, and an
    /// edit of the file may be dropped.
    ///
    /// # Errors
    ///
    /// It must not be done.
    fn announce(&mut self, drops_edit: bool) -> Result<(), String> {
        let _ = drops_edit;
        Ok(())
    }

    /// Makes a generation the one that counts: first the history, then the file.
    ///
    /// # Errors
    ///
    /// The old one counts.
    fn commit(&mut self, generation: &Generation, text: &str) -> Result<(), String>;

    /// Notes that hosts are served a generation from now on.
    ///
    /// # Errors
    ///
    /// It cannot be noted: the next start takes the generation for one that was never served.
    fn serves(&mut self, generation: u64) -> Result<(), String>;

    /// Takes a commit back, as the engine has refused it.
    ///
    /// # Errors
    ///
    /// The file still says what was refused.
    fn withdraw(&mut self, generation: u64, text: &str) -> Result<(), String>;

    /// The document of an earlier generation.
    fn text(&self, generation: u64) -> Option<String>;
}

/// What is remembered of a generation beside its document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Generation {
    /// Its number, from 1.
    pub number: u64,
    /// When it was made, in seconds since 1970.
    pub at: u64,
    /// Who made it: a user of this machine or a token.
    pub who: String,
    /// By what: `lunar set`, `start`.
    pub by: String,
    /// The worst that came of it.
    pub impact: Impact,
    /// Its differences from the one before, in lines.
    pub differences: Vec<String>,
}

/// Who asks for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// A user of this machine or a token.
    pub who: String,
    /// Where it asks from: a socket, an address, a signal.
    pub from: String,
    /// By what it asks.
    pub by: String,
}

/// What is to take the place of what is served.
#[derive(Clone, Debug, PartialEq)]
pub enum Candidate {
    /// The file as somebody has edited it.
    File,
    /// A whole document.
    Text(String),
    /// Rows, which are written into the document.
    Tree(Arc<Tree>),
    /// An earlier generation.
    Generation(u64),
}

/// A wish to change what is served.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRequest {
    /// What shall be served.
    pub candidate: Candidate,
    /// The generation that the author has seen; `None`: whatever it is.
    pub based_on: Option<u64>,
    /// What may come of it.
    pub allowed: Allowed,
    /// It may change where and how the API listens.
    pub api_too: bool,
    /// Volumes that come may be absent.
    pub absent_ok: bool,
    /// Only say what would come of it.
    pub dry_run: bool,
}

/// What has come, or would come, of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// The generation before.
    pub from: u64,
    /// The generation after; the same where nothing changes.
    pub generation: u64,
    /// The differences.
    pub plan: Plan,
    /// What the author may not have meant.
    pub warnings: Vec<String>,
    /// The worst of it.
    pub worst: Impact,
}

/// What is served, and how it changes.
pub struct Gate<S, E> {
    store: S,
    engine: E,
    generation: u64,
    text: Arc<str>,
    tree: Arc<Tree>,
}

/// A change of which all is known but whether it succeeds.
struct Considered {
    /// The file, when it was looked at.
    file: Option<String>,
    text: Arc<str>,
    tree: Arc<Tree>,
    /// Those by which the plan was made.
    sessions: Vec<SessionFact>,
    logins: FabricLogins,
    outcome: Outcome,
}

impl<S: Store, E: Engine> Gate<S, E> {
    /// A gate before what is served: a document, its tree, and its generation.
    pub fn new(
        store: S,
        engine: E,
        generation: u64,
        text: impl Into<Arc<str>>,
        tree: impl Into<Arc<Tree>>,
    ) -> Self {
        Self {
            store,
            engine,
            generation,
            text: text.into(),
            tree: tree.into(),
        }
    }

    /// What is served.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its document.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Both, for those who keep them.
    pub fn shared(&self) -> (Arc<str>, Arc<Tree>) {
        (Arc::clone(&self.text), Arc::clone(&self.tree))
    }

    /// Its number.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What keeps it.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// What serves it.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Makes a change, or says what would come of it.
    ///
    /// # Errors
    ///
    /// Why nothing has changed.
    pub fn change(
        &mut self,
        request: &ChangeRequest,
        author: &Author,
        now: SystemTime,
    ) -> Result<Outcome, GateError> {
        let considered = self.consider(request)?;
        if request.dry_run {
            return Ok(considered.outcome);
        }
        if considered.text == self.text {
            let back = Candidate::Generation(self.generation);
            let is_edited = matches!(&considered.file, Some(file) if **file != *self.text);
            let drops_edit = considered.file.is_none() || request.candidate == back && is_edited;
            let announced = self.store.announce(drops_edit);
            announced.map_err(GateError::Store)?;
            if drops_edit {
                let withdrawn = self.store.withdraw(self.generation + 1, &self.text);
                withdrawn.map_err(GateError::Store)?;
            }
            let refreshed = self.engine.refresh(&self.tree);
            refreshed.map_err(GateError::Failed)?;
            return Ok(considered.outcome);
        }
        if considered.tree.api != self.tree.api && !request.api_too {
            return Err(GateError::Api);
        }
        permit(&considered.outcome, &request.allowed)?;
        let outcome = self.make(&considered, request, author, now)?;
        self.generation = outcome.generation;
        self.text = considered.text;
        self.tree = considered.tree;
        Ok(outcome)
    }

    fn consider(&self, request: &ChangeRequest) -> Result<Considered, GateError> {
        if let Some(was) = request.based_on.filter(|was| *was != self.generation) {
            let is = self.generation;
            return Err(GateError::Stale { is, was });
        }
        let file = self.store.file().map_err(GateError::Store)?;
        let (text, tree) = self.candidate(&request.candidate, file.as_deref(), request.dry_run)?;
        let mut findings = check(&tree);
        findings.problems.extend(new_overlaps(&self.tree, &tree));
        if !findings.problems.is_empty() {
            return Err(GateError::Tree(findings.problems));
        }
        are_rows(&request.allowed, [&self.tree, &tree])?;
        let sessions = self.engine.sessions();
        let sessions = sessions.map_err(|cause| GateError::Failed(vec![cause]))?;
        let logins = self.engine.fabric_logins();
        let mut plan = plan(&self.tree, &tree, &sessions);
        plan.tell_logins(&logins.logins);
        let warnings = findings.warnings.iter().map(TreeProblem::to_string);
        let warnings = warnings.chain(plan.untold_logins(&logins.silent)).collect();
        let changes = u64::from(text != self.text);
        let outcome = Outcome {
            from: self.generation,
            generation: self.generation + changes,
            worst: plan.worst(),
            plan,
            warnings,
        };
        Ok(Considered {
            file,
            text,
            tree,
            sessions,
            logins,
            outcome,
        })
    }

    fn candidate(
        &self,
        candidate: &Candidate,
        file: Option<&str>,
        dry_run: bool,
    ) -> Result<(Arc<str>, Arc<Tree>), GateError> {
        // What somebody has written into the file is not overwritten unseen.
        let overwrites = match candidate {
            Candidate::File => false,
            Candidate::Generation(number) => *number != self.generation,
            Candidate::Text(_) | Candidate::Tree(_) => true,
        };
        if overwrites && !dry_run && file.is_some_and(|file| *file != *self.text) {
            return Err(GateError::Edited(self.generation));
        }
        let text = match candidate {
            Candidate::Tree(tree) => {
                let (text, tree) = edit(&self.text, &self.tree, tree)?;
                return Ok((text.into(), tree));
            }
            Candidate::File => file.ok_or(GateError::NoFile(self.generation))?.to_owned(),
            Candidate::Text(text) => text.clone(),
            Candidate::Generation(number) if *number == self.generation => self.text.to_string(),
            Candidate::Generation(number) => self
                .store
                .text(*number)
                .ok_or(GateError::NoGeneration(*number))?,
        };
        if *text == *self.text {
            return Ok(self.shared());
        }
        let tree = parse(&text)?;
        Ok((text.into(), tree.into()))
    }

    /// Hosts come and go while volumes are opened: what was allowed has to hold for those that are
    /// there when the change is kept.
    fn make(
        &mut self,
        considered: &Considered,
        request: &ChangeRequest,
        author: &Author,
        now: SystemTime,
    ) -> Result<Outcome, GateError> {
        let (store, old) = (&mut self.store, &self.tree);
        let (mut refused, mut made, mut number) = (None, None, None);
        let mut persist = |sessions: &[SessionFact]| {
            if store.file()? != considered.file {
                return Err("the configuration file was edited meanwhile: look at it again".into());
            }
            let outcome = considered.among(old, sessions);
            if let Err(error) = permit(&outcome, &request.allowed) {
                let told = error.to_string();
                refused = Some(error);
                return Err(told);
            }
            let generation = generation(&outcome, author, now);
            store.commit(&generation, &considered.text)?;
            number = Some(generation.number);
            made = Some(outcome);
            Ok(())
        };
        let done = if considered.outcome.plan.is_empty() {
            // Comments and order: nothing that is served.
            persist(&considered.sessions).map_err(|cause| vec![cause])
        } else {
            let absent_ok = request.absent_ok;
            self.engine.apply(&considered.tree, absent_ok, &mut persist)
        };
        done.map_err(|mut causes| {
            if let Some(number) = number {
                let before = considered.file.as_deref().unwrap_or(&self.text);
                causes.extend(self.store.withdraw(number, before).err());
            }
            refused.unwrap_or(GateError::Failed(causes))
        })?;
        let outcome = made.unwrap_or_else(|| considered.outcome.clone());
        let noted = self.store.serves(outcome.generation);
        noted.unwrap_or_else(|cause| tracing::warn!("{cause}"));
        Ok(outcome)
    }

    /// Keeps a secret, and has the engine go by it.
    ///
    /// # Errors
    ///
    /// It cannot be kept, or another one cannot be read.
    pub fn put_secret(&mut self, name: &str, secret: &str) -> Result<(), GateError> {
        let kept = self.engine.keep_secret(name, secret);
        kept.map_err(GateError::Store)?;
        self.engine.refresh(&self.tree).map_err(GateError::Failed)
    }
}

impl Considered {
    /// What comes of it while these sessions are there.
    fn among(&self, old: &Tree, sessions: &[SessionFact]) -> Outcome {
        if sessions == self.sessions {
            return self.outcome.clone();
        }
        let mut plan = plan(old, &self.tree, sessions);
        plan.tell_logins(&self.logins.logins);
        Outcome {
            worst: plan.worst(),
            plan,
            ..self.outcome.clone()
        }
    }
}

fn generation(outcome: &Outcome, author: &Author, now: SystemTime) -> Generation {
    Generation {
        number: outcome.generation,
        at: seconds(now),
        who: author.who.clone(),
        by: author.by.clone(),
        impact: outcome.worst,
        differences: told(&outcome.plan),
    }
}

/// The differences of a plan, in lines.
#[must_use]
pub fn told(plan: &Plan) -> Vec<String> {
    plan.differences.iter().map(ToString::to_string).collect()
}

fn seconds(now: SystemTime) -> u64 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;

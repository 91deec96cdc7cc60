//! Changes: one at a time, each in its turn, through the gate.

use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use super::turns::Turn;
use super::{PATIENCE, Plane, served};
use crate::alarm::{Alarm, AlarmKind};
use crate::audit::{CHANGE_ROWS, asked};
use crate::gate::{Author, Candidate, ChangeRequest, Gate, GateError, Outcome, Store};
use crate::plan::Allowed;
use crate::tree::Tree;

impl Plane {
    /// Makes a change, or tells what would come of it. It blocks for as long as volumes need to be
    /// opened, and those of the change before.
    ///
    /// # Errors
    ///
    /// Why nothing has changed.
    pub fn change(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        if request.dry_run {
            return self.look(request, author);
        }
        let _turn = self.turn(author, || asked(&request.candidate))?;
        self.make(request, author)
    }

    /// The same of what is served when it is its turn, of which `request` makes what shall be.
    ///
    /// # Errors
    ///
    /// Those of `request`, and why nothing has changed.
    pub fn edit<E: From<GateError>>(
        &self,
        author: &Author,
        dry_run: bool,
        request: impl FnOnce(&Tree) -> Result<ChangeRequest, E>,
    ) -> Result<Outcome, E> {
        let turn = (!dry_run).then(|| self.turn(author, || CHANGE_ROWS.to_owned()));
        let _turn = turn.transpose()?;
        let request = request(&self.served().tree)?;
        if dry_run {
            return Ok(self.look(&request, author)?);
        }
        Ok(self.make(&request, author)?)
    }

    fn make(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        let mut gate = self.gate();
        self.audit.begin(author, &request.candidate);
        let result = gate.change(request, author, SystemTime::now());
        let result = result.map_err(|error| error.placed(&request.candidate, self.config()));
        let refused = result.as_ref().err().map(ToString::to_string);
        if let Err(cause) = self.audit.end(refused.as_deref()) {
            tracing::error!("{cause}");
        }
        let outcome = result?;
        let now = Arc::new(served(&gate));
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = now;
        // The file is what is served, and in the history.
        self.alarms.clear(AlarmKind::Configuration);
        if outcome.generation > outcome.from {
            self.alarms.clear(AlarmKind::History);
        }
        Ok(outcome)
    }

    /// Waits for a turn. That there is none is told as every other refusal is.
    fn turn(&self, author: &Author, what: impl Fn() -> String) -> Result<Turn<'_>, GateError> {
        let turn = self.turns.take(author, PATIENCE);
        turn.inspect_err(|error| self.audit.refused(author, what(), &error.to_string()))
    }

    /// Tells what would come of a change, of what is served now.
    fn look(&self, request: &ChangeRequest, author: &Author) -> Result<Outcome, GateError> {
        let served = self.served();
        let (store, engine) = (self.store.clone(), self.engine.onlooker());
        let (text, tree) = (Arc::clone(&served.text), Arc::clone(&served.tree));
        let mut gate = Gate::new(store, engine, served.generation, text, tree);
        let result = gate.change(request, author, SystemTime::now());
        result.map_err(|error| error.placed(&request.candidate, self.config()))
    }

    /// Takes the file as it is now, if nothing of it cuts or loses anything. What comes of it is
    /// logged, and where it is not taken there is an alarm.
    pub fn reload(&self) {
        let author = Author {
            who: "root".to_owned(),
            from: "signal".to_owned(),
            by: "SIGHUP".to_owned(),
        };
        let request = ChangeRequest {
            candidate: Candidate::File,
            based_on: None,
            allowed: Allowed::default(),
            api_too: true,
            absent_ok: false,
            dry_run: false,
        };
        match self.change(&request, &author) {
            Ok(Outcome {
                generation, worst, ..
            }) => tracing::info!("generation {generation} is served ({worst})"),
            // Of this there is an alarm as long as it is so.
            Err(error) if !matches!(self.store.file(), Ok(Some(_))) => {
                tracing::error!("the file is not applied: {error}");
            }
            Err(error) => {
                let kind = if self.is_edited() {
                    AlarmKind::Configuration
                } else {
                    AlarmKind::Reload
                };
                let detail = format!("the file is not applied: {error}");
                let alarm = Alarm::new(kind, detail);
                let way_out = "mend it, then systemctl reload lunar or lunar apply";
                self.alarms.raise(alarm.way_out(way_out));
            }
        }
    }

    /// Keeps a secret as `state:NAME`, which a tree may name; logins go by it from now on.
    ///
    /// # Errors
    ///
    /// It is not a secret, or cannot be kept.
    pub fn put_secret(&self, name: &str, secret: &str, author: &Author) -> Result<(), GateError> {
        let what = format!("set the secret state:{name}");
        let _turn = self.turn(author, || what.clone())?;
        self.audited(author, what, || self.gate().put_secret(name, secret))?
    }
}

//! Long operations: FORMAT UNIT and SANITIZE, during which a unit is not ready
//! (SBC-4 §5.4, §5.30).

use crate::task::Failure;
use crate::wire::sense::{Key, Sense, Specific};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// FORMAT UNIT.
    Format,
    /// SANITIZE.
    Sanitize {
        /// If it fails, only another SANITIZE makes the unit usable (AUSE = 0); else EXIT FAILURE
        /// MODE does too.
        lasting: bool,
    },
}

/// How a unit stands with long operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OperationState {
    /// None is going on, and the last one went well.
    #[default]
    Idle,
    /// One is going on.
    Running {
        /// Which.
        operation: Operation,
        /// How far it got, in 1/65,536.
        progress: u16,
    },
    /// The last one failed or was aborted: the medium is not to be used until one goes well.
    Failed(Operation),
}

/// What the core that carries an operation out tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It begins. The core holds a lock on the whole unit.
    Begin(Operation),
    /// It got so far, in 1/65,536.
    Progress(u16),
    /// It ended, and whether well.
    End(bool),
    /// That it failed is to be forgotten (SANITIZE with EXIT FAILURE MODE).
    Forget,
}

impl OperationState {
    /// The state after `step`.
    ///
    /// # Errors
    /// What another operation in progress calls for.
    pub fn after(self, step: Step) -> Result<Self, Failure> {
        Ok(match (self, step) {
            (Self::Running { .. }, Step::Begin(_)) => return self.ready().map(|()| self),
            (_, Step::Begin(operation)) => Self::Running {
                operation,
                progress: 0,
            },
            (Self::Running { operation, .. }, Step::Progress(progress)) => Self::Running {
                operation,
                progress,
            },
            (Self::Running { operation, .. }, Step::End(false)) => Self::Failed(operation),
            (Self::Running { .. }, Step::End(true)) | (Self::Failed(_), Step::Forget) => Self::Idle,
            (_, Step::Forget)
            | (Self::Idle | Self::Failed(_), Step::Progress(_) | Step::End(_)) => self,
        })
    }

    /// Whether commands that need the medium may be carried out.
    ///
    /// # Errors
    /// NOT READY with FORMAT or SANITIZE IN PROGRESS and how far it got, or MEDIUM ERROR with
    /// MEDIUM FORMAT CORRUPTED or SANITIZE COMMAND FAILED.
    pub const fn ready(self) -> Result<(), Failure> {
        let (key, code, specific) = match self {
            Self::Idle => return Ok(()),
            Self::Running {
                operation: Operation::Format,
                progress,
            } => (Key::NotReady, 0x0404, Some(Specific::Progress(progress))),
            Self::Running {
                operation: Operation::Sanitize { .. },
                progress,
            } => (Key::NotReady, 0x041b, Some(Specific::Progress(progress))),
            Self::Failed(Operation::Format) => (Key::MediumError, 0x3100, None),
            Self::Failed(Operation::Sanitize { .. }) => (Key::MediumError, 0x3103, None),
        };
        Err(Failure::Check(Sense {
            specific,
            ..Sense::new(key, code)
        }))
    }
}

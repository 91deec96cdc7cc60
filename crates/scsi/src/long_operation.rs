//! Long operations: FORMAT UNIT and SANITIZE, during which a unit is not ready
//! (SBC-4 §5.4, §5.30).

use crate::task::CommandFailure;
use crate::wire::sense::{Sense, SenseKey, SenseSpecific};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongOperationKind {
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
        /// The kind of operation.
        operation: LongOperationKind,
        /// How far it got, in 1/65,536.
        progress: u16,
    },
    /// The last one failed or was aborted: the medium is not to be used until one goes well.
    Failed(LongOperationKind),
}

/// What the core that carries an operation out tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongOperationStep {
    /// It begins. The core holds a lock on the whole unit.
    Begin(LongOperationKind),
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
    pub fn after(self, step: LongOperationStep) -> Result<Self, CommandFailure> {
        Ok(match (self, step) {
            (Self::Running { .. }, LongOperationStep::Begin(_)) => {
                return self.ready().map(|()| self);
            }
            (_, LongOperationStep::Begin(operation)) => Self::Running {
                operation,
                progress: 0,
            },
            (Self::Running { operation, .. }, LongOperationStep::Progress(progress)) => {
                Self::Running {
                    operation,
                    progress,
                }
            }
            (Self::Running { operation, .. }, LongOperationStep::End(false)) => {
                Self::Failed(operation)
            }
            (Self::Running { .. }, LongOperationStep::End(true))
            | (Self::Failed(_), LongOperationStep::Forget) => Self::Idle,
            (_, LongOperationStep::Forget)
            | (
                Self::Idle | Self::Failed(_),
                LongOperationStep::Progress(_) | LongOperationStep::End(_),
            ) => self,
        })
    }

    /// Whether commands that need the medium may be carried out.
    ///
    /// # Errors
    /// NOT READY with FORMAT or SANITIZE IN PROGRESS and how far it got, or MEDIUM ERROR with
    /// MEDIUM FORMAT CORRUPTED or SANITIZE COMMAND FAILED.
    pub const fn ready(self) -> Result<(), CommandFailure> {
        let (key, code, specific) = match self {
            Self::Idle => return Ok(()),
            Self::Running {
                operation: LongOperationKind::Format,
                progress,
            } => (
                SenseKey::NotReady,
                0x0404,
                Some(SenseSpecific::Progress(progress)),
            ),
            Self::Running {
                operation: LongOperationKind::Sanitize { .. },
                progress,
            } => (
                SenseKey::NotReady,
                0x041b,
                Some(SenseSpecific::Progress(progress)),
            ),
            Self::Failed(LongOperationKind::Format) => (SenseKey::MediumError, 0x3100, None),
            Self::Failed(LongOperationKind::Sanitize { .. }) => {
                (SenseKey::MediumError, 0x3103, None)
            }
        };
        Err(CommandFailure::Check(Sense {
            specific,
            ..Sense::new(key, code)
        }))
    }
}

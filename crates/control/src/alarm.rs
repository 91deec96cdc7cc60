//! Alarms: what somebody should look at, whoever tells of it (`/v1/alarms`, metrics, events, log).
//!
//! An alarm is raised by what sees its cause, and goes when the cause is gone: a change that has
//! nothing to do with it takes none along.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlarmKind {
    /// The configuration file is not what is served, as it is not valid or was refused.
    Configuration,
    /// The configuration file was edited and not applied.
    Edited,
    /// What the configuration names could not be read again.
    Reload,
    /// A generation that is served is not in the history.
    History,
    /// A secret cannot be read.
    Secret,
    /// The identifiers of ports cannot be read.
    PortIds,
    /// The API does not listen, or goes by a certificate that has been exchanged.
    Api,
    /// Tokens cannot be read or written.
    Tokens,
    /// Nothing listens on a portal.
    Portal,
    /// A volume cannot be used.
    Absent,
    /// A core does not answer.
    Core,
    /// A switch cannot run, or does not answer.
    Switch,
    /// The zones of a switch cannot be read.
    Zones,
}

/// Something that somebody should look at. It goes by itself when its cause does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// What kind it is.
    pub kind: AlarmKind,
    /// The row, portal or file that it is about; there is one alarm of a kind for each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// What is wrong, in lines.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub way_out: Option<String>,
}

impl Alarm {
    pub(crate) fn new(kind: AlarmKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            at: None,
            detail: detail.into(),
            way_out: None,
        }
    }

    pub(crate) fn at(self, at: impl Into<String>) -> Self {
        Self {
            at: Some(at.into()),
            ..self
        }
    }

    pub(crate) fn way_out(self, way_out: impl Into<String>) -> Self {
        Self {
            way_out: Some(way_out.into()),
            ..self
        }
    }
}

impl AlarmKind {
    /// Its name, as the API has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Edited => "edited",
            Self::Reload => "reload",
            Self::History => "history",
            Self::Secret => "secret",
            Self::PortIds => "port-ids",
            Self::Api => "api",
            Self::Tokens => "tokens",
            Self::Portal => "portal",
            Self::Absent => "absent",
            Self::Core => "core",
            Self::Switch => "switch",
            Self::Zones => "zones",
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        let way_out = self.way_out.as_ref();
        way_out.map_or(Ok(()), |way_out| write!(f, ": {way_out}"))
    }
}

/// Alarms that were raised, and are not over.
#[derive(Debug, Default)]
pub(crate) struct AlarmBoard(Mutex<BTreeMap<AlarmPlace, Raised>>);

/// A kind, and where.
type AlarmPlace = (AlarmKind, Option<String>);

#[derive(Debug)]
struct Raised {
    alarm: Alarm,
    /// It is over when this is gone.
    cause: Option<PathBuf>,
}

impl AlarmBoard {
    /// Raises an alarm, in place of the one of this kind and place. The log has it once.
    pub(crate) fn raise(&self, alarm: Alarm) {
        self.insert(alarm, None);
    }

    /// The same, which is over when there is nothing at this path.
    pub(crate) fn raise_while(&self, alarm: Alarm, cause: PathBuf) {
        self.insert(alarm, Some(cause));
    }

    fn insert(&self, alarm: Alarm, cause: Option<PathBuf>) {
        let line = alarm.to_string();
        let place = (alarm.kind, alarm.at.clone());
        let before = self.board().insert(place, Raised { alarm, cause });
        if before.is_none_or(|before| before.alarm.to_string() != line) {
            tracing::error!("{line}");
        }
    }

    /// The cause of all alarms of a kind is gone.
    pub(crate) fn clear(&self, kind: AlarmKind) {
        self.keep(|raised| raised.alarm.kind != kind);
    }

    /// The cause of the alarm of a kind and a place is gone.
    pub(crate) fn clear_at(&self, kind: AlarmKind, at: &str) {
        let is_it = |alarm: &Alarm| alarm.kind == kind && alarm.at.as_deref() == Some(at);
        self.keep(|raised| !is_it(&raised.alarm));
    }

    /// Those that are not over.
    pub(crate) fn list(&self) -> Vec<Alarm> {
        self.keep(|raised| raised.cause.as_ref().is_none_or(|cause| cause.exists()));
        let board = self.board();
        board.values().map(|raised| raised.alarm.clone()).collect()
    }

    fn keep(&self, stays: impl Fn(&Raised) -> bool) {
        self.board().retain(|_, raised| {
            let stays = stays(raised);
            if !stays {
                tracing::info!("the alarm is over: {}", raised.alarm.detail);
            }
            stays
        });
    }

    fn board(&self) -> MutexGuard<'_, BTreeMap<AlarmPlace, Raised>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

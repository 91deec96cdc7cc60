//! What comes of it if one tree takes the place of another: each difference, what it does to whom,
//! and the worst of it.
//!
//! | impact | meaning | to allow it |
//! |---|---|---|
//! | `quiet` | no host can notice | |
//! | `told` | hosts get a unit attention: capacity 2A/09, LUNs 3F/0E, mode 2A/01 | |
//! | `cuts` | sessions, or logins to a fabric, end | `--allow cuts` |
//! | `loses` | data or an identity goes | `--allow loses=ROW` |
//!
//! A session ends only if there is one: what is told here follows from who is logged in.

mod iser;
mod rows;
mod sight;
mod switches;
mod volumes;

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::tree::Tree;
use sight::Sight;
pub use switches::{FabricLoginFact, FabricLogins};

/// What a difference does to hosts, from the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    /// No host can notice.
    Quiet,
    /// Hosts get a unit attention.
    Told,
    /// Sessions end.
    Cuts,
    /// Data or an identity goes.
    Loses,
}

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RowChange {
    /// It comes.
    Added,
    /// It is another one.
    Changed,
    /// It goes.
    Removed,
}

/// One row that is not the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// What happens to it.
    pub change: RowChange,
    /// The row: `volume.db`.
    pub row: String,
    /// What of it: `size = "100G" -> "150G"`.
    pub what: Vec<String>,
    /// What that does.
    pub impact: Impact,
    /// What hosts notice, or what is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// The initiators that notice it.
    pub hosts: Vec<String>,
}

/// All differences between two trees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// Each row that is not the same. One by which sessions end comes again where others are told.
    pub differences: Vec<Difference>,
    /// How many rows are the same.
    pub stays: usize,
}

/// A session that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFact {
    /// The target, as its row is called.
    pub target: String,
    /// The initiator: an IQN or a WWPN.
    pub initiator: String,
    /// The portal that it came by; `None`: a port of Fibre Channel.
    pub portal: Option<SocketAddr>,
}

/// What may come of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// Sessions may end.
    pub cuts: bool,
    /// Rows that may lose their data or identity, as in `volume.db`.
    pub loses: BTreeSet<String>,
}

/// Compares two trees while these sessions are there.
#[must_use]
pub fn plan(old: &Tree, new: &Tree, sessions: &[SessionFact]) -> Plan {
    let sight = Sight::new(old, new, sessions);
    let mut plan = Plan::default();
    rows::whole(old, new, &mut plan);
    volumes::compare(old, new, &sight, &mut plan);
    rows::groups(old, new, &sight, &mut plan);
    rows::targets(old, new, &sight, &mut plan);
    switches::compare(old, new, &mut plan);
    plan
}

impl Plan {
    /// Names the ports that lose their login to the fabric of a switch.
    pub fn tell_logins(&mut self, logins: &[FabricLoginFact]) {
        switches::tell_logins(self, logins);
    }

    /// What this does not name, as these switches do not tell which ports are logged in.
    #[must_use]
    pub fn untold_logins(&self, silent: &[String]) -> Vec<String> {
        switches::untold_logins(self, silent)
    }

    /// The worst that comes of it.
    #[must_use]
    pub fn worst(&self) -> Impact {
        let impacts = self.differences.iter().map(|one| one.impact);
        impacts.max().unwrap_or(Impact::Quiet)
    }

    /// The same of a process that starts with the new tree: from when on something counts is no
    /// question then.
    pub(crate) fn at_start(mut self) -> Self {
        let is_of_time =
            |one: &&mut Difference| one.impact == Impact::Quiet && !one.row.starts_with("volume.");
        let timed = self.differences.iter_mut().filter(is_of_time);
        timed.for_each(|one| one.effect = None);
        self
    }

    /// Whether the trees are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// What is worse than was allowed.
    pub fn refused<'a>(&'a self, allowed: &'a Allowed) -> impl Iterator<Item = &'a Difference> {
        self.differences.iter().filter(|one| match one.impact {
            Impact::Quiet | Impact::Told => false,
            Impact::Cuts => !allowed.cuts,
            Impact::Loses => !allowed.permits_loss(&one.row),
        })
    }

    /// What has to be allowed for all of it: `cuts`, `loses=ROW`.
    #[must_use]
    pub fn needs(&self) -> Vec<String> {
        let has = |impact| self.differences.iter().any(|one| one.impact == impact);
        let cuts = has(Impact::Cuts).then(|| "cuts".to_owned());
        let losing = self
            .differences
            .iter()
            .filter(|one| one.impact == Impact::Loses);
        let loses = losing.map(|one| format!("loses={}", one.row));
        cuts.into_iter().chain(loses).collect()
    }

    /// The options that allow all of it.
    #[must_use]
    pub fn way_out(&self) -> String {
        let options = self.needs().into_iter();
        let options = options.map(|one| format!("--allow {one}"));
        options.collect::<Vec<_>>().join(" ")
    }
}

impl Allowed {
    /// A row is named as the plan does, or by its own name alone.
    fn permits_loss(&self, row: &str) -> bool {
        let name = row.split_once('.').map_or(row, |(_, name)| name);
        self.loses.contains(row) || self.loses.contains(name)
    }

    /// Allows what an option says: `cuts`, `loses=ROW`.
    ///
    /// # Errors
    ///
    /// It says neither.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            None if text == "cuts" => self.cuts = true,
            Some(("loses", row)) if !row.is_empty() => drop(self.loses.insert(row.to_owned())),
            _ => {
                return Err(format!(
                    "{text:?}: write cuts or loses=ROW, as in loses=volume.db"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Allowed {
    type Err = String;

    /// Several are separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut allowed = Self::default();
        text.split(',')
            .try_for_each(|one| allowed.add(one.trim()))?;
        Ok(allowed)
    }
}

impl fmt::Display for Impact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quiet => "quiet",
            Self::Told => "told",
            Self::Cuts => "cuts",
            Self::Loses => "loses",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.change {
            RowChange::Added => '+',
            RowChange::Changed => '~',
            RowChange::Removed => '-',
        };
        write!(f, "{sign} {}", self.row.replacen('.', " ", 1))?;
        if !self.what.is_empty() {
            write!(f, "  {}", self.what.join(", "))?;
        }
        if self.impact > Impact::Quiet {
            write!(f, "  {}", self.impact)?;
        }
        match (&self.hosts[..], &self.effect) {
            ([], None) => Ok(()),
            ([], Some(effect)) => write!(f, ": {effect}"),
            (hosts @ [_, _, _, ..], Some(effect)) => write!(f, ": {} hosts: {effect}", hosts.len()),
            (hosts, effect) => {
                let effect = effect.iter().map(|effect| format!(": {effect}"));
                write!(f, ": {}{}", hosts.join(", "), effect.collect::<String>())
            }
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "  {difference}")?;
        }
        let rows = if self.stays == 1 {
            "row stays"
        } else {
            "rows stay"
        };
        write!(f, "  = {} {rows}", self.stays)
    }
}

#[cfg(test)]
mod tests;

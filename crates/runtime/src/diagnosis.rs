//! Why frames of Fibre Channel are lost at an interface or behind it, and the command that mends
//! each cause.
//!
//! | duty | modules |
//! |---|---|
//! | what is known: settings, losses, paths | [`readings`] |
//! | asking the kernel for it | [`survey`] |
//! | the interfaces of this machine that frames pass | `way` |
//! | the way to other ports, by a port that measures it | [`probe`] |
//! | what is wrong: a table of rules, each a function of the readings | [`rules`] |
//!
//! Nothing is changed: what mends is printed, for whoever is in charge to run.

pub mod probe;
pub mod readings;
pub mod rules;
pub mod survey;
#[cfg(test)]
mod tests;
mod way;

use std::fmt;

pub use self::readings::Readings;
pub use self::rules::judge;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: &'static str,
    /// Where it is: an interface, this machine, a port.
    pub place: String,
    /// What it is, and what it costs.
    pub what: String,
    /// What mends it, if a command does.
    pub remedy: Option<Remedy>,
}

/// A command that mends something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// For a shell of root's.
    pub command: String,
    /// Where to run it, if that is another machine; what is in capitals in the command is known
    /// there.
    pub elsewhere: Option<String>,
}

impl Remedy {
    /// To be run on this machine.
    #[must_use]
    pub const fn here(command: String) -> Self {
        Self {
            command,
            elsewhere: None,
        }
    }

    /// To be run there.
    #[must_use]
    pub const fn at(elsewhere: String, command: String) -> Self {
        Self {
            command,
            elsewhere: Some(elsewhere),
        }
    }
}

/// Two lines: what and where, then the command.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.remedy {
            None => Ok(()),
            Some(Remedy {
                command,
                elsewhere: None,
            }) => write!(f, "\n    {command}"),
            Some(Remedy {
                command,
                elsewhere: Some(elsewhere),
            }) => write!(f, "\n    on {elsewhere}: {command}"),
        }
    }
}

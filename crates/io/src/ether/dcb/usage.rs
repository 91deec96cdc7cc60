//! What a port makes of DCB, as its options say it.

use std::fmt;
use std::str::FromStr;

/// What a port of Fibre Channel makes of DCB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DcbUse {
    /// Nothing.
    #[default]
    Off,
    /// It waits until PFC is in use for the priority of FCoE.
    Required,
    /// It sets the card so, where it is not.
    Apply,
}

/// Not one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("off, required or apply is expected here")]
pub struct NotADcbUse;

impl FromStr for DcbUse {
    type Err = NotADcbUse;

    fn from_str(text: &str) -> Result<Self, NotADcbUse> {
        match text {
            "off" => Ok(Self::Off),
            "required" => Ok(Self::Required),
            "apply" => Ok(Self::Apply),
            _ => Err(NotADcbUse),
        }
    }
}

impl fmt::Display for DcbUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Required => "required",
            Self::Apply => "apply",
        })
    }
}

//! The arguments of `fault:…(A)`.

use block::fault::{FailureRule, Faults};
use scsi::medium::MediumError;

use super::Size;
use super::error::SyntaxProblem;
use super::text_piece::{Parsed, TextPiece};

/// What is wrong with the arguments of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such argument.
    #[error("\"{0}\" is not a fault; choose from read=…, write=…, flush=…, torn and seed=NUMBER")]
    Unknown(String),
    /// An argument without its value.
    #[error("\"{0}\" needs a value, as in {0}={1}")]
    NeedsValue(String, &'static str),
    /// `torn=…`.
    #[error("\"torn\" takes no value; give write=… to say when writes fail")]
    TornValue,
    /// Neither a probability nor an error.
    #[error(
        "{key}={value}: neither a probability from 0 to 1, such as 1e-4, nor {errors}, optionally \
         with @SIZE to start after SIZE bytes"
    )]
    Value {
        /// Of which argument.
        key: String,
        /// What was given.
        value: String,
        /// The errors that there are for it.
        errors: &'static str,
    },
    /// Not a number.
    #[error("seed={0}: a whole number is expected here")]
    Seed(String),
    /// Nothing that could be torn.
    #[error("\"torn\" affects failing writes only; give write=…")]
    TornAlone,
    /// Nothing at all.
    #[error("no fault is given; give read=…, write=… or flush=…")]
    Nothing,
}

/// Reads the arguments.
pub(super) fn parse(text: TextPiece<'_>) -> Parsed<Faults> {
    let mut faults = Faults::default();
    let mut given: Vec<&str> = Vec::new();
    for argument in text.split(',') {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument, None),
        };
        if given.contains(&name.text) {
            return Err(name.fault(SyntaxProblem::Duplicate(name.text.to_owned())));
        }
        given.push(name.text);
        take(&mut faults, name, value)?;
    }
    let Faults {
        read, write, flush, ..
    } = faults;
    match (write, faults.torn) {
        (None, true) => Err(text.fault(FaultError::TornAlone.into())),
        _ if read.is_none() && write.is_none() && flush.is_none() => {
            Err(text.fault(FaultError::Nothing.into()))
        }
        _ => Ok(faults),
    }
}

fn take(faults: &mut Faults, name: TextPiece<'_>, value: Option<TextPiece<'_>>) -> Parsed<()> {
    let key = name.text;
    let wrong = |error: FaultError| Err(name.fault(error.into()));
    match (key, value) {
        ("torn", None) => faults.torn = true,
        ("torn", Some(_)) => return wrong(FaultError::TornValue),
        ("read", Some(value)) => faults.read = Some(failing(key, value)?),
        ("write", Some(value)) => faults.write = Some(failing(key, value)?),
        ("flush", Some(value)) => faults.flush = Some(failing(key, value)?),
        ("seed", Some(value)) => faults.seed = seed(value)?,
        ("read" | "write" | "flush", None) => {
            return wrong(FaultError::NeedsValue(key.to_owned(), "1e-4"));
        }
        ("seed", None) => return wrong(FaultError::NeedsValue(key.to_owned(), "7")),
        _ => return wrong(FaultError::Unknown(key.to_owned())),
    }
    Ok(())
}

fn failing(key: &str, value: TextPiece<'_>) -> Parsed<FailureRule> {
    let (error, size) = match value.split_once('@') {
        Some((error, size)) => (error, Some(size)),
        None => (value, None),
    };
    let wrong = || {
        let errors = match key {
            "read" => "eio or gone",
            _ => "eio, enospc or gone",
        };
        let (key, given) = (key.to_owned(), value.text.to_owned());
        value.fault(SyntaxProblem::Fault(FaultError::Value {
            key,
            value: given,
            errors,
        }))
    };
    let error = match error.text {
        "eio" if key == "read" => MediumError::Read,
        "eio" => MediumError::Write,
        "enospc" if key != "read" => MediumError::NoSpace,
        "gone" => MediumError::Gone,
        _ if size.is_some() => return Err(wrong()),
        probability => {
            let probability = probability.parse().ok();
            let probability = probability.filter(|p| (0.0..=1.0).contains(p));
            return probability.map(FailureRule::Seldom).ok_or_else(wrong);
        }
    };
    let Size(bytes) = size.map_or(Ok(Size(0)), Size::parse)?;
    Ok(FailureRule::After(bytes, error))
}

fn seed(value: TextPiece<'_>) -> Parsed<u64> {
    let number = value.text.parse();
    number.map_err(|_| value.fault(FaultError::Seed(value.text.to_owned()).into()))
}

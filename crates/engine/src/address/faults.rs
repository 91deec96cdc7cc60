//! The arguments of `fault:…(A)`.

use block::fault::{Failing, Faults};
use scsi::medium::MediumError;

use super::Size;

/// What is wrong with the arguments of a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such argument.
    #[error("\"{0}\" is no fault; there are read=…, write=…, flush=…, torn and seed=NUMBER")]
    Unknown(String),
    /// An argument twice.
    #[error("\"{0}\" is given twice")]
    Duplicate(String),
    /// An argument without its value.
    #[error("\"{0}\" needs a value, as in {0}={1}")]
    NeedsValue(String, &'static str),
    /// `torn=…`.
    #[error("\"torn\" takes no value; give write=… to say when writes fail")]
    TornValue,
    /// Neither a probability nor an error.
    #[error(
        "{key}={value}: neither a probability from 0 to 1, such as 1e-4, nor {errors}, with @SIZE \
         if only after so many octets"
    )]
    Value {
        /// Of which argument.
        key: String,
        /// What was given.
        value: String,
        /// The errors that there are for it.
        errors: &'static str,
    },
    /// Not a size.
    #[error("{value}: {cause}")]
    Size {
        /// What was given.
        value: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Not a number.
    #[error("seed={0}: a whole number is expected here")]
    Seed(String),
    /// Nothing that could be torn.
    #[error("\"torn\" says how writes fail, but none does; give write=…")]
    TornAlone,
    /// Nothing at all.
    #[error("it says of nothing that it fails; give read=…, write=… or flush=…")]
    Nothing,
}

/// Reads the arguments, as the address has them.
pub(super) fn parse(arguments: &[(Option<String>, String)]) -> Result<Faults, FaultError> {
    let mut faults = Faults::default();
    let mut given: Vec<&str> = Vec::new();
    for (key, value) in arguments {
        let name = key.as_deref().unwrap_or(value);
        if given.contains(&name) {
            return Err(FaultError::Duplicate(name.to_owned()));
        }
        given.push(name);
        let value = key.as_ref().map(|_| value.as_str());
        match (name, value) {
            ("torn", None) => faults.torn = true,
            ("torn", Some(_)) => return Err(FaultError::TornValue),
            ("read", Some(value)) => faults.read = Some(failing(name, value)?),
            ("write", Some(value)) => faults.write = Some(failing(name, value)?),
            ("flush", Some(value)) => faults.flush = Some(failing(name, value)?),
            ("seed", Some(value)) => faults.seed = seed(value)?,
            ("read" | "write" | "flush", None) => {
                return Err(FaultError::NeedsValue(name.to_owned(), "1e-4"));
            }
            ("seed", None) => return Err(FaultError::NeedsValue(name.to_owned(), "7")),
            _ => return Err(FaultError::Unknown(name.to_owned())),
        }
    }
    match faults {
        Faults {
            write: None,
            torn: true,
            ..
        } => Err(FaultError::TornAlone),
        Faults {
            read: None,
            write: None,
            flush: None,
            ..
        } => Err(FaultError::Nothing),
        faults => Ok(faults),
    }
}

fn failing(key: &str, value: &str) -> Result<Failing, FaultError> {
    let (error, size) = match value.split_once('@') {
        Some((error, size)) => (error, Some(size)),
        None => (value, None),
    };
    let wrong = || FaultError::Value {
        key: key.to_owned(),
        value: value.to_owned(),
        errors: if key == "read" {
            "eio or gone"
        } else {
            "eio, enospc or gone"
        },
    };
    let error = match error {
        "eio" if key == "read" => MediumError::Read,
        "eio" => MediumError::Write,
        "enospc" if key != "read" => MediumError::NoSpace,
        "gone" => MediumError::Gone,
        _ if size.is_some() => return Err(wrong()),
        probability => {
            let probability = probability.parse().ok();
            let probability = probability.filter(|p| (0.0..=1.0).contains(p));
            return probability.map(Failing::Seldom).ok_or_else(wrong);
        }
    };
    let Size(octets) = size.map_or(Ok(Size(0)), |size| octets(value, size))?;
    Ok(Failing::After(octets, error))
}

fn octets(value: &str, size: &str) -> Result<Size, FaultError> {
    size.parse()
        .map_err(|cause: super::ParseError| FaultError::Size {
            value: value.to_owned(),
            cause: cause.one_line(),
        })
}

fn seed(value: &str) -> Result<u64, FaultError> {
    let number = value.parse();
    number.map_err(|_| FaultError::Seed(value.to_owned()))
}

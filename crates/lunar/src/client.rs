//! What all verbs have in common that use volumes without serving them.

use engine::address::{Address, OpenOptions};

use crate::Failure;
use crate::serve::identity;

/// An address as it was typed.
pub(crate) fn address(text: &str) -> Result<Address, Failure> {
    text.parse()
        .map_err(|error: engine::address::ParseError| Failure::usage(error.to_string()))
}

/// Several addresses as they were typed.
pub(crate) fn addresses(texts: &[String]) -> Result<Vec<Address>, Failure> {
    texts.iter().map(|text| address(text)).collect()
}

/// How volumes are opened.
pub(crate) fn open_options() -> Result<OpenOptions, Failure> {
    OpenOptions::new(format!("{}:initiator", identity::default_name()))
        .map_err(|cause| Failure::failed(format!("cannot determine the available memory: {cause}")))
}

/// An argument as a shell has to be given it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_[]".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

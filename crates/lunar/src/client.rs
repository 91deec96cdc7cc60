//! What all verbs have in common that use volumes without serving them.

use address::Address;
use client::open::OpenOptions;

use crate::VerbError;
use crate::serve::identity;

/// An address as it was typed.
pub(crate) fn address(text: &str) -> Result<Address, VerbError> {
    text.parse()
        .map_err(|error: address::ParseError| VerbError::usage(error.to_string()))
}

/// Several addresses as they were typed.
pub(crate) fn addresses(texts: &[String]) -> Result<Vec<Address>, VerbError> {
    texts.iter().map(|text| address(text)).collect()
}

/// How volumes are opened.
pub(crate) fn open_options() -> Result<OpenOptions, VerbError> {
    OpenOptions::new(format!("{}:initiator", identity::default_name())).map_err(|cause| {
        VerbError::failed(format!("cannot determine the available memory: {cause}"))
    })
}

/// An argument as a shell has to be given it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_[]".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

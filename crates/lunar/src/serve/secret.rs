//! CHAP secrets, which are never on a command line.

use std::path::Path;

use engine::secret::{self, SecretError};

use crate::Failure;

/// The first line of a file that only its owner can read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    match secret::read(path) {
        Ok(secret) => Ok(secret.to_vec()),
        Err(cause @ SecretError::Unreadable(..)) => Err(Failure::failed(cause.to_string())),
        Err(cause) => Err(Failure::usage(cause.to_string())),
    }
}

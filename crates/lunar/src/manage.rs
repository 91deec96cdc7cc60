//! The verbs that ask a daemon, and tell it.

pub(crate) mod change;
pub(crate) mod history;
pub(crate) mod metrics;
pub(crate) mod sessions;
pub(crate) mod stats;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use control::client::{ApiClient, ApiError};
use runtime::files::read_at_most;

use crate::VerbError;
use crate::daemon::default_socket;

/// The daemon that is meant.
#[derive(Debug, Args)]
pub(crate) struct SocketArgs {
    /// The daemon's socket [default: /run/lunar/control.sock]
    ///
    /// The environment variable LUNAR_SOCKET names it too.
    #[arg(long, value_name = "PATH", env = "LUNAR_SOCKET", hide_env = true)]
    socket: Option<PathBuf>,
}

impl SocketArgs {
    pub(crate) fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }

    /// The API there, for a verb.
    pub(crate) fn client(&self, verb: &str) -> ApiClient {
        ApiClient::new(&self.path(), format!("lunar {verb}"))
    }
}

/// What a daemon refuses as malformed was not tried.
pub(crate) fn failure(error: &ApiError) -> VerbError {
    match error {
        ApiError::Refused(problem) if [400, 422].contains(&problem.status) => {
            VerbError::usage(error)
        }
        _ => VerbError::failed(error),
    }
}

/// The text of a file of at most so many bytes.
pub(crate) fn text_of(file: &Path, most: usize) -> Result<String, VerbError> {
    let told = |cause: &dyn Display| format!("cannot read {}: {cause}", file.display());
    let bytes = read_at_most(file, most as u64).map_err(|cause| match cause.kind() {
        io::ErrorKind::FileTooLarge => VerbError::usage(told(&cause)),
        _ => VerbError::failed(told(&cause)),
    })?;
    let text = String::from_utf8(bytes);
    text.map_err(|cause| VerbError::usage(told(&format!("it is no text in UTF-8: {cause}"))))
}

/// A path segment of a URL.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(byte);
    let escaped = |byte: u8| {
        if plain(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    name.bytes().map(escaped).collect()
}

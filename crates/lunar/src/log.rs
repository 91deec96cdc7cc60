//! Logs: to standard error, one event a line.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// The environment variable that says how much is logged: `error`, `warn`, `info`, `debug`, or
/// directives such as `info,iscsi=debug`.
const VARIABLE: &str = "LUNAR_LOG";

/// Starts logging. A malformed filter is told and replaced by the default: a server must not stay
/// down for a typo in its environment.
pub(crate) fn start() {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, wrong) = match EnvFilter::try_new(&wanted) {
        Ok(filter) if !wanted.is_empty() => (filter, None),
        Ok(_) => (EnvFilter::new("info"), None),
        Err(cause) => (EnvFilter::new("info"), Some(cause)),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        .init();
    if let Some(cause) = wrong {
        tracing::warn!("{VARIABLE}={wanted} is not understood ({cause}): logging at info");
    }
}

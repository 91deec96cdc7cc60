//! Logs: to standard error, one event a line.

use std::io::{self, IsTerminal, Write};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The environment variable that says how much is logged: `error`, `warn`, `info`, `debug`, or
/// directives such as `info,iscsi=debug`.
pub(crate) const VARIABLE: &str = "LUNAR_LOG";

/// Starts logging. A malformed filter is told and replaced by the default: a server must not stay
/// down for a typo in its environment.
pub(crate) fn start() {
    let wanted = std::env::var_os(VARIABLE).unwrap_or_default();
    let wanted = wanted.to_string_lossy();
    let (filter, wrong) = match filter(&wanted) {
        Ok(filter) => (filter, None),
        Err(cause) => (EnvFilter::new("info"), Some(cause)),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false)
        // It would tell where nothing can be told, and panic: a full disk under the log of a server
        // must not be its end.
        .log_internal_errors(false)
        .init();
    if let Some(cause) = wrong {
        tracing::warn!("{VARIABLE}={wanted} is not understood ({cause}): logging at info");
    }
}

/// A line on standard error, which is lost where that cannot be written.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "lunar: {line}");
}

/// A word that is no level would be taken for the name of a module, and silence all others.
fn filter(wanted: &str) -> Result<EnvFilter, String> {
    if wanted.is_empty() {
        return Ok(EnvFilter::new("info"));
    }
    let mut words = wanted.split(',').map(str::trim);
    if let Some(word) =
        words.find(|word| !word.contains('=') && word.parse::<LevelFilter>().is_err())
    {
        return Err(format!(
            "{word:?} is neither error, warn, info, debug nor MODULE=LEVEL"
        ));
    }
    EnvFilter::try_new(wanted).map_err(|cause| cause.to_string())
}

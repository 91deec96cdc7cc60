//! Completion scripts, made from the command line's own description, and manual pages, made from
//! the text in `docs/manual`, which a test compares with it.

mod manual;
mod roff;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::VerbError;
use crate::cli::{self, Cli};

pub(crate) fn completion(shell: Shell) -> Result<ExitCode, VerbError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lunar", &mut script);
    print(&script)
}

pub(crate) fn manual(verb: Option<&str>) -> Result<ExitCode, VerbError> {
    // Verbs without a page of their own are in that of lunar.
    let own = verb.filter(|verb| !manual::is_verb(verb) || manual::has_page(verb));
    let page = manual::page(own);
    match page {
        Some(page) => print(page.as_bytes()),
        None => Err(VerbError::usage(format!(
            "unknown verb {:?}: choose from {}",
            verb.unwrap_or_default(),
            cli::verbs().join(", ")
        ))),
    }
}

/// Prints to standard output.
pub(crate) fn print(text: &[u8]) -> Result<ExitCode, VerbError> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// Prints an object for scripts.
pub(crate) fn print_json(object: &impl serde::Serialize) -> Result<ExitCode, VerbError> {
    let text = serde_json::to_string(object)
        .map_err(|cause| VerbError::failed(format!("cannot write JSON: {cause}")))?;
    print(format!("{text}\n").as_bytes())
}

/// What became of something that was printed.
pub(crate) fn printed(result: io::Result<()>) -> Result<ExitCode, VerbError> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // `lunar manual | head` is not a failure.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(VerbError::failed(format!("cannot write: {cause}"))),
    }
}

//! Completion scripts and manual pages, made from the command line's own description so that
//! they cannot differ from it.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Failure;
use crate::cli::{self, Cli};

pub(crate) fn completion(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lunar", &mut script);
    print(&script)
}

pub(crate) fn manual(verb: Option<&str>) -> Result<ExitCode, Failure> {
    let command = page(verb)?;
    let mut text = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut text)
        .map_err(|cause| Failure::failed(format!("cannot make the page: {cause}")))?;
    print(&text)
}

fn page(verb: Option<&str>) -> Result<clap::Command, Failure> {
    let mut lunar = Cli::command();
    // Gives the verbs their full names, which a page is headed by.
    lunar.build();
    let Some(verb) = verb else { return Ok(lunar) };
    let Some(command) = lunar.find_subcommand(verb) else {
        return Err(Failure::usage(format!(
            "there is no verb {verb:?}, so it has no page: choose from {}",
            cli::verbs().join(", ")
        )));
    };
    Ok(command.clone())
}

/// Prints to standard output.
pub(crate) fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// Prints an object for scripts.
pub(crate) fn print_json(object: &impl serde::Serialize) -> Result<ExitCode, Failure> {
    let text = serde_json::to_string(object)
        .map_err(|cause| Failure::failed(format!("cannot write JSON: {cause}")))?;
    print(format!("{text}\n").as_bytes())
}

/// What became of something that was printed.
pub(crate) fn printed(result: io::Result<()>) -> Result<ExitCode, Failure> {
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // `lunar manual | head` is no failure.
        Err(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(cause) => Err(Failure::failed(format!("cannot write: {cause}"))),
    }
}

//! `lunar`: a storage area network in one program.
#![forbid(unsafe_code)]

mod bench;
mod cli;
mod client;
mod copy;
mod daemon;
mod dcb;
mod doctor;
mod documents;
mod fcoe_utils;
mod floor;
mod import;
mod info;
mod log;
mod ls;
mod manage;
mod measuring;
mod progress_display;
mod race;
mod secret;
mod serve;
mod shell;
mod switch;
#[cfg(test)]
mod tests;
mod unit;
mod units;
mod verify;

use std::process::ExitCode;
use std::sync::Arc;

use cli::{Cli, Verb};
use signal_hook::consts::{SIGUSR1, SIGUSR2, SIGXFSZ};

fn main() -> ExitCode {
    control::panics::abort_on_panic();
    outlive_signals();
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(answer) => return answer.print(),
    };
    let code = run(cli).unwrap_or_else(VerbError::print);
    log::flush();
    code
}

/// Signals that end a process by default but are no order to end. SIGXFSZ: where `ulimit -f` is
/// set, a write beyond it would end all that a server serves; caught, it is an error of that write
/// alone. SIGUSR1 asks `serve` what volumes have gathered, and other programs how far they are.
fn outlive_signals() {
    for signal in [SIGXFSZ, SIGUSR1, SIGUSR2] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
}

fn run(Cli { verb }: Cli) -> Result<ExitCode, VerbError> {
    match verb {
        Verb::Serve(args) => serve::run(*args),
        Verb::Switch(args) => switch::run(*args),
        Verb::Copy(args) => copy::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Race(args) => race::run(&args),
        Verb::Floor(args) => floor::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Info(args) => info::run(&args),
        Verb::Ls(args) => ls::run(&args),
        Verb::Fcoeadm(args) => fcoe_utils::fcoeadm::run(&args),
        Verb::Fipvlan(args) => fcoe_utils::fipvlan::run(&args),
        Verb::Dcb(args) => dcb::run(&args),
        Verb::Fcping(args) => fcoe_utils::fcping::run(&args),
        Verb::Fcnsq(args) => fcoe_utils::fcnsq::run(&args),
        Verb::Fcrls(args) => fcoe_utils::fcrls::run(&args),
        Verb::Secret(args) => secret::run(&args),
        Verb::Daemon(args) => daemon::run(&args),
        Verb::Plan(args) => manage::change::plan(&args),
        Verb::Apply(args) => manage::change::apply(&args),
        Verb::Set(args) => manage::change::set(&args),
        Verb::Unset(args) => manage::change::unset(&args),
        Verb::History(args) => manage::history::history(&args),
        Verb::Diff(args) => manage::history::diff(&args),
        Verb::Rollback(args) => manage::change::rollback(&args),
        Verb::Sessions(args) => manage::sessions::sessions(&args),
        Verb::Drop(args) => manage::sessions::end(&args),
        Verb::Shell(args) => shell::run(&args),
        Verb::As(args) => shell::run_as(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Export(args) => import::export(&args),
        Verb::Unit(args) => unit::run(&args),
        Verb::Api => documents::print(control::api::openapi().as_bytes()),
        Verb::Stats(args) => manage::stats::stats(&args),
        Verb::Metrics(args) => manage::metrics::metrics(&args),
        Verb::Completion { shell } => documents::completion(shell),
        Verb::Manual { verb } => documents::manual(verb.as_deref()),
    }
}

/// Why a verb did not do what it was told: one line for standard error, and an exit code.
#[derive(Debug)]
struct VerbError {
    line: String,
    code: u8,
}

impl VerbError {
    /// The command line is wrong, nothing was tried.
    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    fn usage(line: impl ToString) -> Self {
        Self {
            line: line.to_string(),
            code: 2,
        }
    }

    /// It was tried and failed.
    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    fn failed(line: impl ToString) -> Self {
        Self {
            line: line.to_string(),
            code: 1,
        }
    }

    /// A process of ours has failed, and has said why.
    fn told(code: i32) -> Self {
        Self {
            line: String::new(),
            code: code.try_into().unwrap_or(1),
        }
    }

    /// Signals cannot be caught.
    #[expect(clippy::needless_pass_by_value, reason = "for map_err")]
    fn signals(cause: std::io::Error) -> Self {
        Self::failed(format!("cannot catch signals: {cause}"))
    }

    fn print(self) -> ExitCode {
        if !self.line.is_empty() {
            log::say(&self.line);
        }
        ExitCode::from(self.code)
    }
}

//! The command line as a whole: verbs, and how a wrong one is answered.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::num::ParseIntError;
use std::path::Path;
use std::process::ExitCode;

use address::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Parser, Subcommand};

use crate::VerbError;
use crate::bench::BenchArgs;
use crate::copy::CopyArgs;
use crate::daemon::DaemonArgs;
use crate::dcb::DcbArgs;
use crate::doctor::DoctorArgs;
use crate::documents;
use crate::fcoe_utils::PROGRAMS;
use crate::fcoe_utils::fcnsq::FcnsqArgs;
use crate::fcoe_utils::fcoeadm::FcoeadmArgs;
use crate::fcoe_utils::fcping::FcpingArgs;
use crate::fcoe_utils::fcrls::FcrlsArgs;
use crate::fcoe_utils::fipvlan::FipvlanArgs;
use crate::floor::FloorArgs;
use crate::import::{ExportArgs, ImportArgs};
use crate::info::InfoArgs;
use crate::ls::LsArgs;
use crate::manage::change::{ApplyArgs, PlanArgs, RollbackArgs, SetArgs, UnsetArgs};
use crate::manage::history::{DiffArgs, HistoryArgs};
use crate::manage::metrics::MetricsArgs;
use crate::manage::sessions::{DropArgs, SessionsArgs};
use crate::manage::stats::StatsArgs;
use crate::race::RaceArgs;
use crate::secret::SecretArgs;
use crate::serve::args::ServeArgs;
use crate::shell::{AsArgs, ShellArgs};
use crate::switch::SwitchArgs;
use crate::unit::UnitFileArgs;
use crate::verify::VerifyArgs;

/// A storage area network in one program: block devices over iSCSI and FCoE, in user space
///
/// Every volume has an address, such as ram:1G or file:/srv/disk.img, and every verb takes
/// addresses. Exit codes: 0 success; 1 failure; 2 the command line or an address is malformed, and
/// nothing was tried; 130 interrupted.
#[derive(Debug, Parser)]
#[command(
    name = "lunar",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Serve(Box<ServeArgs>),
    Switch(Box<SwitchArgs>),
    Copy(CopyArgs),
    Verify(VerifyArgs),
    Bench(Box<BenchArgs>),
    Race(Box<RaceArgs>),
    Floor(Box<FloorArgs>),
    Doctor(DoctorArgs),
    Info(InfoArgs),
    Ls(LsArgs),
    Fcoeadm(Box<FcoeadmArgs>),
    Fipvlan(Box<FipvlanArgs>),
    Dcb(DcbArgs),
    Fcping(Box<FcpingArgs>),
    Fcnsq(FcnsqArgs),
    Fcrls(FcrlsArgs),
    Secret(SecretArgs),
    Daemon(DaemonArgs),
    Plan(PlanArgs),
    Apply(ApplyArgs),
    Set(SetArgs),
    Unset(UnsetArgs),
    History(HistoryArgs),
    Diff(DiffArgs),
    Rollback(RollbackArgs),
    Sessions(SessionsArgs),
    Drop(DropArgs),
    Stats(StatsArgs),
    Metrics(MetricsArgs),
    Shell(ShellArgs),
    As(AsArgs),
    Import(ImportArgs),
    Export(ExportArgs),
    Unit(UnitFileArgs),

    /// Print the description of the daemon's API, as OpenAPI 3.1
    ///
    /// The daemon serves the same at /openapi.json.
    Api,

    /// Print a completion script for a shell
    ///
    /// For bash: lunar completion bash > /etc/bash_completion.d/lunar
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },

    /// Print a manual page
    ///
    /// To read it: lunar manual serve | man -l -
    Manual {
        /// The verb; without one, the page of lunar itself
        verb: Option<String>,
    },
}

/// What is said in place of doing something.
#[derive(Debug)]
pub(crate) enum HelpText {
    /// `--help` or `--version`.
    Asked(clap::Error),
    /// A wrong command line.
    Wrong(VerbError),
}

impl HelpText {
    pub(crate) fn print(self) -> ExitCode {
        match self {
            Self::Asked(text) => documents::printed(text.print()).unwrap_or_else(VerbError::print),
            Self::Wrong(failure) => failure.print(),
        }
    }
}

/// Reads a command line. What is wrong with it comes back as one line: scripts and logs keep
/// lines, and the usage text is one `--help` away.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, HelpText> {
    let args = usual_words(args.into_iter().collect());
    let help = help(&args);
    let wrong = |what: String| HelpText::Wrong(VerbError::usage(format!("{what} (see {help})")));
    // clap does not say which one it is.
    if let Some(arg) = args.iter().find(|arg| arg.to_str().is_none()) {
        return Err(wrong(format!("{} is not UTF-8", arg.display())));
    }
    Cli::try_parse_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => HelpText::Asked(error),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            wrong(format!("no verb given: choose from {}", verbs().join(", ")))
        }
        ErrorKind::InvalidSubcommand => wrong(no_verb(&error)),
        _ => wrong(said(error)),
    })
}

/// `lunar help VERB` and `lunar version`, as other programs have them, in the words of this one. By
/// the name of another program, it acts as that.
fn usual_words(mut args: Vec<OsString>) -> Vec<OsString> {
    let name = args.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "targetcli") {
        args.splice(..1, ["lunar", "as", "targetcli"].map(OsString::from));
        return args;
    }
    if let Some(program) = PROGRAMS
        .iter()
        .find(|program| name == Some(OsStr::new(program)))
    {
        args.splice(..1, ["lunar", program].map(OsString::from));
        return args;
    }
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            args.remove(1);
            args.insert(args.len().min(2), "--help".into());
        }
        Some("version") if args.len() == 2 => args[1] = "--version".into(),
        _ => {}
    }
    args
}

/// The verbs that there are.
pub(crate) fn verbs() -> Vec<String> {
    let lunar = Cli::command();
    let names = lunar.get_subcommands().map(Command::get_name);
    names.map(str::to_owned).collect()
}

/// How to get the help text for what was typed.
fn help(args: &[OsString]) -> String {
    let verb = args.get(1).and_then(|verb| verb.to_str());
    match verbs()
        .into_iter()
        .find(|known| Some(known.as_str()) == verb)
    {
        Some(verb) => format!("lunar {verb} --help"),
        None => "lunar --help".to_owned(),
    }
}

fn no_verb(error: &clap::Error) -> String {
    let wrong = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let verbs = verbs();
    let usual = USUAL.iter().find(|(word, _)| *word == wrong);
    let near = usual.map(|(_, verb)| *verb);
    let way_out = match near.or_else(|| nearest(wrong, verbs.iter().map(String::as_str))) {
        Some(near) => format!("did you mean {near}?"),
        None if wrong.contains(':') => format!("did you mean lunar serve {wrong}?"),
        None => format!("choose from {}", verbs.join(", ")),
    };
    format!("unknown verb {wrong:?}: {way_out}")
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    }
}

/// What other programs call the verbs.
const USUAL: [(&str, &str); 9] = [
    ("cp", "copy"),
    ("cmp", "verify"),
    ("diff", "verify"),
    ("discover", "ls"),
    ("export", "serve"),
    ("list", "ls"),
    ("man", "manual"),
    ("passwd", "secret"),
    ("target", "serve"),
];

/// clap's message, without its advice to put what begins with a dash behind `--`: addresses do not
/// begin with one, and the value of an option would be none there. Nor does it propose an option
/// that is hardly like the one that was typed.
fn said(mut error: clap::Error) -> String {
    let wrong = text(&error, ContextKind::InvalidArg).unwrap_or_default();
    let near = text(&error, ContextKind::SuggestedArg).unwrap_or_default();
    let bare = |option: &str| option.trim_start_matches('-').to_owned();
    if nearest(&bare(wrong), [&*bare(near)].into_iter()).is_none() {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
    }
    let line = one_line(&error.render().to_string());
    match error.source().filter(|cause| cause.is::<ParseIntError>()) {
        Some(cause) => line.replace(&cause.to_string(), "give a whole number"),
        None => line,
    }
}

/// How clap begins its list of valid values.
const CHOICES: &str = "[possible values: ";

/// clap's message on one line, without the usage block below it.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let ends = ["\n\nUsage: ", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| message.find(end)).min();
    let lines = message[..end.unwrap_or(message.len())].lines();
    let mut line = String::new();
    for part in lines.map(str::trim).filter(|part| !part.is_empty()) {
        match line.chars().last() {
            None => {}
            Some(':') => line.push(' '),
            Some(_) if part.starts_with(CHOICES) => line.push_str(": "),
            Some(_) => line.push_str(", "),
        }
        let part = part.strip_prefix("tip: ").unwrap_or(part);
        match part.strip_prefix(CHOICES) {
            Some(choices) => line += &format!("choose from {}", choices.trim_end_matches(']')),
            None => line.push_str(part),
        }
    }
    line
}

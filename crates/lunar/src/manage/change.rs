//! `lunar plan`, `apply`, `set`, `unset` and `rollback`: what is served changes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use control::api::{BODY_BYTES, SetRequest};
use control::client::{ApiError, ApiRequest, Method};
use control::gate::Outcome;

use super::{SocketArgs, failure, segment, text_of};
use crate::{VerbError, documents};

/// Tell what a change of the configuration would do to whom
///
/// Compares the daemon's configuration file, or FILE, with what is served. Nothing changes. Each
/// difference is quiet, is told to hosts by a unit attention, cuts sessions, or loses data or an
/// identity.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A file to take the place of the daemon's configuration
    file: Option<PathBuf>,

    #[command(flatten)]
    common: ChangeArgs,
}

/// Serve what the configuration says now
///
/// Takes the daemon's configuration file as it was edited, or FILE in place of it. What ends
/// sessions or loses something has to be allowed. All of it is done, or nothing.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// A file to take the place of the daemon's configuration
    file: Option<PathBuf>,

    #[command(flatten)]
    terms: TermArgs,

    #[command(flatten)]
    common: ChangeArgs,
}

/// Set values of the configuration, such as volume.db.limit.iops=20k
///
/// A path is SECTION.ROW.KEY. A value is a text, or TOML, as in allow='["cluster"]'. The file is
/// changed there and nowhere else.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// Paths and their values
    #[arg(value_name = "PATH=VALUE", required = true, value_parser = assignment)]
    values: Vec<(String, String)>,

    #[command(flatten)]
    terms: TermArgs,

    #[command(flatten)]
    common: ChangeArgs,
}

/// Take values or rows out of the configuration, such as volume.db.limit
#[derive(Debug, Args)]
pub(crate) struct UnsetArgs {
    /// Their paths
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,

    #[command(flatten)]
    terms: TermArgs,

    #[command(flatten)]
    common: ChangeArgs,
}

/// Serve an earlier generation again
///
/// The generation that is served drops what was edited in the file and not applied.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Its number, as lunar history tells it
    #[arg(value_name = "N")]
    generation: u64,

    #[command(flatten)]
    terms: TermArgs,

    #[command(flatten)]
    common: ChangeArgs,
}

#[derive(Debug, Args)]
struct TermArgs {
    /// Allow sessions to end (cuts) or a row to lose data or its identity (loses=ROW); may be
    /// repeated
    #[arg(long, value_name = "cuts|loses=ROW", value_parser = permission)]
    allow: Vec<String>,

    /// Serve new volumes that cannot be opened as absent
    #[arg(long)]
    absent_ok: bool,

    /// Tell what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    /// Refuse if another generation is served by now
    #[arg(long, value_name = "N")]
    based_on: Option<u64>,
}

#[derive(Debug, Args)]
struct ChangeArgs {
    #[command(flatten)]
    socket: SocketArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A change that is asked for.
struct Change<'a> {
    verb: &'a str,
    file: Option<&'a PathBuf>,
    path: String,
    body: Option<String>,
    terms: Option<&'a TermArgs>,
    common: &'a ChangeArgs,
}

pub(crate) fn plan(args: &PlanArgs) -> Result<ExitCode, VerbError> {
    let asked = Change {
        verb: "plan",
        file: args.file.as_ref(),
        path: "/v1/plan".to_owned(),
        body: args.file.as_deref().map(read).transpose()?,
        terms: None,
        common: &args.common,
    };
    asked.ask()
}

pub(crate) fn apply(args: &ApplyArgs) -> Result<ExitCode, VerbError> {
    let asked = Change {
        verb: "apply",
        file: args.file.as_ref(),
        path: "/v1/apply".to_owned(),
        body: args.file.as_deref().map(read).transpose()?,
        terms: Some(&args.terms),
        common: &args.common,
    };
    asked.ask()
}

pub(crate) fn set(args: &SetArgs) -> Result<ExitCode, VerbError> {
    edit(
        "set",
        args.values.clone(),
        Vec::new(),
        &args.terms,
        &args.common,
    )
}

pub(crate) fn unset(args: &UnsetArgs) -> Result<ExitCode, VerbError> {
    edit(
        "unset",
        Vec::new(),
        args.paths.clone(),
        &args.terms,
        &args.common,
    )
}

pub(crate) fn rollback(args: &RollbackArgs) -> Result<ExitCode, VerbError> {
    let asked = Change {
        verb: "rollback",
        file: None,
        path: format!("/v1/rollback/{}", args.generation),
        body: None,
        terms: Some(&args.terms),
        common: &args.common,
    };
    asked.ask()
}

fn edit(
    verb: &str,
    set: Vec<(String, String)>,
    unset: Vec<String>,
    terms: &TermArgs,
    common: &ChangeArgs,
) -> Result<ExitCode, VerbError> {
    let body = serde_json::to_string(&SetRequest { set, unset });
    let asked = Change {
        verb,
        file: None,
        path: "/v1/set".to_owned(),
        body: Some(body.map_err(VerbError::failed)?),
        terms: Some(terms),
        common,
    };
    asked.ask()
}

impl Change<'_> {
    fn ask(self) -> Result<ExitCode, VerbError> {
        let command = match (self.verb, self.file) {
            ("plan", None) => "lunar apply".to_owned(),
            ("plan", Some(file)) => format!("lunar apply {}", file.display()),
            _ => "the same without --dry-run".to_owned(),
        };
        let request = ApiRequest {
            path: self.path + &self.terms.map(query).unwrap_or_default(),
            body: self.body,
            based_on: self.terms.and_then(|terms| terms.based_on),
        };
        let client = self.common.socket.client(self.verb);
        let is_dry = self.terms.is_none_or(|terms| terms.dry_run);
        match client.ask::<Outcome>(Method::POST, &request) {
            Ok(outcome) if self.common.json => documents::print_json(&outcome),
            Ok(outcome) => documents::print(told(&outcome, is_dry, &command).as_bytes()),
            Err(error) => {
                if let ApiError::Refused(problem) = &error
                    && let Some(outcome) = &problem.outcome
                {
                    if self.common.json {
                        documents::print_json(outcome)?;
                    } else {
                        documents::print(differences(outcome).as_bytes())?;
                    }
                    return Err(VerbError::failed(format!("nothing has changed: {error}")));
                }
                Err(self
                    .file
                    .map_or_else(|| failure(&error), |file| in_file(file, &error)))
            }
        }
    }
}

/// What is wrong in a file is told with its name: places are lines and columns of it.
fn in_file(file: &Path, error: &ApiError) -> VerbError {
    match error {
        ApiError::Refused(problem) if problem.status == 422 => {
            VerbError::usage(format!("{}: {error}", file.display()))
        }
        _ => failure(error),
    }
}

fn differences(outcome: &Outcome) -> String {
    let warnings = outcome.warnings.iter();
    let warnings: String = warnings.map(|one| format!("  ! {one}\n")).collect();
    format!("{}\n{warnings}", outcome.plan)
}

/// What has come, or would come, of a change.
fn told(outcome: &Outcome, is_dry: bool, command: &str) -> String {
    let text = differences(outcome);
    let (from, to, worst) = (outcome.from, outcome.generation, outcome.worst);
    if from == to {
        return text + &format!("generation {to} is served; there is nothing to do\n");
    }
    if !is_dry {
        return text + &format!("generation {to} is served\n");
    }
    let allow = outcome.plan.way_out();
    let space = if allow.is_empty() { "" } else { " " };
    text + &format!(
        "generation {from} -> {to}, the worst of it: {worst}. To do it: {command}{space}{allow}\n"
    )
}

fn query(terms: &TermArgs) -> String {
    let mut parts = Vec::new();
    if terms.dry_run {
        parts.push("dry-run".to_owned());
    }
    if terms.absent_ok {
        parts.push("absent-ok".to_owned());
    }
    if !terms.allow.is_empty() {
        let allow: Vec<_> = terms
            .allow
            .iter()
            .map(|one| one.split('=').map(segment).collect::<Vec<_>>().join("="))
            .collect();
        parts.push(format!("allow={}", allow.join(",")));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("?{}", parts.join("&"))
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(path, _)| !path.is_empty());
    let (path, value) = split.ok_or("write PATH=VALUE, as in volume.db.readonly=true")?;
    Ok((path.to_owned(), value.to_owned()))
}

pub(crate) fn permission(text: &str) -> Result<String, String> {
    control::plan::Allowed::default().add(text)?;
    Ok(text.to_owned())
}

fn read(path: &Path) -> Result<String, VerbError> {
    let text = text_of(path, BODY_BYTES)?;
    // Without a body the daemon would take its own file.
    let is_empty = text.trim().is_empty();
    Ok(if is_empty {
        "# empty\n".to_owned()
    } else {
        text
    })
}

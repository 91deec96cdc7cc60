//! `lunar import` and `export`: configurations of other targets.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use control::client::{ApiRequest, Method};
use control::document::{parse, write};
use control::import::{Format, Imported, LeftOut, export_lio, import, import_iet};

use crate::manage::{SocketArgs, failure, segment, text_of};
use crate::units::printable;
use crate::{VerbError, documents, log};

/// Print the configuration of another target as one of lunar daemon
///
/// FORMAT is lio (saveconfig.json), tgt (targets.conf), ctld (ctl.conf), iet (ietd.conf), scst
/// (scst.conf) or chiscsi. Each line that has no counterpart is named on standard error. Secrets
/// are not printed: --secrets puts them into the daemon.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What the file is of
    #[arg(value_name = "FORMAT", value_parser = format)]
    format: Format,

    /// The file
    file: PathBuf,

    /// Of iet: initiators.allow, which says who may log in
    #[arg(value_name = "ALLOW")]
    allow: Option<PathBuf>,

    /// Put the secrets of the file into the daemon, by the names that the configuration has
    #[arg(long)]
    secrets: bool,

    #[command(flatten)]
    socket: SocketArgs,
}

/// Print the configuration of a daemon as one of another target
///
/// FORMAT is lio (saveconfig.json). What has no counterpart there is named on standard error, and
/// so is each secret, with its place: a daemon shows none.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// What the file shall be of
    #[arg(value_name = "FORMAT", value_parser = exported)]
    format: Format,

    #[command(flatten)]
    socket: SocketArgs,
}

pub(crate) fn run(args: &ImportArgs) -> Result<ExitCode, VerbError> {
    let name = args.file.display();
    let text = text_of(&args.file, MOST_BYTES)?;
    let read = match &args.allow {
        None => import(args.format, &text),
        Some(allow) if args.format == Format::Iet => {
            import_iet(&text, &text_of(allow, MOST_BYTES)?)
        }
        Some(allow) => {
            let what = format!("{} is one file too many: only iet has two", allow.display());
            return Err(VerbError::usage(what));
        }
    };
    let imported = read.map_err(|problem| VerbError::usage(format!("{name}: {problem}")))?;
    tell(&format!("{name}"), &imported.left_out);
    imported.notes.iter().for_each(|note| log::say(note));
    if args.secrets {
        put_secrets(args, &imported)?;
    }
    documents::print(write(&imported.tree).as_bytes())
}

/// What was set to the other program's own default is not worth a line.
fn tell(name: &str, left_out: &[LeftOut]) {
    for one in left_out.iter().filter(|one| !one.is_default) {
        let place = if one.line > 0 {
            format!("{name}:{}", one.line)
        } else {
            name.to_owned()
        };
        log::say(&format!(
            "{place}: {}: {}",
            printable(&one.text, &[]),
            one.why
        ));
    }
}

fn put_secrets(args: &ImportArgs, imported: &Imported) -> Result<(), VerbError> {
    let client = args.socket.client("import");
    for (name, secret) in &imported.secrets {
        let request = ApiRequest {
            path: format!("/v1/secrets/{}", segment(name)),
            body: Some(secret.to_string()),
            based_on: None,
        };
        let kept = client.text(Method::PUT, &request);
        kept.map_err(|error| failure(&error))?;
    }
    Ok(())
}

pub(crate) fn export(args: &ExportArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("export");
    let text = client.text(Method::GET, &ApiRequest::new("/v1/config"));
    let text = text.map_err(|error| failure(&error))?;
    let tree = parse(&text).map_err(VerbError::failed)?;
    // Secrets stay where they are: each is named as left out.
    let exported = export_lio(&tree, &|_| None);
    tell("the configuration", &exported.left_out);
    documents::print(format!("{}\n", exported.text.trim_end()).as_bytes())
}

fn format(text: &str) -> Result<Format, String> {
    text.parse()
        .map_err(|error| format!("{error}: {DIRECTIONS}"))
}

fn exported(text: &str) -> Result<Format, String> {
    match format(text)? {
        Format::Lio => Ok(Format::Lio),
        other => Err(format!("{other} is imported only: {DIRECTIONS}")),
    }
}

const DIRECTIONS: &str =
    "lunar import reads lio, tgt, ctld, iet, scst and chiscsi, lunar export writes lio";

/// The longest file that is imported: what becomes of it has to fit into a request.
const MOST_BYTES: usize = 64 << 20;

//! `lunar history` and `diff`: what was served when, and what has changed.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use control::api::Status;
use control::client::{ApiRequest, Method};
use control::gate::Generation;
use similar::TextDiff;

use super::{SocketArgs, failure};
use crate::{VerbError, documents};

/// List the generations of the configuration that are kept
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    socket: SocketArgs,

    /// Print one JSON list
    #[arg(long)]
    json: bool,
}

/// Compare the configurations of two generations
///
/// Without a second number the first is compared with what is served.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// A generation, as lunar history tells it
    #[arg(value_name = "M")]
    from: u64,

    /// Another one
    #[arg(value_name = "N")]
    to: Option<u64>,

    #[command(flatten)]
    socket: SocketArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn history(args: &HistoryArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("history");
    let kept = client.ask::<Vec<Generation>>(Method::GET, &ApiRequest::new("/v1/history"));
    let kept = kept.map_err(|error| failure(&error))?;
    if args.json {
        return documents::print_json(&kept);
    }
    let lines: String = kept.iter().rev().map(told).collect();
    documents::print(lines.as_bytes())
}

fn told(generation: &Generation) -> String {
    let Generation {
        number,
        at,
        who,
        by,
        impact,
        differences,
    } = generation;
    let when = when(*at);
    let mut text = format!("{number}  {when}  {who}  {by}  {impact}\n");
    for difference in differences {
        text += &format!("    {difference}\n");
    }
    text
}

/// A time as RFC 3339 writes it, in UTC.
fn when(at: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at);
    humantime::format_rfc3339_seconds(time).to_string()
}

pub(crate) fn diff(args: &DiffArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("diff");
    let text = |number: u64| {
        let request = ApiRequest::new(format!("/v1/history/{number}"));
        client
            .text(Method::GET, &request)
            .map_err(|error| failure(&error))
    };
    let to = match args.to {
        Some(to) => to,
        None => {
            let status = client.ask::<Status>(Method::GET, &ApiRequest::new("/v1/status"));
            status.map_err(|error| failure(&error))?.generation
        }
    };
    let (old, new) = (text(args.from)?, text(to)?);
    let diff = TextDiff::from_lines(&old, &new);
    let names = (
        format!("generation {}", args.from),
        format!("generation {to}"),
    );
    let mut unified = diff.unified_diff();
    let lines = unified.header(&names.0, &names.1).to_string();
    if args.json {
        let object = serde_json::json!({ "from": args.from, "to": to, "diff": lines });
        return documents::print_json(&object);
    }
    if lines.is_empty() {
        let same = format!("nothing differs between {} and {}\n", names.0, names.1);
        return documents::print(same.as_bytes());
    }
    documents::print(lines.as_bytes())
}

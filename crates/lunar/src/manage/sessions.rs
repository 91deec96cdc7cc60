//! `lunar sessions` and `drop`: who is logged in, and the end of it.

use std::iter;
use std::process::ExitCode;

use clap::Args;
use control::client::{ApiRequest, Method};
use control::plane::Session;

use super::{SocketArgs, failure};
use crate::units::{bare_table, human_size, lines};
use crate::{VerbError, documents};

/// List the sessions of a daemon: who is logged in to what, and from where
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    socket: SocketArgs,

    /// Print one JSON list
    #[arg(long)]
    json: bool,
}

/// End a session, whatever its initiator does
///
/// Its commands end at the volumes first. An initiator that may log in comes back.
#[derive(Debug, Args)]
pub(crate) struct DropArgs {
    /// Its number, as lunar sessions tells it
    #[arg(value_name = "ID")]
    id: u16,

    #[command(flatten)]
    socket: SocketArgs,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn sessions(args: &SessionsArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("sessions");
    let sessions = client.ask::<Vec<Session>>(Method::GET, &ApiRequest::new("/v1/sessions"));
    let sessions = sessions.map_err(|error| failure(&error))?;
    if args.json {
        return documents::print_json(&sessions);
    }
    let mut table = bare_table(HEADER);
    for session in &sessions {
        table.add_row(row(session));
    }
    documents::print(lines(&table).as_bytes())
}

/// A login by Fibre Channel has no number, as it cannot be ended by one.
fn row(session: &Session) -> [String; 12] {
    let id = session.id.map(|id| id.to_string());
    let target = session.target.as_deref().unwrap_or("discovery");
    let user = session.user.as_ref().map(|user| format!(" as {user:?}"));
    [
        id.unwrap_or_else(|| "-".to_owned()),
        session.initiator.clone(),
        target.to_owned(),
        session.address.clone(),
        session.portal.clone(),
        over(session),
        format!("{}{}", session.proof, user.unwrap_or_default()),
        session.digests.clone(),
        format!("{} s", session.age_s),
        session.commands.to_string(),
        human_size(session.read_bytes),
        human_size(session.written_bytes),
    ]
}

/// `iscsi`, `iser`, `iser mlx5_0`.
fn over(session: &Session) -> String {
    let by = session.device.iter().map(String::as_str);
    let words: Vec<_> = iter::once(&*session.transport).chain(by).collect();
    words.join(" ")
}

const HEADER: [&str; 12] = [
    "ID",
    "INITIATOR",
    "TARGET",
    "FROM",
    "PORTAL",
    "OVER",
    "PROOF",
    "DIGESTS",
    "AGE",
    "COMMANDS",
    "READ",
    "WRITTEN",
];

pub(crate) fn end(args: &DropArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("drop");
    let request = ApiRequest::new(format!("/v1/sessions/{}", args.id));
    let ended = client.text(Method::DELETE, &request);
    ended.map_err(|error| failure(&error))?;
    if args.json {
        return documents::print_json(&serde_json::json!({ "ended": args.id }));
    }
    documents::print(format!("session {} has ended\n", args.id).as_bytes())
}

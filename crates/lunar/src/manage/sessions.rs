//! `lunar sessions`, `drop` and `stats`: who is logged in, the end of it, and what volumes do.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use control::client::{ApiRequest, Method};
use control::metrics::VolumeStats;
use control::plane::Session;

use super::{SocketArgs, failure};
use crate::units::{bare_table, human_size, lines, parse_time};
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

/// Print what the volumes of a daemon have done
///
/// Commands and bytes since each volume is served or, with --every, in each second of an interval.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Print them again and again, each time by the second
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    every: Option<Duration>,

    /// How often, with --every [default: until interrupted]
    #[arg(long, value_name = "N", requires = "every")]
    count: Option<u64>,

    #[command(flatten)]
    socket: SocketArgs,

    /// Print JSON lists
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
    let mut table = bare_table(["ID", "INITIATOR", "TARGET", "FROM", "PORTAL", "AGE"]);
    for session in &sessions {
        let (id, age) = (session.id.to_string(), format!("{} s", session.age_s));
        let target = session.target.as_deref().unwrap_or("discovery");
        let (initiator, from) = (&*session.initiator, &*session.address);
        table.add_row([&*id, initiator, target, from, &session.portal, &age]);
    }
    documents::print(lines(&table).as_bytes())
}

pub(crate) fn stats(args: &StatsArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("stats");
    let request = ApiRequest::new("/v1/stats");
    let look = || client.ask::<Vec<VolumeStats>>(Method::GET, &request);
    let mut before = look().map_err(|error| failure(&error))?;
    if args.every.is_none() {
        return print_stats(args, &before, None);
    }
    let every = args.every.unwrap_or_default();
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        thread::sleep(every);
        let now = look().map_err(|error| failure(&error))?;
        print_stats(args, &now, Some((&before, every)))?;
        before = now;
    }
    Ok(ExitCode::SUCCESS)
}

/// Numbers since the start, or, with those of before, a second.
fn print_stats(
    args: &StatsArgs,
    now: &[VolumeStats],
    before: Option<(&[VolumeStats], Duration)>,
) -> Result<ExitCode, VerbError> {
    if args.json {
        return documents::print_json(&now);
    }
    let mut table = bare_table(["VOLUME", "SIZE", "READS", "WRITES", "READ", "WRITTEN"]);
    for volume in now {
        let known = before.and_then(|(all, _)| all.iter().find(|one| one.volume == volume.volume));
        let per = before.map_or(1.0, |(_, every)| every.as_secs_f64());
        let number = |of: fn(&VolumeStats) -> u64| {
            let since = of(volume).saturating_sub(known.map_or(0, of));
            (since as f64 / per).round() as u64
        };
        let size = match volume.absent {
            true => "absent".to_owned(),
            false => human_size(volume.capacity_bytes),
        };
        let counts = [number(|of| of.reads), number(|of| of.writes)].map(|count| count.to_string());
        let moved = [number(|of| of.read_bytes), number(|of| of.written_bytes)].map(human_size);
        table.add_row([
            &volume.volume,
            &size,
            &counts[0],
            &counts[1],
            &moved[0],
            &moved[1],
        ]);
    }
    documents::print(lines(&table).as_bytes())
}

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

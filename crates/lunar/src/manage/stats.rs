//! `lunar stats`: what volumes do, and how long their commands take.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Args;
use control::client::{ApiRequest, Method};
use control::metrics::{OperationStats, VolumeStats};

use super::{SocketArgs, failure};
use crate::units::{bare_table, human_size, lines, parse_timeout};
use crate::{VerbError, documents};

/// Print what the volumes of a daemon have done
///
/// Commands, bytes and latency since each volume is served or, with --every, in each second of an
/// interval.
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Print them again and again, each time by the second
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
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
    let mut table = bare_table(HEADER);
    for volume in now {
        let known = before.and_then(|(all, _)| all.iter().find(|one| one.volume == volume.volume));
        let per = before.map_or(1.0, |(_, every)| every.as_secs_f64());
        let number = |of: fn(&VolumeStats) -> u64| {
            let since = of(volume).saturating_sub(known.map_or(0, of));
            (since as f64 / per).round() as u64
        };
        let size = if volume.absent {
            "absent".to_owned()
        } else {
            human_size(volume.capacity_bytes)
        };
        let counts = [number(|of| of.reads), number(|of| of.writes)].map(|count| count.to_string());
        let moved = [number(|of| of.read_bytes), number(|of| of.written_bytes)].map(human_size);
        let took = |of: fn(&VolumeStats) -> &OperationStats| {
            let nothing = OperationStats::default();
            latency(&of(volume).since(known.map_or(&nothing, of)))
        };
        let [reads, writes] = counts;
        let [read, written] = moved;
        let [took_read, took_write] = [took(|of| &of.read), took(|of| &of.write)];
        let name = volume.volume.clone();
        table.add_row([
            name, size, reads, writes, read, written, took_read, took_write,
        ]);
    }
    documents::print(lines(&table).as_bytes())
}

/// What half of them and 99 % of them did not exceed.
fn latency(of: &OperationStats) -> String {
    match (of.percentile(0.5), of.percentile(0.99)) {
        (Some(half), Some(most)) => format!("{}/{}", short(half), short(most)),
        _ => "-".to_owned(),
    }
}

fn short(time: Duration) -> String {
    match time.as_micros() {
        0..1_000 => format!("{} us", time.as_micros()),
        1_000..1_000_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

const HEADER: [&str; 8] = [
    "VOLUME",
    "SIZE",
    "READS",
    "WRITES",
    "READ",
    "WRITTEN",
    "READ P50/P99",
    "WRITE P50/P99",
];

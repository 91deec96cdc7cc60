//! `lunar copy`: from the command line to the engine, and what came of it in one line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use client::pair::{self, Copied, CopyOptions, MOST_DEPTH, PairOptions};
use serde::Serialize;

use crate::client::{address, open_options, quoted, state_dir};
use crate::progress_display::{ENDED, INTERRUPTED, ProgressDisplay};
use crate::units::{counted, human_size, number, parse_timeout, per_second};
use crate::verify::DifferentRange;
use crate::{VerbError, documents, log, verify};

/// Copy a volume onto another
///
/// Copies A to the beginning of B and leaves the rest of B unchanged. If A is longer than B, the
/// copy fails before anything is written. If B is file:PATH and does not exist, it is created with
/// the size of A. Zeros in A take no space in B if B supports holes. At the end B is flushed, and
/// one line sums up the copy. ^C stops with exit code 130 and prints the command that continues.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// Address of the volume to copy, which is only read
    #[arg(value_name = "A")]
    a: String,

    /// Address of the volume to write to
    #[arg(value_name = "B")]
    b: String,

    /// Continue an interrupted copy of A to B
    #[arg(long)]
    resume: bool,

    /// Read A and B again and compare them, once all data is durable
    ///
    /// The comparison covers all of A, including what an earlier run copied.
    #[arg(long)]
    verify: bool,

    /// Pieces of 256 KiB in flight at once, from 1 to 128
    #[arg(long, value_name = "N", default_value = "32", value_parser = number(1..=MOST_DEPTH))]
    depth: usize,

    /// Skip blocks of A that cannot be read, and write zeros to B
    ///
    /// Their ranges are printed, and the exit code is 1.
    #[arg(long, conflicts_with = "verify")]
    skip_unreadable: bool,

    /// Longest time without progress, for example while a target restarts
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,

    /// Directory for the records of interrupted copies
    ///
    /// By default $STATE_DIRECTORY, else /var/lib/lunar for root, else $XDG_STATE_HOME/lunar.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct CopyReport<'a> {
    a: &'a str,
    b: &'a str,
    complete: bool,
    size_bytes: u64,
    /// How much of A is durable at B.
    durable_bytes: u64,
    data_bytes: u64,
    hole_bytes: u64,
    resumed_at_bytes: u64,
    /// Data that B lost and that was copied again; not part of `data_bytes`.
    again_bytes: u64,
    unreadable_bytes: u64,
    /// What of A cannot be read, and is zeros at B.
    unreadable: Vec<DifferentRange>,
    /// Others wrote to A meanwhile, as far as that can be known.
    source_changed: bool,
    seconds: f64,
    /// What --verify found.
    verified: Option<verify::VerifyReport<'a>>,
}

pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode, VerbError> {
    let options = PairOptions {
        a: address(&args.a)?,
        b: address(&args.b)?,
        depth: args.depth,
        open: open_options()?,
        state_dir: args.state_dir.clone().or_else(state_dir),
        timeout: args.timeout,
    };
    log::start();
    let mut watch =
        ProgressDisplay::new(format!("{ENDED}, without a final flush; {}", args.resume()));
    let copy_options = CopyOptions {
        resume: args.resume,
        verify: args.verify,
        skip_unreadable: args.skip_unreadable,
    };
    let copied = pair::copy(&options, copy_options, &mut |progress| watch.look(progress));
    watch.finish();
    let copied = copied.map_err(VerbError::failed)?;
    if args.json {
        documents::print_json(&args.report(&copied))?;
    }
    if let Some(failure) = args.failure(&copied, watch.was_interrupted()) {
        return Err(failure);
    }
    let (a, b) = (&args.a, &args.b);
    let verified = copied.verified.as_ref();
    let is_same = verified.is_some_and(|verified| verify::failure(verified, a, b).is_none());
    if copied.changed && !is_same {
        tracing::warn!(
            "A was written to during the copy: B may match neither the old nor the new contents \
             of A"
        );
    }
    if !args.json {
        let found = verified.map(verify::said).unwrap_or_default();
        let lines = summary(&copied) + &unreadable(&copied) + &found;
        documents::print(lines.as_bytes())?;
    }
    if !copied.unreadable.is_empty() {
        return Err(args.incomplete(&copied));
    }
    match verified.and_then(|verified| verify::failure(verified, a, b)) {
        Some(found) => Err(VerbError {
            line: format!(
                "all of A was copied, but verification failed: {}",
                found.line
            ),
            code: found.code,
        }),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl CopyArgs {
    /// Why it is not complete, and how to go on.
    fn failure(&self, copied: &Copied, interrupted: bool) -> Option<VerbError> {
        let why = match copied.failure {
            Some(failure) => failure.line(&self.a, &self.b),
            None if copied.is_complete() => return None,
            None if interrupted => "interrupted".to_owned(),
            None => "ended early".to_owned(),
        };
        let code = if interrupted { INTERRUPTED } else { 1 };
        let state = match copied.durable {
            0 => "nothing of A is durable at B yet".to_owned(),
            durable => format!(
                "the first {} of {} are durable at B, the rest is not",
                human_size(durable),
                human_size(copied.progress.total)
            ),
        };
        let (a, b) = (quoted(&self.a), quoted(&self.b));
        let way_out = if copied.resumable {
            self.resume()
        } else if copied.changed {
            format!("A was written to during the copy, start over with: lunar copy {a} {b}")
        } else {
            format!("start over with: lunar copy {a} {b}")
        };
        let line = format!("{why}; {state}; {way_out}");
        Some(VerbError { line, code })
    }

    /// How to go on.
    fn resume(&self) -> String {
        let (a, b) = (quoted(&self.a), quoted(&self.b));
        match &self.state_dir {
            None => format!("continue with: lunar copy --resume {a} {b}"),
            Some(dir) => {
                let dir = quoted(&dir.display().to_string());
                format!("continue with: lunar copy --resume --state-dir {dir} {a} {b}")
            }
        }
    }

    /// All is there but what cannot be read.
    fn incomplete(&self, copied: &Copied) -> VerbError {
        let (bytes, ranges) = (copied.unreadable.bytes(), copied.unreadable.len());
        VerbError::failed(format!(
            "{}: {} in {} cannot be read, and {} zeros at B",
            self.a,
            human_size(bytes),
            counted(ranges as u64, "range"),
            if ranges == 1 { "is" } else { "are" },
        ))
    }

    fn report(&self, copied: &Copied) -> CopyReport<'_> {
        let progress = &copied.progress;
        CopyReport {
            a: &self.a,
            b: &self.b,
            complete: copied.is_complete(),
            size_bytes: progress.total,
            durable_bytes: copied.durable,
            data_bytes: progress.data,
            hole_bytes: progress.holes,
            resumed_at_bytes: progress.before,
            again_bytes: progress.again,
            unreadable_bytes: copied.unreadable.bytes(),
            unreadable: copied.unreadable.iter().map(DifferentRange::of).collect(),
            source_changed: copied.changed,
            seconds: copied.time.as_secs_f64(),
            verified: copied
                .verified
                .as_ref()
                .map(|verified| verify::report(verified, &self.a, &self.b)),
        }
    }
}

/// `copied 8.0 GiB in 4.1 s: 1.2 GiB of data (299.7 MiB/s), 6.8 GiB of holes`
fn summary(copied: &Copied) -> String {
    let progress = &copied.progress;
    let more = |bytes, what| match bytes {
        0 => String::new(),
        bytes => format!(", {} {what}", human_size(bytes)),
    };
    format!(
        "copied {} in {:.1} s: {} of data ({}/s), {} of holes{}{}\n",
        human_size(progress.total),
        copied.time.as_secs_f64(),
        human_size(progress.data),
        human_size(per_second(progress.data, copied.time)),
        human_size(progress.holes),
        more(progress.before, "copied before"),
        more(progress.again, "sent twice"),
    )
}

/// A line for each range that cannot be read.
fn unreadable(copied: &Copied) -> String {
    let ranges = copied.unreadable.iter();
    ranges
        .map(|range| format!("unreadable: bytes {} to {}\n", range.start, range.end - 1))
        .collect()
}

//! `lunar verify`: from the command line to the engine, and what was found.

use std::ops::Range;
use std::process::ExitCode;

use clap::Args;
use client::open::REPLACEMENT;
use client::pair::{self, MOST_DEPTH, PairOptions, Verified};
use serde::Serialize;

use crate::client::{address, open_options};
use crate::progress_display::{ENDED, INTERRUPTED, ProgressDisplay};
use crate::units::{human_size, number, per_second};
use crate::{VerbError, documents, log};

/// Compare two volumes
///
/// Compares all of A with the beginning of B and writes to neither. Exit code 0: the data is the
/// same; 1: it differs, and the output names the first difference and the number of blocks.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Address of the first volume, which is compared as a whole
    #[arg(value_name = "A")]
    a: String,

    /// Address of the second volume, which may be longer
    #[arg(value_name = "B")]
    b: String,

    /// Pieces of 256 KiB in flight at once, from 1 to 128
    #[arg(long, value_name = "N", default_value = "32", value_parser = number(1..=MOST_DEPTH))]
    depth: usize,

    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct VerifyReport<'a> {
    a: &'a str,
    b: &'a str,
    complete: bool,
    identical: bool,
    size_bytes: u64,
    data_bytes: u64,
    hole_bytes: u64,
    block_size: u64,
    differing_blocks: u64,
    first_difference_byte: Option<u64>,
    /// The first ranges of blocks that differ.
    differences: Vec<DifferentRange>,
    seconds: f64,
}

#[derive(Serialize)]
pub(crate) struct DifferentRange {
    start_byte: u64,
    end_byte: u64,
}

impl DifferentRange {
    pub(crate) const fn of(range: &Range<u64>) -> Self {
        Self {
            start_byte: range.start,
            end_byte: range.end,
        }
    }
}

pub(crate) fn run(args: &VerifyArgs) -> Result<ExitCode, VerbError> {
    let options = PairOptions {
        a: address(&args.a)?,
        b: address(&args.b)?,
        depth: args.depth,
        open: open_options()?,
        state_dir: None,
        timeout: REPLACEMENT,
    };
    log::start();
    let mut watch = ProgressDisplay::new(ENDED.to_owned());
    let verified = pair::verify(&options, &mut |progress| watch.look(progress));
    watch.finish();
    let verified = verified.map_err(VerbError::failed)?;
    if args.json {
        documents::print_json(&report(&verified, &args.a, &args.b))?
    } else {
        documents::print(said(&verified).as_bytes())?
    };
    failure(&verified, &args.a, &args.b).map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Why they are not known to be the same.
pub(crate) fn failure(verified: &Verified, a: &str, b: &str) -> Option<VerbError> {
    let found = match verified.differences.first {
        Some(first) => format!(
            "{} of {} blocks {}, the first at byte {first} (block {})",
            verified.differences.blocks,
            verified.progress.total / verified.block_size,
            match verified.differences.blocks {
                1 => "differs",
                _ => "differ",
            },
            first / verified.block_size
        ),
        None => "no difference was found".to_owned(),
    };
    let done = human_size(verified.progress.done());
    let until = format!("after {done}, {found}");
    let (line, code) = match verified.failure {
        Some(failure) => (format!("{}; {until}", failure.line(a, b)), 1),
        None if !verified.is_complete() => (format!("interrupted; {until}"), INTERRUPTED),
        None if verified.differences.first.is_none() => return None,
        None => (found, 1),
    };
    Some(VerbError { line, code })
}

/// What was found, for scripts.
pub(crate) fn report<'a>(verified: &Verified, a: &'a str, b: &'a str) -> VerifyReport<'a> {
    let (progress, found) = (&verified.progress, &verified.differences);
    VerifyReport {
        a,
        b,
        complete: verified.is_complete(),
        identical: verified.is_complete() && found.first.is_none(),
        size_bytes: progress.total,
        data_bytes: progress.data,
        hole_bytes: progress.holes,
        block_size: verified.block_size,
        differing_blocks: found.blocks,
        first_difference_byte: found.first,
        differences: found.ranges.iter().map(DifferentRange::of).collect(),
        seconds: verified.time.as_secs_f64(),
    }
}

/// That they are the same, or where they differ: a line a range.
pub(crate) fn said(verified: &Verified) -> String {
    let (progress, found) = (&verified.progress, &verified.differences);
    if found.first.is_none() && verified.is_complete() {
        return format!(
            "the same: {} in {:.1} s: {} of data ({}/s), {} of holes in both\n",
            human_size(progress.total),
            verified.time.as_secs_f64(),
            human_size(progress.data),
            human_size(per_second(progress.data, verified.time)),
            human_size(progress.holes),
        );
    }
    let line = |range: &Range<u64>| {
        let blocks = (range.end - range.start) / verified.block_size;
        let first = range.start / verified.block_size;
        let (start, last) = (range.start, range.end - 1);
        format!(
            "differ: bytes {start} to {last}, blocks {first} to {}\n",
            first + blocks - 1
        )
    };
    let mut lines: String = found.ranges.iter().map(line).collect();
    let listed = found.ranges.bytes() / verified.block_size;
    let more = found.blocks.saturating_sub(listed);
    if more > 0 {
        lines += &format!("differ: {more} more blocks after these\n");
    }
    lines
}

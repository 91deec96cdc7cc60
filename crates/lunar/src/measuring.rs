//! What the verbs that measure have in common: the words of a load, and the live line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use address::Address;
use bench::load::{LoadResources, LoadVolume, LoadWaits, RunError, UnwrittenRange};
use bench::outcome::{RunResult, table};
use bench::plan::{BlockSizes, FioOptions, Rw};
use bench::run::{RunPlan, begun};
use bench::{RunObserver, processes, report};
use clap::Args;
use engine::serve::options::{PollMode, RingKind};

use crate::client::{open_options, quoted};
use crate::progress_display::{INTERRUPTED, StatusLine};
use crate::serve::args::{POLLS, RINGS};
use crate::units::{choice, number, parse_size, parse_time};
use crate::{VerbError, documents, log};

/// fio's words, where fio has them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Direction: read, write, rw, randread, randwrite or randrw [default: read]
    #[arg(long, value_name = "WORD")]
    rw: Option<Rw>,

    /// Percentage of reads, for rw and randrw [default: 50]
    #[arg(long, value_name = "PERCENT", value_parser = number(0..=100_u32))]
    rwmixread: Option<u32>,

    /// Size of each I/O, up to 256k; a list gives one row each [default: 4k]
    #[arg(long, value_name = "SIZE,...")]
    bs: Option<BlockSizes>,

    /// I/Os that each job keeps in flight, from 1 to 4096 [default: 1]
    #[arg(long, value_name = "N", value_parser = number(1..=4096_u32))]
    iodepth: Option<u32>,

    /// Threads, each with its own session, from 1 to 256 [default: 1]
    #[arg(long, value_name = "N", value_parser = number(1..=256_u32))]
    numjobs: Option<u32>,

    /// Time to measure each row; a plain number is in seconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    runtime: Duration,

    /// Time that each row runs before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    ramp_time: Duration,

    /// Size of the part to use [without it: all; for floor: 512M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,

    /// Seed for random offsets and for written data
    #[arg(long, value_name = "N", default_value = "1")]
    randseed: u64,

    /// Measure random reads, writes and both, with block sizes from 512 to 32k
    ///
    /// The depth is 32 unless --iodepth is given. Sizes that the volume does not support are left
    /// out.
    #[arg(long, conflicts_with = "preset")]
    sweep: bool,

    /// Use the options of a well-known test
    ///
    /// disktest: four threads, 64k, one row of sequential reads and one of sequential writes.
    /// iometer: a sweep with eight threads and depth 50. Other options override the preset.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
}

impl LoadArgs {
    /// What they come to.
    pub(crate) fn words(&self) -> Result<FioOptions, VerbError> {
        let preset = FioOptions::preset(self.preset.as_deref(), self.sweep);
        let preset = preset.map_err(VerbError::usage)?;
        let block_sizes = self.bs.as_ref().map(|BlockSizes(sizes)| sizes.clone());
        let words = FioOptions {
            rws: self.rw.map_or(preset.rws, |rw| vec![rw]),
            block_sizes: block_sizes.unwrap_or(preset.block_sizes),
            sweep: preset.sweep && self.bs.is_none(),
            depth: self.iodepth.unwrap_or(preset.depth),
            jobs: self.numjobs.unwrap_or(preset.jobs),
            read_percent: self.rwmixread.unwrap_or(preset.read_percent),
            runtime: self.runtime,
            ramp: self.ramp_time,
            size: self.size,
            seed: self.randseed,
            ..preset
        };
        if self.rwmixread.is_some() && !words.mixes() {
            let why = "--rwmixread applies to mixed loads only: give --rw rw or randrw";
            return Err(VerbError::usage(why));
        }
        words.check().map_err(VerbError::usage)?;
        Ok(words)
    }

    /// What they come to where frames are sent, whose length and number are not chosen.
    pub(crate) fn frames(&self) -> Result<FioOptions, VerbError> {
        let meaningless = [
            ("--bs", self.bs.is_some()),
            ("--iodepth", self.iodepth.is_some()),
            ("--numjobs", self.numjobs.is_some()),
            ("--sweep", self.sweep),
            ("--preset", self.preset.is_some()),
        ];
        if let Some((option, _)) = meaningless.iter().find(|(_, given)| *given) {
            let why = "does not apply to frames, whose length follows from the link";
            return Err(VerbError::usage(format!("{option} {why}: omit it")));
        }
        let words = self.words()?;
        let both = || ["read", "write"].iter().filter_map(|rw| rw.parse().ok());
        let rws = self.rw.map_or_else(|| both().collect(), |rw| vec![rw]);
        Ok(FioOptions { rws, ..words })
    }
}

/// What the verbs that measure volumes have besides the load.
#[derive(Debug, Args)]
pub(crate) struct MeansArgs {
    /// Offset of the part of each volume to use
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    offset: u64,

    /// Write the whole part once before it is measured
    ///
    /// Reads of blocks that were never written cost less than reads of data.
    #[arg(long)]
    pub(crate) fill: bool,

    /// Kernel interface for I/O
    #[arg(long, value_name = "RING", default_value = "auto", value_parser = choice(RINGS))]
    pub(crate) ring: RingKind,

    /// When the threads of the load spin instead of sleeping
    #[arg(long, value_name = "WHEN", default_value = "adaptive", value_parser = choice(POLLS))]
    poll: PollMode,

    /// Process ID of the target, for its CPU time; may be repeated
    ///
    /// By default, the process at the other end of the connections, if it runs on this machine and
    /// is visible to this user.
    #[arg(long, value_name = "PID")]
    target_pid: Vec<u32>,

    /// Print JSON, with histograms and throughput over time
    #[arg(long)]
    pub(crate) json: bool,

    /// Write a report with plots, and each plot as SVG and PNG next to it
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

impl MeansArgs {
    /// What the load comes to with them.
    pub(crate) fn words(&self, load: &LoadArgs) -> Result<FioOptions, VerbError> {
        Ok(FioOptions {
            offset: self.offset,
            ..load.words()?
        })
    }

    pub(crate) fn machinery(&self) -> LoadResources {
        LoadResources {
            waits: LoadWaits {
                ring: self.ring,
                poll: self.poll,
            },
            targets: self.target_pid.clone(),
        }
    }

    /// Checks what is better known before an hour's measurement.
    pub(crate) fn check(&self) -> Result<(), VerbError> {
        let gone = |pid: &&u32| processes::cpu_time_of(&[**pid]).is_none();
        if let Some(pid) = self.target_pid.iter().find(gone) {
            return Err(VerbError::failed(format!(
                "--target-pid {pid}: no such process on this machine"
            )));
        }
        self.html.as_deref().map_or(Ok(()), can_write)
    }

    /// Opens everything before anything is measured.
    pub(crate) fn open(
        &self,
        addresses: &[Address],
        words: &FioOptions,
    ) -> Result<Vec<LoadVolume>, VerbError> {
        log::start();
        let options = open_options()?;
        let open = |address| LoadVolume::open(address, &options, words);
        let opened: Result<_, _> = addresses.iter().map(open).collect();
        opened.map_err(VerbError::failed)
    }
}

/// Says which volumes would be read where nothing was written.
pub(crate) fn warn_of_holes(plan: &RunPlan) {
    for (address, holes) in plan.holes() {
        let what = match holes {
            UnwrittenRange::All => "the measured range was never written",
            _ => "parts of the measured range were never written",
        };
        log::say(&format!(
            "{address}: {what}, so reads are faster than reads of data; give --fill to write it \
             first"
        ));
    }
}

/// What was measured, and how that ended.
pub(crate) struct Measurement {
    outcome: RunResult,
    failure: Option<RunError>,
    interrupted: bool,
}

impl Measurement {
    /// Measures with a live line, until it is over or it is interrupted.
    pub(crate) fn run(
        stop: &AtomicBool,
        runtime: Duration,
        measure: impl FnOnce(&mut RunResult, &mut RunObserver<'_>) -> Result<(), RunError>,
    ) -> Self {
        let mut line = StatusLine::new(runtime);
        let mut outcome = begun(typed());
        let live = &mut |live| line.show(live);
        let measured = measure(&mut outcome, &mut RunObserver { stop, live });
        line.clear();
        Self {
            outcome,
            failure: measured.err(),
            interrupted: stop.load(Relaxed),
        }
    }

    /// Prints what was measured, and writes the report. Returns the exit code, or what is to be
    /// said.
    pub(crate) fn tell(self, json: bool, page: Option<&Path>) -> Result<ExitCode, VerbError> {
        print(&self.outcome, json)?;
        if let Some(page) = page {
            report::write(&self.outcome, page).map_err(VerbError::failed)?;
        }
        match self.failure {
            Some(failure) => Err(VerbError::failed(failure)),
            None if self.interrupted => Ok(INTERRUPTED.into()),
            None => Ok(ExitCode::SUCCESS),
        }
    }
}

fn print(outcome: &RunResult, json: bool) -> Result<(), VerbError> {
    if json {
        documents::print_json(outcome)?;
    } else if !outcome.rows.is_empty() {
        let sweep = table::sweep(outcome).map(|text| text + "\n\n");
        let mut text = sweep.unwrap_or_default() + &table::table(outcome) + "\n";
        if !outcome.races.is_empty() {
            text += &format!("\n{}", table::races(outcome));
        }
        documents::print(text.as_bytes())?;
    }
    Ok(())
}

/// Whether a page can be written, which is better known before an hour's measurement. An empty one
/// is not left behind, nor is one behind a symbolic link. Plots are written beside the page, so it
/// must not be a device, and opening a FIFO would wait for a reader.
fn can_write(page: &Path) -> Result<(), VerbError> {
    let was_there = page.exists();
    if was_there && !page.is_file() {
        let page = page.display();
        let line = format!("--html {page}: not a regular file: give the path of a file");
        return Err(VerbError::failed(line));
    }
    let opened = File::options().append(true).create(true).open(page);
    let failed = |cause| {
        let page = page.display();
        VerbError::failed(format!(
            "--html {page}: {cause}: give a file that can be written"
        ))
    };
    opened.map_err(failed)?;
    if !was_there {
        let _ = fs::canonicalize(page).and_then(fs::remove_file);
    }
    Ok(())
}

/// What was typed, behind the name of the program.
fn typed() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    let words: Vec<_> = words.collect();
    words.join(" ")
}

//! The options of `lunar bench` as they are typed.

use std::path::PathBuf;

use clap::Args;

use crate::measuring::LoadArgs;
use crate::serve::args::RingArg;
use crate::units::parse_size;

/// Put load on volumes, by fio's words, and say what they gave
///
/// All ADDRs are measured at the same time, each by as many threads as --numjobs says, and have a
/// row each. A load that writes destroys what is on the volumes, without asking. ^C ends it with
/// 130 and tells what was measured so far; the first I/O that fails ends it with 1.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Addresses of the volumes, such as iscsi://192.0.2.1/iqn.2026-11.org.example:disk0/0
    #[arg(value_name = "ADDR", required = true)]
    pub(super) volumes: Vec<String>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// Where on each volume the part begins that is used
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = parse_size)]
    pub(super) offset: u64,

    /// I/Os a second that each job does at the most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rate_iops: Option<u64>,

    /// Check data: what is read must be what was written
    ///
    /// Blocks carry --randseed, their number, and how often they were written. After a load that
    /// writes, all that it wrote is read again. A load that only reads checks what an earlier
    /// --verify or --fill with the same --randseed left.
    #[arg(long)]
    pub(super) verify: bool,

    /// Write everything once before it is measured
    ///
    /// What was never written reads as zeros from nowhere, and that flatters.
    #[arg(long)]
    pub(super) fill: bool,

    /// How the kernel is asked
    #[arg(long, value_name = "RING", default_value = "auto")]
    pub(super) ring: RingArg,

    /// Process whose CPU time is the target's; may be repeated
    ///
    /// Without it: who is at the other end of our connections, if that is on this machine and we
    /// may see it.
    #[arg(long, value_name = "PID")]
    pub(super) target_pid: Vec<u32>,

    /// Measure bare TCP as well, to local or to a lunar floor --listen
    #[arg(long, value_name = "local|HOST[:PORT]")]
    pub(super) floor: Option<String>,

    /// Print everything as JSON, with histograms and throughput over time
    #[arg(long)]
    pub(super) json: bool,

    /// Write a report with plots, and each plot as SVG and PNG beside it
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
}

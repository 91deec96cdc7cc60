//! The options of `lunar bench` as they are typed.

use clap::Args;

use crate::measuring::{LoadArgs, MeansArgs};

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

    #[command(flatten)]
    pub(super) means: MeansArgs,

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

    /// Measure bare TCP as well, to local or to a lunar floor --listen
    #[arg(long, value_name = "local|HOST[:PORT]")]
    pub(super) floor: Option<String>,
}

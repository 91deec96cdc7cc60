//! The options of `lunar bench` as they are typed.

use clap::Args;

use crate::measuring::{LoadArgs, MeansArgs};

/// Measure volumes under load, with options named as in fio
///
/// All ADDRs are measured at the same time, each by --numjobs threads, with one row each. A load
/// that writes destroys the data on the volumes, without asking. ^C stops with exit code 130 and
/// prints what was measured so far; the first I/O error stops with exit code 1.
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

    /// Limit for each job, in I/Os per second
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    pub(super) rate_iops: Option<u64>,

    /// Check that the data read is the data written
    ///
    /// Blocks carry --randseed, their number, and a write counter. After a load that writes, all
    /// data it wrote is read again. A load that only reads checks the data of an earlier --verify
    /// or --fill with the same --randseed.
    #[arg(long)]
    pub(super) verify: bool,

    /// Also measure bare TCP, to this machine (local) or to a lunar floor --listen
    #[arg(long, value_name = "local|HOST[:PORT]")]
    pub(super) floor: Option<String>,
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let rate = text.parse().ok();
    rate.filter(|rate| *rate > 0)
        .ok_or_else(|| "give a number of I/Os per second, such as 1000".to_owned())
}

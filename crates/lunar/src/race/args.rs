//! The options of `lunar race` as they are typed.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::measuring::{LoadArgs, MeansArgs};
use crate::units::{number, parse_time};

/// Compare the speed of volumes under the same load, in turns
///
/// The other ADDRs are compared with the first. Turns are short, so noise affects all volumes
/// alike; each round starts with another volume, and ratios are taken within a round. A difference
/// is reported only if it is statistically significant. In each row --runtime is the total time of
/// all turns of an ADDR, and --ramp-time is spent once for each. A load that writes destroys the
/// data on the volumes, without asking. ^C stops with exit code 130 and prints what was measured so
/// far.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct RaceArgs {
    /// Addresses of the volumes, such as iscsi://192.0.2.1/iqn.2026-11.org.example:disk0/0
    #[arg(value_name = "ADDR", required_unless_present = "volume")]
    pub(super) volumes: Vec<String>,

    /// Serve this volume, and compare the transports of --over to it
    ///
    /// The target and this process get a network namespace each, with a pair of virtual Ethernet
    /// interfaces between them. Lost frames are reported with the place of the loss.
    #[arg(long, value_name = "ADDR", requires = "over",
          conflicts_with_all = ["volumes", "target_pid"])]
    pub(super) volume: Option<String>,

    /// Transports to --volume; the others are compared with the first
    #[arg(
        long,
        value_name = "TRANSPORT,...",
        requires = "volume",
        value_delimiter = ','
    )]
    pub(super) over: Vec<TransportArg>,

    /// MTU between both ends of --volume, from 1280 to 65535 [default: 2500]
    #[arg(long, value_name = "BYTES", requires = "volume",
          value_parser = number(1280..=65535_u32))]
    pub(super) mtu: Option<u32>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// Time to measure each turn; a quarter of it is a warm-up before
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(super) turn: Duration,

    #[command(flatten)]
    pub(super) means: MeansArgs,
}

/// A way to reach a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum TransportArg {
    /// SCSI over TCP
    Iscsi,
    /// SCSI over Fibre Channel over Ethernet
    Fcoe,
}

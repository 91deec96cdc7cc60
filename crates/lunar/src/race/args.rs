//! The options of `lunar race` as they are typed.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::measuring::{LoadArgs, MeansArgs};
use crate::units::parse_time;

/// Put the same load on several volumes by turns, and say which is faster
///
/// The first ADDR is what the others are compared with. Turns are short, so that what else goes on
/// hits all alike, and each round begins with another one; ratios are taken within a round. What is
/// said is what chance alone would not do. Of each row --runtime is the time of all turns of an
/// ADDR, and --ramp-time is spent once for each. A load that writes destroys what is on the
/// volumes, without asking. ^C ends it with 130 and tells what was measured so far.
///
/// Addresses are those of lunar serve.
#[derive(Debug, Args)]
pub(crate) struct RaceArgs {
    /// Addresses of the volumes, such as iscsi://192.0.2.1/iqn.2026-11.org.example:disk0/0
    #[arg(value_name = "ADDR", required_unless_present = "volume")]
    pub(super) volumes: Vec<String>,

    /// Serve this volume here, and race the ways of --over to it
    ///
    /// The target gets a network namespace of its own, and this process another one, with a pair of
    /// virtual Ethernet interfaces between them. Where frames were lost is told.
    #[arg(long, value_name = "ADDR", requires = "over",
          conflicts_with_all = ["volumes", "target_pid"])]
    pub(super) volume: Option<String>,

    /// The ways to reach --volume; the first is what the others are compared with
    #[arg(
        long,
        value_name = "WAY,...",
        requires = "volume",
        value_delimiter = ','
    )]
    pub(super) over: Vec<Transport>,

    /// Bytes that a frame between both ends of --volume may carry [default: 2500]
    #[arg(long, value_name = "OCTETS", requires = "volume",
          value_parser = clap::value_parser!(u32).range(1280..=65535))]
    pub(super) mtu: Option<u32>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// How long each turn is measured; a quarter of it is run before
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(super) turn: Duration,

    #[command(flatten)]
    pub(super) means: MeansArgs,
}

/// A way to reach a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Transport {
    /// SCSI over TCP
    Iscsi,
    /// SCSI over Fibre Channel over Ethernet
    Fcoe,
}

//! The options of `lunar race` as they are typed.

use std::time::Duration;

use clap::Args;

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
    #[arg(value_name = "ADDR", required = true)]
    pub(super) volumes: Vec<String>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// How long each turn is measured; a quarter of it is run before
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_time)]
    pub(super) turn: Duration,

    #[command(flatten)]
    pub(super) means: MeansArgs,
}

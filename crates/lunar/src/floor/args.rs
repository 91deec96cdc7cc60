//! The options of `lunar floor` as they are typed.

use clap::Args;

use crate::measuring::LoadArgs;
use crate::serve::portal::Place;

/// Measure bare TCP, which no storage protocol above it can exceed
///
/// The same octets in pieces of the same length, as many under way, and data from and to random
/// places of as much memory, without iSCSI. With local, the other end is a process of this machine
/// that is started and ended with it; else it is lunar floor --listen on another one.
#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// The other end: local, or where it listens
    #[arg(value_name = "local|HOST[:PORT]", required_unless_present = "listen")]
    pub(super) place: Option<String>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// Be the other end, until ended; prints where it listens
    ///
    /// Whoever reaches it can have it move data of no meaning, in up to --size octets of memory.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "place")]
    pub(super) listen: Option<Place>,

    /// End with standard input
    #[arg(long, hide = true, requires = "listen")]
    pub(super) with_input: bool,

    /// Have the other end spin in place of sleeping
    #[arg(long)]
    pub(super) spin: bool,

    /// Print everything as JSON, with histograms and throughput over time
    #[arg(long)]
    pub(super) json: bool,
}

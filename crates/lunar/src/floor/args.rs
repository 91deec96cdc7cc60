//! The options of `lunar floor` as they are typed.

use std::fmt;
use std::str::FromStr;

use bench::floor::ether;
use clap::Args;
use engine::address::{ParseError, Portal};

use crate::measuring::LoadArgs;
use crate::serve::portal::Place;

/// Measure bare TCP or Ethernet, to compare storage protocols above it with
///
/// The same bytes in pieces of the same length, as many under way, and data from and to random
/// places of as much memory, without iSCSI. With local, the other end is a process of this machine
/// that is started and ended with it; else it is lunar floor --listen on another one.
///
/// Of fcoe://IFACE, frames as long as Fibre Channel's, first from its other end, then to it; there
/// lunar floor --listen fcoe://IFACE runs.
#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// The other end: local, or where it listens; for Ethernet, the interface that it is behind
    #[arg(
        value_name = "local|HOST[:PORT]|fcoe://IFACE",
        required_unless_present = "listen"
    )]
    pub(super) place: Option<String>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// Be the other end, until ended; prints where it listens
    ///
    /// Whoever reaches it can have it move data of no meaning, in up to --size bytes of memory, of
    /// which each connection takes 1 MiB beside its data. Any address but a loopback one needs
    /// --open.
    #[arg(long, value_name = "HOST:PORT|fcoe://IFACE", conflicts_with = "place")]
    pub(super) listen: Option<Listen>,

    /// Let everybody who reaches --listen use this floor
    #[arg(long, requires = "listen")]
    pub(super) open: bool,

    /// End with standard input
    #[arg(long, hide = true, requires = "listen")]
    pub(super) with_input: bool,

    /// Have the other end spin in place of sleeping
    #[arg(long)]
    pub(super) spin: bool,

    /// Sum each frame, and check it at its other end, as Fibre Channel does; for fcoe://IFACE
    #[arg(long, conflicts_with = "listen")]
    pub(super) crc: bool,

    /// Print everything as JSON, with histograms and throughput over time
    #[arg(long)]
    pub(super) json: bool,
}

/// Where the other end listens.
#[derive(Clone, Debug)]
pub(super) enum Listen {
    Tcp(Place),
    Ether(ether::Place),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match interface(text)? {
            Some(place) => Ok(Self::Ether(place)),
            None => tcp(text).map(Self::Tcp),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => place.fmt(f),
            Self::Ether(place) => write!(f, "{FCOE}{place}"),
        }
    }
}

/// The port of a floor where none is given; that of iSCSI is for targets.
const PORT: u16 = 4000;

/// A place for TCP, with a port. What still takes one had none.
pub(super) fn tcp(text: &str) -> Result<Place, String> {
    let with_port = format!("{text}:{PORT}").parse();
    with_port.or_else(|_| text.parse())
}

/// The Ethernet port that is meant, if one is.
pub(super) fn interface(text: &str) -> Result<Option<ether::Place>, String> {
    if !text.starts_with(FCOE) {
        return Ok(None);
    }
    match text.parse() {
        Ok(Portal::Fcoe(place)) => Ok(Some(place)),
        Ok(_) => Ok(None),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

pub(super) const FCOE: &str = "fcoe://";

//! The options of `lunar floor` as they are typed.

use std::fmt;
use std::str::FromStr;

use address::{ParseError, PortalAddress};
use bench::floor::ether;
use clap::Args;

use crate::measuring::LoadArgs;
use crate::serve::portal::ListenAddress;

/// Measure bare TCP or Ethernet, as a baseline for storage protocols
///
/// Moves the same bytes in pieces of the same size and at the same depth, from and to random places
/// in memory, but without iSCSI. With local, lunar starts the other end as a process on this
/// machine; otherwise run lunar floor --listen on another machine.
///
/// With fcoe://IFACE it measures frames of the size that Fibre Channel uses, first received, then
/// sent; run lunar floor --listen fcoe://IFACE --open at the other end.
#[derive(Debug, Args)]
pub(crate) struct FloorArgs {
    /// The other end: local, its address, or the Ethernet interface that leads to it
    #[arg(
        value_name = "local|HOST[:PORT]|fcoe://IFACE",
        required_unless_present = "listen"
    )]
    pub(super) place: Option<String>,

    #[command(flatten)]
    pub(super) load: LoadArgs,

    /// Run as the other end until stopped, and print the address
    ///
    /// Anyone who can reach it can make it move meaningless data, in up to --size bytes of memory.
    /// Each connection takes 1 MiB in addition to its data. Any address except loopback needs
    /// --open, as does an interface.
    #[arg(long, value_name = "HOST:PORT|fcoe://IFACE", conflicts_with = "place")]
    pub(super) listen: Option<FloorListen>,

    /// Let anyone who can reach --listen use this floor
    #[arg(long, requires = "listen")]
    pub(super) open: bool,

    /// End with standard input
    #[arg(long, hide = true, requires = "listen")]
    pub(super) with_input: bool,

    /// Make the other end spin instead of sleeping
    #[arg(long)]
    pub(super) spin: bool,

    /// Add a CRC to each frame and check it, as Fibre Channel does; for fcoe://IFACE
    #[arg(long, conflicts_with = "listen")]
    pub(super) crc: bool,

    /// Print JSON, with histograms and throughput over time
    #[arg(long)]
    pub(super) json: bool,
}

/// Where the other end listens.
#[derive(Clone, Debug)]
pub(super) enum FloorListen {
    Tcp(ListenAddress),
    Ether(ether::Place),
}

impl FromStr for FloorListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match interface(text)? {
            Some(place) => Ok(Self::Ether(place)),
            None => tcp(text).map(Self::Tcp),
        }
    }
}

impl fmt::Display for FloorListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(place) => place.fmt(f),
            Self::Ether(place) => write!(f, "{FCOE}{place}"),
        }
    }
}

/// The default port of a floor; the iSCSI port is left to targets.
const PORT: u16 = 4000;

/// A place for TCP, with the default port added if the text has none.
pub(super) fn tcp(text: &str) -> Result<ListenAddress, String> {
    let with_port = format!("{text}:{PORT}").parse();
    with_port.or_else(|_| text.parse())
}

/// The Ethernet port that is meant, if one is.
pub(super) fn interface(text: &str) -> Result<Option<ether::Place>, String> {
    if !text.starts_with(FCOE) {
        return Ok(None);
    }
    match text.parse() {
        Ok(PortalAddress::Fcoe(place)) => Ok(Some(place)),
        Ok(_) => Ok(None),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

pub(super) const FCOE: &str = "fcoe://";

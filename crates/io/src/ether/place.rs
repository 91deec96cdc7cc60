//! Where an Ethernet port is, as text names it: `eth0`, `xdp:eth0` or `cable:/run/x.sock`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(doc)]
use super::{CablePort, XdpPort};

/// Where a port is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A network interface, by its name.
    Interface(String),
    /// A network interface of which this port alone gets the frames, by AF_XDP; see [`XdpPort`].
    Xdp(String),
    /// One end of the cable that lies at this path; see [`CablePort`].
    Cable(PathBuf),
}

impl Place {
    /// The name of the network interface, unless it is a cable.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        match self {
            Self::Interface(name) | Self::Xdp(name) => Some(name),
            Self::Cable(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Xdp(name) => write!(f, "{XDP}{name}"),
            Self::Cable(path) => write!(f, "{CABLE}{}", path.display()),
        }
    }
}

impl FromStr for Place {
    type Err = std::convert::Infallible;

    /// `eth0`, `xdp:eth0`, or `cable:/run/x.sock`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match (text.strip_prefix(CABLE), text.strip_prefix(XDP)) {
            (Some(path), _) => Self::Cable(path.into()),
            (_, Some(name)) => Self::Xdp(name.to_owned()),
            _ => Self::Interface(text.to_owned()),
        })
    }
}

const CABLE: &str = "cable:";
const XDP: &str = "xdp:";

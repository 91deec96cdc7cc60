//! TargetAddress: where a portal is (RFC 7143 §13.8).

use std::fmt;
use std::net::Ipv6Addr;

/// A portal, as a target names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReportedPortal {
    /// A DNS name, an IPv4 or an IPv6 address; without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Portal group tag, if one was told.
    pub group: Option<u16>,
}

/// The port where none is told (RFC 7143 §13.8).
pub const PORT: u16 = 3260;

impl ReportedPortal {
    /// Reads `host[:port][,group]`; an IPv6 address stands in brackets. `None` if it is none.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let (address, group) = match value.split_once(',') {
            Some((address, group)) => (address, Some(number(group)?)),
            None => (value, None),
        };
        let (host, rest) = match address.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                (host, rest)
            }
            None => address.split_at(address.find(':').unwrap_or(address.len())),
        };
        let port = match rest.strip_prefix(':') {
            Some(port) => number(port).filter(|port| *port != 0)?,
            None if rest.is_empty() => PORT,
            None => return None,
        };
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || host.len() > MAX_HOST || !host.bytes().all(known) {
            return None;
        }
        Some(Self {
            host: host.to_owned(),
            port,
            group,
        })
    }
}

impl fmt::Display for ReportedPortal {
    /// As a TargetAddress, without the group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn number(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The longest DNS name.
const MAX_HOST: usize = 255;

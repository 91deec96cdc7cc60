//! Hosts, ports and portals.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ::io::ether::Place;

use super::ISCSI_PORT;
use super::error::{ParseError, SyntaxFault, SyntaxProblem};
use super::place;
use super::text_piece::{Parsed, TextPiece};

/// A host, by name or by number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name to be resolved.
    Name(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address, with the interface that a link-local one needs.
    V6(Ipv6Addr, Option<String>),
}

/// `HOST[:PORT]`; the port is 3260 where none is given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The TCP port; 0 lets the kernel choose one, for a listener.
    pub port: u16,
}

/// Where targets are to be found: `HOST[:PORT]`, `iscsi://HOST`, `iser://HOST` or `fcoe://IFACE`,
/// which may be `fcoe://cable:/path`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PortalAddress {
    /// An iSCSI portal over TCP.
    Iscsi(HostPort),
    /// An iSCSI portal over RDMA.
    Iser(HostPort),
    /// The ports behind an Ethernet port of ours.
    Fcoe(Place),
}

impl HostPort {
    /// Whether somebody else can connect to it, by its form.
    ///
    /// # Errors
    ///
    /// Why not, and what to give in its place.
    pub fn check_reachable(&self) -> Result<(), String> {
        let nowhere = match &self.host {
            Host::V4(ip) => ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast(),
            Host::V6(ip, _) => ip.is_unspecified() || ip.is_multicast(),
            Host::Name(_) => false,
        };
        if nowhere {
            let wrong = "is not the address of a machine: give one that initiators can reach";
            return Err(format!("{} {wrong}", self.host));
        }
        if self.port == 0 {
            return Err("port 0 cannot be connected to: give another port".to_owned());
        }
        Ok(())
    }

    pub(super) fn parse(piece: TextPiece<'_>) -> Parsed<Self> {
        if let Some(inner) = piece.strip_prefix("[") {
            return bracketed(piece, inner);
        }
        if let Some((_, rest)) = piece.split_once(':')
            && rest.text.starts_with("//")
        {
            return Err(host_fault(piece, "a portal has no scheme here", BARE_HINT));
        }
        let (host, port) = match piece.split_once(':') {
            Some((_, rest)) if rest.text.contains(':') => {
                return Err(host_fault(
                    piece,
                    "an IPv6 address stands in brackets",
                    V6_HINT,
                ));
            }
            Some((host, port)) => (host, parse_port(port)?),
            None => (piece, ISCSI_PORT),
        };
        Ok(Self {
            host: name_or_v4(host)?,
            port,
        })
    }
}

impl FromStr for HostPort {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl FromStr for PortalAddress {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        portal(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

fn portal(piece: TextPiece<'_>) -> Parsed<PortalAddress> {
    let Some((scheme, rest)) = piece.text.find("://").map(|at| piece.split_at(at)) else {
        return HostPort::parse(piece).map(PortalAddress::Iscsi);
    };
    let place = rest.split_at("://".len()).1;
    // The path of a cable has slashes.
    let cable = scheme.text == "fcoe" && place.text.starts_with("cable:");
    let behind = ['/', '?'].into_iter().find_map(|end| place.split_once(end));
    if let Some((_, behind)) = behind.filter(|_| !cable) {
        let shape = match scheme.text {
            "fcoe" => "fcoe://IFACE, without a port name",
            _ => "SCHEME://HOST, without a target",
        };
        return Err(behind.fault(SyntaxProblem::Trailing { shape }));
    }
    match scheme.text {
        "iscsi" => HostPort::parse(place).map(PortalAddress::Iscsi),
        "iser" => HostPort::parse(place).map(PortalAddress::Iser),
        "fcoe" => place::place(place).map(PortalAddress::Fcoe),
        _ => Err(host_fault(scheme, "unknown kind of portal", PORTAL_HINT)),
    }
}

fn bracketed(piece: TextPiece<'_>, inner: TextPiece<'_>) -> Parsed<HostPort> {
    let Some((inner, behind)) = inner.split_once(']') else {
        return Err(host_fault(piece, "this \"[\" is never closed", V6_HINT));
    };
    let text = inner.string()?;
    let (number, zone) = match text.split_once('%') {
        Some((number, zone)) if !zone.is_empty() => (number, Some(zone.to_owned())),
        Some(_) => {
            return Err(host_fault(
                inner,
                "an interface must follow \"%25\"",
                V6_HINT,
            ));
        }
        None => (text.as_str(), None),
    };
    let number = number
        .parse()
        .map_err(|_| host_fault(inner, "this is not an IPv6 address", V6_HINT))?;
    let port = match behind.strip_prefix(":") {
        Some(port) => parse_port(port)?,
        None if behind.is_empty() => ISCSI_PORT,
        None => {
            return Err(host_fault(
                behind,
                "\":\" and a port may follow here",
                PORT_HINT,
            ));
        }
    };
    Ok(HostPort {
        host: Host::V6(number, zone),
        port,
    })
}

fn name_or_v4(piece: TextPiece<'_>) -> Parsed<Host> {
    if piece.is_empty() {
        return Err(host_fault(piece, "a host is expected here", HOST_HINT));
    }
    if let Ok(number) = piece.text.parse() {
        return Ok(Host::V4(number));
    }
    if piece.text == "*" {
        return Err(host_fault(piece, "\"*\" is not a host", EVERY_HINT));
    }
    let label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if let Some(at) = piece.text.find(|c| !label(c)) {
        let (_, wrong) = piece.split_at(at);
        let len = wrong.text.chars().next().map_or(0, char::len_utf8);
        let (wrong, _) = wrong.split_at(len);
        return Err(host_fault(
            wrong,
            "this cannot be part of a host name",
            HOST_HINT,
        ));
    }
    if piece.text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(host_fault(piece, "this is not an IPv4 address", HOST_HINT));
    }
    let too_long = |label: &str| label.len() > LABEL_BYTES;
    if piece.text.len() > NAME_BYTES || piece.text.split('.').any(too_long) {
        return Err(host_fault(piece, "this host name is too long", LENGTH_HINT));
    }
    Ok(Host::Name(piece.text.to_owned()))
}

fn parse_port(piece: TextPiece<'_>) -> Parsed<u16> {
    let digits = piece.text.bytes().all(|c| c.is_ascii_digit());
    match piece.text.parse() {
        Ok(port) if digits => Ok(port),
        _ => Err(host_fault(piece, "a port is expected here", PORT_HINT)),
    }
}

fn host_fault(piece: TextPiece<'_>, problem: &'static str, hint: &'static str) -> SyntaxFault {
    piece.fault(SyntaxProblem::Host { problem, hint })
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(number) => write!(f, "{number}"),
            Self::V6(number, None) => write!(f, "[{number}]"),
            Self::V6(number, Some(zone)) => {
                write!(
                    f,
                    "[{number}%25{}]",
                    super::write::Escaped(zone.as_bytes(), b"[]/@")
                )
            }
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for PortalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iscsi(place) => write!(f, "iscsi://{place}"),
            Self::Iser(place) => write!(f, "iser://{place}"),
            Self::Fcoe(place) => write!(f, "fcoe://{}", place::PlaceText(place)),
        }
    }
}

/// What the domain name system has room for (RFC 1035 §2.3.4), as text.
const NAME_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

const BARE_HINT: &str = "write HOST:PORT alone, as in 192.0.2.1:3260";
const EVERY_HINT: &str = "write 0.0.0.0 or [::] for every address";
const LENGTH_HINT: &str = "write up to 253 characters, and up to 63 between two dots";
const HOST_HINT: &str = "write a name, an IPv4 address, or an IPv6 address in brackets";
const V6_HINT: &str = "write for example [2001:db8::1]:3260 or [fe80::1%25eth0]:3260";
const PORT_HINT: &str = "write a number from 0 to 65535, as in 192.0.2.1:3260";
const PORTAL_HINT: &str = "write HOST[:PORT], iscsi://HOST, iser://HOST or fcoe://IFACE";

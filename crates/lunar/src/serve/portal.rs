//! Portals as they are typed: `HOST[:PORT]`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The registered port of iSCSI (RFC 7143 §15).
const PORT: u16 = 3260;

const FORM: &str = "a portal is HOST:PORT, with an IPv6 address in brackets: [::1]:3260";

/// Where to listen: every address that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Portal(Vec<SocketAddr>);

impl Portal {
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.iter().copied()
    }
}

impl FromStr for Portal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split(text)?;
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(Self(vec![SocketAddr::new(address, port)]));
        }
        let found = (host, port)
            .to_socket_addrs()
            .map_err(|cause| format!("{host} cannot be resolved ({cause}): give an address"))?;
        let mut addresses: Vec<_> = found.collect();
        addresses.sort();
        addresses.dedup();
        Ok(Self(addresses))
    }
}

/// A portal for SendTargets, where the initiator does the resolving (RFC 7143 §13.8): checked for
/// its form, with the port filled in.
pub(crate) fn advertised(text: &str) -> Result<String, String> {
    match split(text)? {
        (_, 0) => Err("port 0 is nowhere to connect to".to_owned()),
        (host, port) if host.contains(':') => Ok(format!("[{host}]:{port}")),
        (host, port) => Ok(format!("{host}:{port}")),
    }
}

fn split(text: &str) -> Result<(&str, u16), String> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, port) = rest.split_once(']').ok_or(FORM)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| FORM)?;
        return match port.strip_prefix(':') {
            Some(port) => Ok((host, parse_port(port)?)),
            None if port.is_empty() => Ok((host, PORT)),
            None => Err(FORM.to_owned()),
        };
    }
    match text.split_once(':') {
        // An IPv6 address without brackets could end in a port or in a group: only without port.
        Some((_, rest)) if rest.contains(':') => match text.parse::<IpAddr>() {
            Ok(_) => Ok((text, PORT)),
            Err(_) => Err(FORM.to_owned()),
        },
        Some(("", _)) => Err(FORM.to_owned()),
        Some((host, port)) => Ok((host, parse_port(port)?)),
        None if text.is_empty() => Err(FORM.to_owned()),
        None => Ok((text, PORT)),
    }
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no port: a number from 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Result<Vec<String>, String> {
        let portal: Portal = text.parse()?;
        Ok(portal
            .addresses()
            .map(|address| address.to_string())
            .collect())
    }

    #[test]
    fn addresses_of_both_families() {
        let forms = [
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("192.0.2.1", "192.0.2.1:3260"),
            ("[::1]:860", "[::1]:860"),
            ("[::1]", "[::1]:3260"),
            ("::", "[::]:3260"),
            ("2001:db8::1", "[2001:db8::1]:3260"),
        ];
        for (text, address) in forms {
            assert_eq!(listen(text), Ok(vec![address.to_owned()]), "{text}");
        }
    }

    #[test]
    fn a_name_stands_for_its_addresses() {
        let addresses = listen("localhost:3261").unwrap();
        assert!(!addresses.is_empty());
        assert!(addresses.iter().all(|address| address.ends_with(":3261")));
    }

    #[test]
    fn what_is_no_portal_is_refused() {
        for text in [
            "",
            ":3260",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:65536",
            "[::1",
            "[x]:1",
        ] {
            assert!(listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn advertised_portals_are_left_unresolved() {
        assert_eq!(advertised("san.example"), Ok("san.example:3260".to_owned()));
        assert_eq!(
            advertised("[2001:db8::1]:1"),
            Ok("[2001:db8::1]:1".to_owned())
        );
        assert!(advertised("san.example:0").is_err());
    }
}

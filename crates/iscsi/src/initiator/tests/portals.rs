//! Portals as targets write them.

use crate::initiator::portal::ReportedPortal;

#[test]
fn addresses_of_portals() {
    let portal = |host: &str, port, group| {
        Some(ReportedPortal {
            host: host.into(),
            port,
            group,
        })
    };
    let stories = [
        ("host", portal("host", 3260, None)),
        ("host:860", portal("host", 860, None)),
        ("192.0.2.1:3260,1", portal("192.0.2.1", 3260, Some(1))),
        ("[2001:db8::1]", portal("2001:db8::1", 3260, None)),
        (
            "[2001:db8::1]:860,65535",
            portal("2001:db8::1", 860, Some(65_535)),
        ),
        ("host,65536", None),
        ("host:+1", None),
        ("[host]:1", None),
        ("[::1]x", None),
        ("a:b:c", None),
    ];
    for (text, expected) in stories {
        assert_eq!(ReportedPortal::parse(text), expected, "{text}");
        if let Some(portal) = expected {
            let again = ReportedPortal::parse(&portal.to_string()).unwrap();
            assert_eq!((again.host, again.port), (portal.host, portal.port));
        }
    }
}

//! Parts in any order, against a map of single bytes.

use proptest::prelude::*;

use crate::initiator::portal::ReportedPortal;
use crate::initiator::received_spans::{ReceivedSpans, SpanError};

proptest! {
    #[test]
    fn as_a_map_of_bytes_has_it(parts in prop::collection::vec((0u32..64, 0u32..12), 0..40)) {
        let mut spans = ReceivedSpans::default();
        let mut map = [false; 80];
        for (start, len) in parts {
            let range = start as usize..(start + len) as usize;
            let free = map[range.clone()].iter().all(|taken| !taken);
            prop_assert_eq!(spans.add(start, len).is_ok(), free);
            if free {
                map[range].fill(true);
            }
        }
    }
}

#[test]
fn parts_that_do_not_touch_are_bounded() {
    let mut spans = ReceivedSpans::default();
    for at in 0..64 {
        assert_eq!(spans.add(at * 2, 1), Ok(()));
    }
    assert_eq!(spans.add(1000, 1), Err(SpanError::Scattered));
    assert_eq!(spans.add(1, 1), Ok(()), "what joins two is welcome");
    assert_eq!(spans.add(1000, 1), Ok(()));
    assert_eq!(spans.add(u32::MAX - 1, 1), Err(SpanError::Scattered));
}

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

//! By which portal group a connection comes.

use super::{PortalGroup, TargetNode};
use crate::target::NodeAccess;

fn group(tag: u16, portals: &[&str]) -> PortalGroup {
    PortalGroup {
        tag,
        port: tag,
        portals: portals.iter().map(|one| one.parse().unwrap()).collect(),
    }
}

fn tag(groups: &[PortalGroup], local: &str) -> Option<u16> {
    let node = TargetNode {
        portal_groups: groups.into(),
        ..TargetNode::new("iqn.2026-11.org.lunar:a".into(), NodeAccess::default())
    };
    let group = node.portal_group_at(local.parse().unwrap());
    group.map(|group| group.tag)
}

#[test]
fn a_connection_comes_by_the_group_that_has_its_portal() {
    let groups = [
        group(1, &["10.0.0.1:3260", "10.0.0.2:3260"]),
        group(6, &["0.0.0.0:3261", "[fe80::1%3]:3260"]),
        group(7, &["[::]:3262"]),
    ];
    for (local, expected) in [
        ("10.0.0.2:3260", Some(1)),
        ("[::ffff:10.0.0.1]:3260", Some(1)),
        ("10.0.0.2:3261", Some(6)),
        ("[fe80::1%4]:3260", Some(6)),
        ("[2001:db8::1]:3261", None),
        ("10.0.0.9:3262", Some(7)),
        ("10.0.0.3:3260", None),
    ] {
        assert_eq!(tag(&groups, local), expected, "{local}");
    }
    assert_eq!(tag(&[PortalGroup::everywhere()], "10.0.0.3:3260"), Some(1));
}

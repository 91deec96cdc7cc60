//! Logins to nodes that are not reached at every portal.

use super::*;
use crate::target::PortalGroup;

/// Node `a` has portal group 6 where the initiator comes to, and 7 elsewhere; `b` is elsewhere.
fn portals() -> Arc<TargetConfig> {
    let group = |tag, portal: &str| PortalGroup {
        tag,
        port: tag,
        portals: vec![portal.parse().unwrap()],
    };
    let at = |letter, groups: Vec<PortalGroup>| {
        Arc::new(TargetNode {
            portal_groups: groups.into(),
            ..TargetNode::clone(&node(letter, NodeAccess::default()))
        })
    };
    let (here, elsewhere) = (group(6, "10.9.0.1:3260"), group(7, "10.9.0.1:3261"));
    config(vec![
        at('a', vec![elsewhere.clone(), here]),
        at('b', vec![elsewhere]),
    ])
}

#[test]
fn a_session_is_with_the_portal_group_that_it_came_by() {
    let mut peer = Peer::new(&portals());
    peer.send("O>F", &format!("{INITIATOR} {TARGET}"));
    let (_, _, scope) = peer.asks();
    assert_eq!(
        scope,
        SessionScope::Node("iqn.2026-11.org.lunar:a".into(), 6)
    );
    let (response, parameters) = peer.admitted(1);
    assert!(
        response.starts_with("O>F: TargetPortalGroupTag=6"),
        "{response}"
    );
    assert_eq!(parameters.target_port(), Some(6));
}

#[test]
fn a_target_is_not_found_at_a_portal_of_others() {
    for kind in ["Normal", "Discovery"] {
        let mut peer = Peer::new(&portals());
        let text = format!("{INITIATOR} TargetName=iqn.2026-11.org.lunar:b SessionType={kind}");
        peer.exchange("O>F", &text, "reject 0203");
        peer.breaks("an unknown target");
    }
}

#[test]
fn a_discovery_at_any_portal_knows_all_targets() {
    let mut peer = Peer::new(&portals());
    peer.send("O>F", &format!("{INITIATOR} SessionType=Discovery"));
    peer.asks();
    assert_eq!(peer.discovers().len(), 2);
}

use super::*;

fn port(isid: u8) -> InitiatorPort {
    InitiatorPort {
        name: "iqn.2026-01.test:ini".into(),
        isid: [0, 0, 0, 0, 0, isid],
    }
}

fn target(letter: char) -> Scope {
    Scope::Node(format!("iqn.2026-11.org.lunar:{letter}"))
}

fn portal(address: &str) -> Scope {
    Scope::Portal(address.parse().unwrap())
}

#[test]
fn a_new_isid_gets_a_new_session() {
    let mut registry = Registry::new(10);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(1)
    );
    assert_eq!(
        registry.decide(&port(2), &target('a'), 0),
        Decision::Admit(2)
    );
    assert_eq!(
        registry.decide(&port(1), &target('b'), 0),
        Decision::Admit(3),
        "ISIDs are reused"
    );
    let other = InitiatorPort {
        name: "iqn.2026-01.test:other".into(),
        ..port(1)
    };
    assert_eq!(registry.decide(&other, &target('a'), 0), Decision::Admit(4));
    assert_eq!(registry.len(), 4);
}

#[test]
fn an_old_isid_reinstates_its_session_when_that_has_ended() {
    let mut registry = Registry::new(1);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(1)
    );
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Reinstate(1)
    );
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Reinstate(1),
        "still there"
    );
    registry.ended(1);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(2)
    );
    assert_eq!(registry.len(), 1, "the limit counts it once");
}

#[test]
fn of_two_that_wait_for_the_same_session_the_second_reinstates_the_first() {
    let mut registry = Registry::new(10);
    registry.decide(&port(1), &target('a'), 0);
    registry.ended(1);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(2)
    );
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Reinstate(2)
    );
}

#[test]
fn a_handle_names_a_session_only_with_its_initiator_and_target() {
    let mut registry = Registry::new(10);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(1)
    );
    let refused = |status| Decision::Refuse(status);
    assert_eq!(
        registry.decide(&port(1), &target('a'), 1),
        refused(TOO_MANY_CONNECTIONS)
    );
    assert_eq!(
        registry.decide(&port(1), &target('a'), 2),
        refused(SESSION_DOES_NOT_EXIST)
    );
    assert_eq!(
        registry.decide(&port(2), &target('a'), 1),
        refused(SESSION_DOES_NOT_EXIST)
    );
    assert_eq!(
        registry.decide(&port(1), &target('b'), 1),
        refused(SESSION_DOES_NOT_EXIST)
    );
    assert_eq!(registry.len(), 1);
}

/// RFC 7143 §7.4.2: discovery sessions without a target are told apart by portal.
#[test]
fn unnamed_discoveries_reinstate_each_other_at_one_portal() {
    let mut registry = Registry::new(10);
    let (one, two) = (portal("10.9.0.1:3260"), portal("10.9.0.1:3261"));
    assert_eq!(registry.decide(&port(1), &one, 0), Decision::Admit(1));
    assert_eq!(registry.decide(&port(1), &two, 0), Decision::Admit(2));
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(3)
    );
    assert_eq!(registry.decide(&port(1), &one, 0), Decision::Reinstate(1));
}

#[test]
fn there_is_a_limit() {
    let mut registry = Registry::new(2);
    registry.decide(&port(1), &target('a'), 0);
    registry.decide(&port(2), &target('a'), 0);
    assert_eq!(
        registry.decide(&port(3), &target('a'), 0),
        Decision::Refuse(OUT_OF_RESOURCES)
    );
    registry.ended(1);
    assert_eq!(
        registry.decide(&port(3), &target('a'), 0),
        Decision::Admit(3)
    );
    registry.ended(77);
    assert_eq!(registry.len(), 2);
}

#[test]
fn handles_are_never_0_and_not_used_again_soon() {
    let mut registry = Registry::new(usize::MAX);
    assert_eq!(
        registry.decide(&port(0), &target('a'), 0),
        Decision::Admit(1)
    );
    for expected in 2..=u16::MAX {
        let decision = registry.decide(&port(1), &target('a'), 0);
        assert_eq!(decision, Decision::Admit(expected));
        registry.ended(expected);
    }
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Admit(2),
        "1 is in use"
    );
}

#[test]
fn a_closed_registry_admits_nobody() {
    let mut registry = Registry::new(10);
    registry.decide(&port(1), &target('a'), 0);
    registry.close();
    assert_eq!(
        registry.decide(&port(1), &target('a'), 0),
        Decision::Refuse(SERVICE_UNAVAILABLE)
    );
    assert_eq!(
        registry.decide(&port(2), &target('a'), 0),
        Decision::Refuse(SERVICE_UNAVAILABLE)
    );
    assert_eq!(registry.sessions().count(), 1);
    registry.ended(1);
    assert!(registry.is_empty());
}

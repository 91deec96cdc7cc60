use super::AdmissionDecision::{Admit, Refuse, Reinstate};
use super::*;

fn wish(port: &InitiatorPort, scope: &SessionScope, tsih: u16) -> AdmissionWish {
    AdmissionWish {
        initiator: port.clone(),
        scope: scope.clone(),
        local: ([192, 0, 2, 1], 3260).into(),
        user: None,
        tsih,
        cid: 0,
        most: None,
    }
}

fn decide(
    registry: &mut Registry,
    port: &InitiatorPort,
    scope: &SessionScope,
    tsih: u16,
) -> AdmissionDecision {
    registry.decide(&wish(port, scope, tsih))
}

impl Registry {
    /// What is decided of the initiator port with this ISID.
    #[track_caller]
    fn decides(&mut self, isid: u8, scope: &SessionScope, tsih: u16, expected: AdmissionDecision) {
        assert_eq!(decide(self, &port(isid), scope, tsih), expected);
    }
}

fn port(isid: u8) -> InitiatorPort {
    InitiatorPort {
        name: "iqn.2026-01.test:ini".into(),
        isid: [0, 0, 0, 0, 0, isid],
    }
}

fn target(letter: char) -> SessionScope {
    SessionScope::Node(format!("iqn.2026-11.org.lunar:{letter}"), 1)
}

fn portal(address: &str) -> SessionScope {
    SessionScope::Portal(address.parse().unwrap())
}

#[test]
fn a_new_isid_gets_a_new_session() {
    let mut registry = Registry::new(10);
    registry.decides(1, &target('a'), 0, Admit(1));
    registry.decides(2, &target('a'), 0, Admit(2));
    assert_eq!(
        decide(&mut registry, &port(1), &target('b'), 0),
        Admit(3),
        "ISIDs are reused"
    );
    let other = InitiatorPort {
        name: "iqn.2026-01.test:other".into(),
        ..port(1)
    };
    assert_eq!(decide(&mut registry, &other, &target('a'), 0), Admit(4));
    assert_eq!(registry.len(), 4);
}

#[test]
fn an_old_isid_reinstates_its_session_when_that_has_ended() {
    let mut registry = Registry::new(1);
    registry.decides(1, &target('a'), 0, Admit(1));
    registry.decides(1, &target('a'), 0, Reinstate(1));
    assert_eq!(
        decide(&mut registry, &port(1), &target('a'), 0),
        Reinstate(1),
        "still there"
    );
    registry.ended(1);
    registry.decides(1, &target('a'), 0, Admit(2));
    assert_eq!(registry.len(), 1, "the limit counts it once");
}

#[test]
fn of_two_that_wait_for_the_same_session_the_second_reinstates_the_first() {
    let mut registry = Registry::new(10);
    decide(&mut registry, &port(1), &target('a'), 0);
    registry.ended(1);
    registry.decides(1, &target('a'), 0, Admit(2));
    registry.decides(1, &target('a'), 0, Reinstate(2));
}

#[test]
fn a_handle_names_a_session_only_with_its_initiator_and_target() {
    let mut registry = Registry::new(10);
    registry.decides(1, &target('a'), 0, Admit(1));
    registry.decides(1, &target('a'), 1, Refuse(TOO_MANY_CONNECTIONS));
    registry.decides(1, &target('a'), 2, Refuse(SESSION_DOES_NOT_EXIST));
    registry.decides(2, &target('a'), 1, Refuse(SESSION_DOES_NOT_EXIST));
    registry.decides(1, &target('b'), 1, Refuse(SESSION_DOES_NOT_EXIST));
    assert_eq!(registry.len(), 1);
}

/// RFC 7143 §7.4.2: discovery sessions without a target are told apart by portal.
#[test]
fn unnamed_discoveries_reinstate_each_other_at_one_portal() {
    let mut registry = Registry::new(10);
    let (one, two) = (portal("10.9.0.1:3260"), portal("10.9.0.1:3261"));
    registry.decides(1, &one, 0, Admit(1));
    registry.decides(1, &two, 0, Admit(2));
    registry.decides(1, &target('a'), 0, Admit(3));
    registry.decides(1, &one, 0, Reinstate(1));
}

#[test]
fn there_is_a_limit() {
    let mut registry = Registry::new(2);
    decide(&mut registry, &port(1), &target('a'), 0);
    decide(&mut registry, &port(2), &target('a'), 0);
    registry.decides(3, &target('a'), 0, Refuse(OUT_OF_RESOURCES));
    registry.ended(1);
    registry.decides(3, &target('a'), 0, Admit(3));
    registry.ended(77);
    assert_eq!(registry.len(), 2);
}

#[test]
fn handles_are_never_0_and_not_used_again_soon() {
    let mut registry = Registry::new(usize::MAX);
    registry.decides(0, &target('a'), 0, Admit(1));
    for expected in 2..=u16::MAX {
        let decision = decide(&mut registry, &port(1), &target('a'), 0);
        assert_eq!(decision, Admit(expected));
        registry.ended(expected);
    }
    assert_eq!(
        decide(&mut registry, &port(1), &target('a'), 0),
        Admit(2),
        "1 is in use"
    );
}

#[test]
fn a_closed_registry_admits_nobody() {
    let mut registry = Registry::new(10);
    decide(&mut registry, &port(1), &target('a'), 0);
    registry.close();
    registry.decides(1, &target('a'), 0, Refuse(SERVICE_UNAVAILABLE));
    registry.decides(2, &target('a'), 0, Refuse(SERVICE_UNAVAILABLE));
    assert_eq!(registry.sessions_that(|_, _| true).count(), 1);
    registry.ended(1);
    assert!(registry.is_empty());
}

/// RFC 7143 §9.2: a name is a claim, and another user's nexus is not for the taking.
#[test]
fn a_session_is_reinstated_by_its_own_user_alone() {
    let mut registry = Registry::new(10);
    let login = |user: Option<&str>| AdmissionWish {
        user: user.map(str::to_owned),
        ..wish(&port(1), &target('a'), 0)
    };
    assert_eq!(registry.decide(&login(Some("a"))), Admit(1));
    let refused = Refuse(AUTHORIZATION_FAILURE);
    assert_eq!(registry.decide(&login(Some("b"))), refused);
    assert_eq!(registry.decide(&login(None)), refused);
    assert_eq!(registry.decide(&login(Some("a"))), Reinstate(1));
    registry.ended(1);
    assert_eq!(registry.decide(&login(None)), Admit(2));
    let proven = Reinstate(2);
    assert_eq!(
        registry.decide(&login(Some("a"))),
        proven,
        "who proved nothing holds nothing"
    );
}

#[test]
fn a_node_has_no_more_sessions_than_it_may() {
    let mut registry = Registry::new(10);
    let login = |isid: u8, letter: char, tag: u16| AdmissionWish {
        scope: SessionScope::Node(format!("iqn.2026-11.org.lunar:{letter}"), tag),
        most: (letter == 'a').then_some(2),
        ..wish(&port(isid), &target(letter), 0)
    };
    assert_eq!(registry.decide(&login(1, 'a', 1)), Admit(1));
    assert_eq!(
        registry.decide(&login(1, 'a', 2)),
        Admit(2),
        "another portal group"
    );
    assert_eq!(registry.decide(&login(2, 'a', 1)), Refuse(OUT_OF_RESOURCES));
    assert_eq!(registry.decide(&login(2, 'b', 1)), Admit(3), "another node");
    assert_eq!(
        registry.decide(&login(1, 'a', 1)),
        Reinstate(1),
        "its own place"
    );
    registry.ended(1);
    assert_eq!(registry.decide(&login(2, 'a', 1)), Admit(4));
}

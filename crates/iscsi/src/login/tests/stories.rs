//! How texts and logins go over several PDUs, byte by byte, and out of time.

use super::*;
use crate::connection;

#[test]
fn a_text_in_several_requests() {
    let mut peer = Peer::default();
    peer.exchange("O C", "InitiatorName=iqn.20", "O:");
    peer.exchange("O C", "", "O:");
    peer.exchange("O C", "26-01.test:ini Target", "O:");
    peer.send("O>F", "Name=iqn.2026-11.org.lunar:a InitialR2T=No");
    peer.asks();
    let (response, parameters) = peer.admitted(1);
    assert_eq!(
        response, "O>F: TargetPortalGroupTag=1 MaxRecvDataSegmentLength=262144 InitialR2T=No",
        "TargetPortalGroupTag comes with the first response that may carry it"
    );
    assert_eq!(parameters.stat_sn, 1004);
}

#[test]
fn an_answer_in_several_responses() {
    let mut peer = Peer::default();
    let keys: String = (0..700).map(|n| format!(" X-a{n}=1")).collect();
    peer.send(
        "O>F",
        &format!("{INITIATOR} {TARGET}{}", &keys[..keys.len()]),
    );
    let mut text = peer.recv();
    assert!(
        text.starts_with("O C: X-a0=NotUnderstood "),
        "no transit while more follows"
    );
    assert!(peer.event().is_none());
    peer.exchange_more(&mut text);
    peer.asks();
    let (last, _) = peer.admitted(1);
    text += last.strip_prefix("O>F: ").unwrap();
    let answered = text.replace("O C: ", "").matches("=NotUnderstood").count();
    assert!(
        (699..=700).contains(&answered),
        "{answered}: one may be cut in two"
    );
    assert!(text.ends_with("MaxRecvDataSegmentLength=262144"));
}

/// Found by fuzzing.
#[test]
fn a_decision_that_nobody_asked_for_changes_nothing() {
    let mut peer = Peer::default();
    peer.login.admit(1);
    peer.login.refuse(0x0302);
    peer.asks_at_once();
    peer.admitted(1);
    peer.login.admit(2);
    peer.login.refuse(0x0302);
    let tsih = peer.login.outcome().map(|parameters| parameters.tsih);
    assert_eq!(tsih, Some(1));
}

impl Peer {
    /// Asks for the rest of an answer until the login is over.
    fn exchange_more(&mut self, text: &mut String) {
        for _ in 0..4 {
            self.send("O>F", "");
            let part = self.recv();
            if part.is_empty() {
                return;
            }
            text.push_str(part.strip_prefix("O C: ").unwrap());
        }
        panic!("no end");
    }
}

#[test]
fn an_answer_in_several_responses_takes_no_text_meanwhile() {
    let mut peer = Peer::default();
    let keys: String = (0..700).map(|n| format!(" X-a{n}=1")).collect();
    peer.send("O>F", &format!("{INITIATOR} {TARGET}{keys}"));
    peer.recv();
    peer.exchange("O>F", "InitialR2T=No", "reject 0200");
    peer.breaks("text in response to a C bit");
}

#[test]
fn a_login_byte_by_byte() {
    let mut peer = Peer::default();
    let first = peer.request("S>O", &format!("{INITIATOR} {TARGET} AuthMethod=None"));
    for byte in &first {
        assert_eq!(peer.recv(), "");
        peer.send_bytes(std::slice::from_ref(byte));
    }
    assert_eq!(peer.recv(), "S>O: TargetPortalGroupTag=1 AuthMethod=None");
    let second = peer.request("O>F", "InitialR2T=No ImmediateData=Yes");
    for byte in &second {
        assert!(peer.event().is_none());
        peer.send_bytes(std::slice::from_ref(byte));
    }
    peer.asks();
}

#[test]
fn a_login_split_at_every_byte() {
    let request = Peer::default().request("O>F", &format!("{INITIATOR} {TARGET}"));
    for at in 0..=request.len() {
        let mut peer = Peer::default();
        peer.send_bytes(&request[..at]);
        peer.send_bytes(&request[at..]);
        peer.asks();
    }
}

#[test]
fn what_follows_the_last_request_is_left_for_the_session() {
    let mut peer = Peer::default();
    let mut bytes = peer.request("O>F", &format!("{INITIATOR} {TARGET}"));
    let request = bytes.len();
    bytes.extend_from_slice(&[0; 100]);
    assert_eq!(peer.login.receive(Duration::ZERO, &bytes), request);
    assert_eq!(peer.login.receive(Duration::ZERO, &bytes[request..]), 0);
    peer.asks();
    peer.admitted(1);
    assert_eq!(peer.login.receive(Duration::ZERO, &bytes[request..]), 0);
}

#[test]
fn a_login_has_a_deadline() {
    let limit = Duration::from_secs(15);
    let mut peer = Peer::default();
    assert_eq!(peer.login.next_deadline(), Some(limit));
    peer.login.timeout(limit - Duration::from_nanos(1));
    assert!(peer.event().is_none());
    peer.login.timeout(limit);
    peer.breaks("a login that took too long");
    peer.login.timeout(limit);
    assert!(peer.event().is_none(), "told once");

    let mut peer = Peer::default();
    peer.asks_at_once();
    peer.login.timeout(limit);
    peer.breaks("the old session did not end in time");
    peer.login.admit(1);
    assert!(peer.event().is_none(), "too late");
    assert!(peer.login.into_session(limit).is_none());
}

#[test]
fn a_session_can_be_refused() {
    for (status, rule) in [
        (status::OUT_OF_RESOURCES, "no room for another session"),
        (status::SERVICE_UNAVAILABLE, "a login during shutdown"),
        (status::SESSION_DOES_NOT_EXIST, "an unknown session"),
        (
            status::TOO_MANY_CONNECTIONS,
            "a second connection in one session",
        ),
    ] {
        let mut peer = Peer::default();
        peer.asks_at_once();
        peer.login.refuse(status);
        assert_eq!(peer.recv(), format!("reject {status:04x}"));
        peer.breaks(rule);
    }
}

#[test]
fn a_login_that_failed_takes_nothing_more() {
    let mut peer = Peer::default();
    peer.exchange("O>F", INITIATOR, "reject 0207");
    peer.closes();
    peer.send("O>F", &format!("{INITIATOR} {TARGET}"));
    assert_eq!(peer.recv(), "");
    assert!(peer.event().is_none());
    peer.login.admit(1);
    peer.login.refuse(0x0300);
    assert!(peer.event().is_none());
}

/// Where the connection of a login stands.
fn stands(peer: &Peer) -> connection::ConnectionState {
    match peer.login.state {
        LoginState::Waiting => connection::ConnectionState::TransportUp,
        LoginState::Negotiating(..) | LoginState::Asking(_) => connection::ConnectionState::InLogin,
        LoginState::Done(_) => connection::ConnectionState::LoggedIn,
        LoginState::Closed => connection::ConnectionState::Free,
    }
}

/// RFC 7143 §8.1: each step of a login is a transition of its connection, and no other.
#[test]
fn a_connection_goes_through_the_states_of_the_rfc() {
    use crate::connection::{ConnectionEvent as Happens, ConnectionState as Stands};
    let mut expected = Stands::Free.on(Happens::Accepted).unwrap().to;
    let mut goes = |peer: &Peer, event| {
        expected = expected.on(event).unwrap().to;
        assert_eq!(stands(peer), expected, "{event:?}");
    };
    let mut peer = Peer::default();
    assert_eq!(stands(&peer), Stands::TransportUp);
    peer.passes_security();
    goes(&peer, Happens::LoginBegan);
    peer.send("O>F", "");
    peer.asks();
    peer.admitted(1);
    goes(&peer, Happens::LoginSucceeded);

    let mut peer = Peer::default();
    peer.exchange("O>F", INITIATOR, "reject 0207");
    assert_eq!(
        Stands::InLogin.on(Happens::LoginFailed).unwrap().to,
        stands(&peer)
    );
}

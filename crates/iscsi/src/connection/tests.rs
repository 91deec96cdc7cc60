use std::fmt::Write;

use super::*;

const STATES: [(u8, ConnectionState); 7] = [
    (1, ConnectionState::Free),
    (3, ConnectionState::TransportUp),
    (4, ConnectionState::InLogin),
    (5, ConnectionState::LoggedIn),
    (6, ConnectionState::InLogout),
    (7, ConnectionState::LogoutRequested),
    (8, ConnectionState::CleanupWait),
];

const EVENTS: [ConnectionEvent; 15] = [
    ConnectionEvent::Accepted,
    ConnectionEvent::LoginBegan,
    ConnectionEvent::LoginSucceeded,
    ConnectionEvent::LoginFailed,
    ConnectionEvent::LoginTimedOut,
    ConnectionEvent::TransportLost,
    ConnectionEvent::LogoutReceived,
    ConnectionEvent::LogoutSucceeded,
    ConnectionEvent::LogoutFailed,
    ConnectionEvent::LogoutAsked,
    ConnectionEvent::SessionClosed,
    ConnectionEvent::Reinstated,
    ConnectionEvent::ReinstatementFailed,
    ConnectionEvent::Dropped,
    ConnectionEvent::CleanedUp,
];

/// Reviewed against RFC 7143 §8.1.4.
#[test]
fn every_state_and_every_event() {
    let mut table = String::new();
    for (number, state) in STATES {
        writeln!(table, "S{number} {state:?}").unwrap();
        for event in EVENTS {
            if let Some(transition) = state.on(event) {
                let to = STATES
                    .iter()
                    .find(|entry| entry.1 == transition.to)
                    .unwrap()
                    .0;
                writeln!(table, "  {event:?}: T{} -> S{to}", transition.number).unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

/// The table of RFC 7143 §8.1.4, copied cell by cell: from, to, number.
#[test]
fn the_transitions_are_those_of_the_rfc() {
    let cells = [
        (1, 3, 3),
        (3, 1, 6),
        (3, 4, 4),
        (4, 1, 7),
        (4, 5, 5),
        (5, 1, 8),
        (5, 6, 9),
        (5, 7, 11),
        (5, 8, 15),
        (6, 1, 13),
        (6, 8, 17),
        (7, 1, 18),
        (7, 6, 10),
        (7, 7, 12),
        (7, 8, 16),
    ];
    let number = |state| STATES.iter().find(|entry| entry.1 == state).unwrap().0;
    let mut ours: Vec<_> = TABLE
        .iter()
        .map(|row| (number(row.0), number(row.2), row.1))
        .collect();
    ours.sort_unstable();
    assert_eq!(ours, cells);
}

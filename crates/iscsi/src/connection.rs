//! The standard connection states of RFC 7143 §8.1, as a target sees them. States and transitions
//! have the RFC's names and numbers; T1, T2 and T14 do not exist at a target.
//!
//! A [`crate::login::Login`] is a connection in S3 and S4, a [`crate::session::Session`] one in S5
//! to S7. S8 waits for tasks to be taken up by another connection, which there is none at
//! ErrorRecoveryLevel 0: a connection that comes there is cleaned up at once. Logins and sessions
//! keep less than this table tells; it is what their tests hold them to.

mod tests;

/// RFC 7143 §8.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionState {
    /// S1, FREE.
    Free,
    /// S3, XPT_UP: connected, and no Login Request has come.
    TransportUp,
    /// S4, IN_LOGIN.
    InLogin,
    /// S5, LOGGED_IN.
    LoggedIn,
    /// S6, IN_LOGOUT.
    InLogout,
    /// S7, LOGOUT_REQUESTED: the initiator was asked to log out.
    LogoutRequested,
    /// S8, CLEANUP_WAIT.
    CleanupWait,
}

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionEvent {
    /// A transport connection was accepted.
    Accepted,
    /// The first Login Request came.
    LoginBegan,
    /// The final Login Response with Status-Class 0 is sent.
    LoginSucceeded,
    /// A Login Response with another Status-Class is sent.
    LoginFailed,
    /// The login took too long.
    LoginTimedOut,
    /// The transport was disconnected, reset, or timed out.
    TransportLost,
    /// A Logout Request came.
    LogoutReceived,
    /// The logout is done, and its response sent.
    LogoutSucceeded,
    /// The logout could not be done, and its response sent.
    LogoutFailed,
    /// The initiator was asked to log out by an Asynchronous Message.
    LogoutAsked,
    /// The session was closed through another connection.
    SessionClosed,
    /// Another login took the place of the connection or its session.
    Reinstated,
    /// A login that should have taken its place failed.
    ReinstatementFailed,
    /// We drop the connection, and say so by an Asynchronous Message.
    Dropped,
    /// The tasks of a lost connection are gone (RFC 7143 §8.2, M1 and M4).
    CleanedUp,
}

/// A transition and where it leads: the number is the RFC's, or 0 for the end of a cleanup, which
/// §8.2 draws in a diagram of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Transition {
    /// *n* of T*n*.
    pub(crate) number: u8,
    /// The next state.
    pub(crate) to: ConnectionState,
}

/// §8.1.2 and §8.1.4: state, number, next state, and what causes it.
const TABLE: [(ConnectionState, u8, ConnectionState, &[ConnectionEvent]); 15] = {
    use ConnectionEvent::{
        Accepted, Dropped, LoginBegan, LoginFailed, LoginSucceeded, LoginTimedOut, LogoutAsked,
        LogoutFailed, LogoutReceived, LogoutSucceeded, Reinstated, ReinstatementFailed,
        SessionClosed, TransportLost,
    };
    use ConnectionState::{
        CleanupWait, Free, InLogin, InLogout, LoggedIn, LogoutRequested, TransportUp,
    };
    const LOST: &[ConnectionEvent] = &[TransportLost, ReinstatementFailed, Dropped];
    [
        (Free, 3, TransportUp, &[Accepted]),
        (TransportUp, 4, InLogin, &[LoginBegan]),
        (TransportUp, 6, Free, &[LoginTimedOut, TransportLost]),
        (InLogin, 5, LoggedIn, &[LoginSucceeded]),
        (
            InLogin,
            7,
            Free,
            &[LoginFailed, LoginTimedOut, TransportLost, SessionClosed],
        ),
        (LoggedIn, 8, Free, &[SessionClosed, Reinstated]),
        (LoggedIn, 9, InLogout, &[LogoutReceived]),
        (LoggedIn, 11, LogoutRequested, &[LogoutAsked]),
        (LoggedIn, 15, CleanupWait, LOST),
        (
            InLogout,
            13,
            Free,
            &[LogoutSucceeded, SessionClosed, Reinstated],
        ),
        (
            InLogout,
            17,
            CleanupWait,
            &[LogoutFailed, TransportLost, ReinstatementFailed, Dropped],
        ),
        (LogoutRequested, 10, InLogout, &[LogoutReceived]),
        (LogoutRequested, 12, LogoutRequested, &[LogoutAsked]),
        (LogoutRequested, 16, CleanupWait, LOST),
        (LogoutRequested, 18, Free, &[SessionClosed, Reinstated]),
    ]
};

impl ConnectionState {
    /// Where an event leads; `None` where the RFC knows no transition.
    pub(crate) fn on(self, event: ConnectionEvent) -> Option<Transition> {
        if (self, event) == (Self::CleanupWait, ConnectionEvent::CleanedUp) {
            return Some(Transition {
                number: 0,
                to: Self::Free,
            });
        }
        let row = TABLE
            .iter()
            .find(|row| row.0 == self && row.3.contains(&event))?;
        Some(Transition {
            number: row.1,
            to: row.2,
        })
    }
}

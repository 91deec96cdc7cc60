//! How a connection ends, in words that name the guilty and the way out.

use super::portal::ReportedPortal;
use crate::auth::Hash;
use crate::text::MalformedText;
use crate::wire::login::response;
use scsi::violation::Violation;

/// How a session ended. It does not come back; a new one may take its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionEnd {
    /// By an orderly logout.
    #[error("logged out")]
    LoggedOut,
    /// The login failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The target is elsewhere: connect there (RFC 7143 §11.13.5, status class 1).
    #[error("the target has moved to {address}")]
    Redirected {
        /// The portal that the target names.
        address: ReportedPortal,
        /// For good (0102), or for now (0101).
        permanent: bool,
    },
    /// The target broke a rule.
    #[error("protocol error by the target: {0}")]
    Violated(Violation),
    /// The bytes were damaged on their way (RFC 7143 §7.8).
    #[error("{0} digest error: data is corrupted between initiator and target")]
    Damaged(&'static str),
    /// Neither data nor the answer to a ping came in time.
    #[error("the target does not respond")]
    Silent,
    /// A command was late, and neither could it be aborted nor its logical unit be reset in time.
    #[error("the target answers pings, but neither commands nor task management")]
    Stuck,
    /// The target rejected a command before it counted it, or never counted it: it waits for that
    /// CmdSN and executes nothing behind it (RFC 7143 §4.2.2.1, §7.3).
    #[error(
        "the target does not advance ExpCmdSN past a command that it rejected or never received"
    )]
    CmdSnGap,
    /// A text or a logout was not answered in time.
    #[error("the target did not answer a {0} request in time")]
    Unanswered(&'static str),
    /// The target said that it drops the connection or the session (RFC 7143 §11.9.1).
    #[error("the target dropped the session and asks to reconnect after {time2wait} s")]
    Dropped {
        /// Seconds before which a new connection is not wanted.
        time2wait: u16,
        /// Seconds after those in which the tasks could be taken up.
        time2retain: u16,
    },
    /// The target did not log us out (RFC 7143 §11.15.1).
    #[error("the target refused the logout: {}", logout(*.0))]
    LogoutRefused(u8),
    /// The target rejected the logout (RFC 7143 §11.17.1).
    #[error("the target rejected the logout for reason {0:#04x}")]
    LogoutRejected(u8),
    /// The target ended the stream of RDMA, for this reason (RFC 5040 §4.8).
    #[error("the target ended the connection: {0}")]
    Terminated(Violation),
    /// The connection was closed after the login: [`super::Initiator::lost`] was called.
    #[error("the connection was lost")]
    Lost,
    /// It was given up: [`super::Initiator::give_up`] was called.
    #[error("the connection was closed by the initiator")]
    GivenUp,
}

fn logout(code: u8) -> String {
    match code {
        response::NO_CID => "the connection is unknown to it".into(),
        response::NO_RECOVERY => "it does not support connection recovery".into(),
        response::CLEANUP_FAILED => "its cleanup failed".into(),
        code => format!("response {code}"),
    }
}

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// The target refused it (RFC 7143 §11.13.5, status classes 2 and 3).
    #[error("{}", refusal(*status, user.as_deref(), *hash, initiator))]
    Refused {
        /// Status-Class and Status-Detail, as 0xCCDD.
        status: u16,
        /// The CHAP user of the login; `None` without CHAP.
        user: Option<String>,
        /// The hash by which it was done, as far as it came.
        hash: Option<Hash>,
        /// The InitiatorName of the login.
        initiator: String,
    },
    /// The target moved, and did not tell where to.
    #[error("the target redirects the login without giving an address (RFC 7143 §11.13.5)")]
    Nowhere,
    /// A key with a value that does not go with what was offered, or with no value at all.
    #[error("the target answered {key}={value} {rule} ({clause})")]
    Key {
        /// The name of the key.
        key: String,
        /// What came; shortened.
        value: String,
        /// What is wrong with it.
        rule: &'static str,
        /// Where it is said.
        clause: &'static str,
    },
    /// What was required was not agreed upon.
    #[error(
        "the target does not support {key}={value}, which is required: enable it there, or do not \
         require it here"
    )]
    Required {
        /// Which key.
        key: &'static str,
        /// Which value.
        value: &'static str,
    },
    /// RDMAExtensions=Yes was not agreed upon (RFC 7145 §6.3).
    #[error(
        "the target does not use iSER on this portal: enable it there, or use iSCSI over TCP \
         (RFC 7145 §6.3)"
    )]
    NoRdma,
    /// The target ended the stream of RDMA, for this reason (RFC 5040 §4.8).
    #[error("the target ended the connection during the login: {0}")]
    Terminated(Violation),
    /// CHAP.
    #[error(transparent)]
    Chap(#[from] ChapError),
    /// Text that cannot be read.
    #[error("the target sent {0} (RFC 7143 §6.1)")]
    Text(MalformedText),
    /// Another rule.
    #[error("protocol error by the target during login: {0}")]
    Violated(Violation),
    /// What came cannot be an answer to a login: a web server listens there, say.
    #[error("this port does not speak iSCSI: check host and port ({0})")]
    Stranger(Violation),
    /// The connection was closed. LIO does so, without a word, where it wants CHAP and is offered
    /// none.
    #[error("the target closed the connection during the login{}", wants(*proven))]
    Lost {
        /// Whether CHAP was offered.
        proven: bool,
    },
    /// It took too long.
    #[error("the target did not finish the login in time")]
    Late,
    /// The connection did not become a queue pair.
    #[error(
        "RDMA does not begin: {0}; check that the portal takes iSER (lunar serve --iser, LIO: \
         enable_iser), or use iscsi://"
    )]
    NoQueuePair(&'static str),
    /// The connection was closed before it became a queue pair.
    #[error(
        "RDMA does not begin: the target closed the connection; check that the portal takes iSER \
         (lunar serve --iser, LIO: enable_iser), or use iscsi://; where it does, all its places \
         for logins may be taken: try again later, and see its log"
    )]
    ClosedAtStartup,
}

impl From<MalformedText> for LoginError {
    fn from(malformed: MalformedText) -> Self {
        Self::Text(malformed)
    }
}

/// Why CHAP failed (RFC 7143 §12.1.3).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChapError {
    /// The target does not do CHAP.
    #[error("the target does not use CHAP: configure it there, or omit the CHAP user here")]
    NoMethod,
    /// It chose a hash that was not offered.
    #[error("the target chose the CHAP hash {0}, which was not offered")]
    Hash(String),
    /// A key of the exchange is missing.
    #[error("the target left {0} out of its CHAP exchange")]
    Missing(&'static str),
    /// A key of the exchange cannot be read.
    #[error("the target sent a {0} that cannot be read")]
    Malformed(&'static str),
    /// It went on without proving its identity.
    #[error(
        "the target did not authenticate itself: configure mutual CHAP there, or omit the mutual \
         secret here"
    )]
    Unproven,
    /// It proved to be another.
    #[error("the target authenticated as CHAP user \"{0}\", which is not the expected name")]
    Name(String),
    /// Not the right response.
    #[error(
        "the target failed mutual CHAP: it has another mutual secret, or is not the expected target"
    )]
    WrongResponse,
    /// It sent our challenge back, or proved itself with our secret (RFC 7143 §9.2.1).
    #[error(
        "the target authenticates itself with the initiator's secret: give the target a secret of \
         its own"
    )]
    SharedSecret,
    /// Its challenge is the one that we send.
    #[error("the target sent the initiator's own CHAP challenge back")]
    Reflected,
}

const fn wants(proven: bool) -> &'static str {
    if proven {
        ": its log may say why"
    } else {
        ": if it requires CHAP, give a user and secret; if it does not speak iSCSI, check the \
         port; otherwise see its log"
    }
}

/// What a status means, and what to do.
fn refusal(status: u16, user: Option<&str>, hash: Option<Hash>, initiator: &str) -> String {
    let known = match (status, user) {
        (0x0201, None) => Some("the target requires CHAP: give a user and secret".into()),
        (0x0201, Some(user)) => Some(format!(
            "the target rejected CHAP user {user:?} or its secret: check both at both ends"
        )),
        (0x0202, _) => Some(format!(
            "the target does not admit this initiator: add {initiator} to its access list"
        )),
        _ => STATUSES
            .iter()
            .find_map(|row| (row.0 == status).then(|| row.1.to_owned())),
    };
    match (status, known) {
        (0x0200 | 0x0201, Some(text)) if hash == Some(Hash::Sha256) => format!(
            "{text}; tgtd mistakes SHA-256 for another hash: for tgtd add ?chap-hash=md5 to the \
             address, or --chap-hash md5 to lunar ls (status {status:04x})"
        ),
        (_, Some(text)) => format!("{text} (status {status:04x})"),
        (0x0300..=0x03ff, None) => {
            format!("the target is not available now: try again later (status {status:04x})")
        }
        _ => format!("the target refused the login (status {status:04x})"),
    }
}

/// RFC 7143 §11.13.5, Table of Status-Class and Status-Detail. Where the text depends on the login,
/// [`refusal`] has it.
#[rustfmt::skip]
const STATUSES: [(u16, &str); 14] = [
    (0x0200, "the target found an error in the login request: see its log"),
    (0x0203, "this portal has no such target: list its targets with lunar ls"),
    (0x0204, "the target was removed from this portal and left no new address"),
    (0x0205, "the target supports another version of the protocol"),
    (0x0206, "the session has too many connections: end others first"),
    (0x0207, "the target requires a parameter that the login lacks"),
    (0x0208, "the target cannot add this connection to the session"),
    (0x0209, "the target does not support this type of session"),
    (0x020a, "the target no longer has this session: log in again"),
    (0x020b, "the target received something other than a Login Request"),
    (0x0300, "the target failed: see its log"),
    (0x0301, "the target is not available now, or with LIO does not exist: try again later, or \
        list the portal's targets with lunar ls"),
    (0x0302, "the target accepts no more sessions: end others, or try again later"),
    (0x0303, "the target failed for a vendor-specific reason: see its log"),
];

/// A value of a peer, so that it can be shown: no control characters, and not longer than a line.
pub(super) fn shown(value: &str) -> String {
    let mut text: String = value.chars().take(MAX_SHOWN).collect();
    if text.len() < value.len() {
        text.push('…');
    }
    text.escape_debug().to_string()
}

/// Text of a peer that is kept as it is but for what a terminal would act upon.
pub(super) fn harmless(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .collect()
}

const MAX_SHOWN: usize = 64;

//! What goes over a query socket: one line of JSON each way, a request and its answer.
//!
//! Payloads are those of FC-LS-3 and FC-GS-7, in hexadecimal digits.

use std::io;

use block::identity::hex;
use fc::port::{FcQuery, FcQueryError};
use fc::wire::names::FcId;
use serde::{Deserialize, Serialize};

/// A request: `{"version":1,"service":"els","to":66048,"payload":"10000000"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QueryRequest {
    version: u32,
    service: QueryService,
    /// N_Port_ID; a request of the common transport goes to the name server.
    to: u32,
    payload: String,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QueryService {
    /// An extended link service.
    Els,
    /// A query of the name server.
    Ct,
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueryAnswer {
    /// The payload that came back.
    Answer(String),
    /// Why none did.
    Failure { kind: QueryFailure, text: String },
}

/// What a program that asks can make of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum QueryFailure {
    /// The other port may answer another time.
    Silent,
    /// So may this one, later.
    Busy,
    /// There is no way to the other port now.
    Gone,
    /// It is never sent.
    Refused,
}

/// Bytes of a request at most: the payload of the longest frame, and what is around it.
pub(super) const REQUEST_MAX: usize = 2 * PAYLOAD_MAX + 256;

/// Bytes of an answer at most, in which all that programs ask for fits.
pub(super) const ANSWER_MAX: usize = 2 * PAYLOAD_MAX + 256;

/// Bytes of the payload of a frame (FC-FS-3).
const PAYLOAD_MAX: usize = 2112;

/// What both ends speak.
const VERSION: u32 = 1;

impl QueryRequest {
    pub(super) fn els(to: FcId, payload: &[u8]) -> Self {
        Self {
            version: VERSION,
            service: QueryService::Els,
            to: to.0,
            payload: hex(payload),
        }
    }

    pub(super) fn ct(payload: &[u8]) -> Self {
        Self {
            service: QueryService::Ct,
            ..Self::els(FcId::DIRECTORY, payload)
        }
    }

    /// A line.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// What a line asks for, or why that is not sent.
    pub(super) fn parse(line: &[u8]) -> Result<FcQuery, QueryAnswer> {
        let version = serde_json::from_slice::<Versioned>(line);
        let version = version.map_err(|cause| refused(&format!("no request: {cause}")))?;
        if version.version != VERSION {
            return Err(refused(&format!(
                "a request of version {}, and this program knows {VERSION}: use one version of \
                 lunar",
                version.version
            )));
        }
        let request: Self = serde_json::from_slice(line)
            .map_err(|cause| refused(&format!("no request: {cause}")))?;
        request.query()
    }

    fn query(&self) -> Result<FcQuery, QueryAnswer> {
        let payload = bytes(&self.payload);
        let payload = payload.ok_or_else(|| refused("no request: payload is not hexadecimal"))?;
        let is_address = self.to <= FcId::BROADCAST.0;
        let query = match self.service {
            QueryService::Els if is_address => FcQuery::els(FcId(self.to), payload),
            QueryService::Els => return Err(refused("no request: to is no N_Port_ID")),
            QueryService::Ct => FcQuery::ct(payload),
        };
        query.map_err(|cause| QueryAnswer::failed(&cause))
    }
}

/// What requests of all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn refused(text: &str) -> QueryAnswer {
    QueryAnswer::Failure {
        kind: QueryFailure::Refused,
        text: text.to_owned(),
    }
}

impl QueryAnswer {
    /// What came of a query; of what came back, as much as a frame has.
    pub(super) fn of(outcome: &Result<Vec<u8>, FcQueryError>) -> Self {
        match outcome {
            Ok(payload) => Self::Answer(hex(&payload[..payload.len().min(PAYLOAD_MAX)])),
            Err(cause) => Self::failed(cause),
        }
    }

    pub(super) fn failed(cause: &FcQueryError) -> Self {
        Self::Failure {
            kind: match cause {
                FcQueryError::Silent(_) => QueryFailure::Silent,
                FcQueryError::Busy | FcQueryError::NotRegistered => QueryFailure::Busy,
                FcQueryError::Offline | FcQueryError::Ended => QueryFailure::Gone,
                FcQueryError::NotAQuery
                | FcQueryError::TooLong(_)
                | FcQueryError::NoPort(_)
                | FcQueryError::NoFabric => QueryFailure::Refused,
            },
            text: cause.to_string(),
        }
    }

    /// What whoever asked makes of it.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`], [`io::ErrorKind::ResourceBusy`],
    /// [`io::ErrorKind::ConnectionAborted`], [`io::ErrorKind::InvalidInput`]: the kinds of
    /// [`QueryFailure`] in their order.
    pub(super) fn outcome(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Answer(digits) => bytes(&digits).ok_or_else(|| io::ErrorKind::InvalidData.into()),
            Self::Failure { kind, text } => Err(io::Error::new(kind.into(), text)),
        }
    }
}

impl From<QueryFailure> for io::ErrorKind {
    fn from(failure: QueryFailure) -> Self {
        match failure {
            QueryFailure::Silent => Self::TimedOut,
            QueryFailure::Busy => Self::ResourceBusy,
            QueryFailure::Gone => Self::ConnectionAborted,
            QueryFailure::Refused => Self::InvalidInput,
        }
    }
}

/// The bytes of hexadecimal digits, two each.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

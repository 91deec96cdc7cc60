//! Queries of a fabric's name server (FC-GS-7, Common Transport and Name Server), with the words
//! of fcnsq for what it refuses.

use std::io;

use fc::wire::ct::name_server::NameServerRequest;
use fc::wire::ct::{CtCode, CtHeader, CtService, HEADER_LEN};
use fc::wire::names::{FcId, Wwn};

use crate::transport::FcTransport;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameQuery {
    /// GPN_ID: the WWPN of an address.
    PortName(FcId),
    /// GNN_ID: the WWNN of an address.
    NodeName(FcId),
    /// GSPN_ID: the symbolic name of the port of an address.
    SymbolicPortName(FcId),
    /// GSNN_NN: the symbolic name of a node.
    SymbolicNodeName(Wwn),
    /// GID_PN: the address of a WWPN.
    IdOfPort(Wwn),
    /// GID_NN: the address of a port of a WWNN.
    IdOfNode(Wwn),
}

/// Why there is no answer to it.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Nothing came back.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The name server refuses: reason and explanation.
    #[error("command failed: {}, {}", reason(*.0), explanation(*.1))]
    Rejected(u8, u8),
    /// What came back is no answer.
    #[error("command failed: the answer is malformed")]
    Malformed,
}

impl NameQuery {
    const fn request(self) -> NameServerRequest {
        match self {
            Self::PortName(port) => NameServerRequest::GpnId(port),
            Self::NodeName(port) => NameServerRequest::GnnId(port),
            Self::SymbolicPortName(port) => NameServerRequest::GspnId(port),
            Self::SymbolicNodeName(node) => NameServerRequest::GsnnNn(node),
            Self::IdOfPort(port) => NameServerRequest::GidPn(port),
            Self::IdOfNode(node) => NameServerRequest::GidNn(node),
        }
    }

    /// Sends it to the name server, and gives what follows the header of the answer.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn ask(self, transport: &mut impl FcTransport) -> Result<Vec<u8>, QueryError> {
        let request = self.request();
        let header = CtHeader {
            // How much may come, in words.
            size: (ANSWER_MAX / 4) as u16,
            ..CtHeader::request(CtService::NAME_SERVER, request.code())
        };
        let mut bytes = request.encode();
        bytes[..HEADER_LEN].copy_from_slice(&header.encode());
        let answer = transport.ct(&bytes, HEADER_LEN + ANSWER_MAX)?;
        let (header, told) = CtHeader::parse(&answer).map_err(|_| QueryError::Malformed)?;
        match header.code {
            CtCode::ACCEPT => Ok(told.to_vec()),
            CtCode::REJECT => Err(QueryError::Rejected(
                header.why.reason,
                header.why.explanation,
            )),
            _ => Err(QueryError::Malformed),
        }
    }

    /// Asks for an address.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn id(self, transport: &mut impl FcTransport) -> Result<FcId, QueryError> {
        let told = self.ask(transport)?;
        let entry = told.first_chunk::<4>().ok_or(QueryError::Malformed)?;
        Ok(FcId(u32::from_be_bytes(*entry) & FcId::BROADCAST.0))
    }

    /// Asks, and gives a label and what was answered, as fcnsq prints them.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn text(
        self,
        transport: &mut impl FcTransport,
    ) -> Result<(&'static str, String), QueryError> {
        let label = match self {
            Self::PortName(_) => "Port Name",
            Self::NodeName(_) => "Node Name",
            Self::SymbolicPortName(_) => "Symbolic Port Name",
            Self::SymbolicNodeName(_) => "Symbolic Node Name",
            Self::IdOfPort(_) | Self::IdOfNode(_) => {
                return Ok(("Port ID", self.id(transport)?.to_string()));
            }
        };
        let told = self.ask(transport)?;
        let text = match self {
            Self::PortName(_) | Self::NodeName(_) => {
                let name = told.first_chunk().ok_or(QueryError::Malformed)?;
                format!("{:016x}", u64::from_be_bytes(*name))
            }
            _ => symbolic(&told).ok_or(QueryError::Malformed)?,
        };
        Ok((label, text))
    }
}

/// A length, and so many bytes of a name, up to a zero. A peer has chosen it, so control characters
/// become `?`.
fn symbolic(told: &[u8]) -> Option<String> {
    let (len, rest) = told.split_first()?;
    let name = rest.get(..usize::from(*len))?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    Some(name.replace(|c: char| c.is_control(), "?"))
}

/// A symbolic name with its length is the longest that is asked for.
const ANSWER_MAX: usize = 256;

fn reason(code: u8) -> &'static str {
    word(REASONS, code)
}

fn explanation(code: u8) -> &'static str {
    word(EXPLANATIONS, code)
}

fn word(words: &[(u8, &'static str)], code: u8) -> &'static str {
    let known = words.iter().find(|(known, _)| *known == code);
    known.map_or("unknown code", |(_, word)| word)
}

/// Reasons for which CT refuses (FC-GS-7, CT_IU preamble, Reason Code).
const REASONS: &[(u8, &str)] = &[
    (0x01, "Invalid command code"),
    (0x02, "Invalid version level"),
    (0x03, "Logical error"),
    (0x04, "Invalid CT_IU size"),
    (0x05, "Logical busy"),
    (0x07, "Protocol error"),
    (0x09, "Unable to perform command request"),
    (0x0b, "Command not supported"),
    (0x0d, "Server not available"),
    (0x0e, "Session could not be established"),
];

/// What the name server adds (FC-GS-7, Name Server, Reason Code Explanation).
const EXPLANATIONS: &[(u8, &str)] = &[
    (0x00, "No additional explanation"),
    (0x01, "Port Identifier not registered"),
    (0x02, "Port Name not registered"),
    (0x03, "Node Name not registered"),
    (0x04, "Class of Service not registered"),
    (0x07, "FC-4 Types not registered"),
    (0x08, "Symbolic Port Name not registered"),
    (0x09, "Symbolic Node Name not registered"),
    (0x0a, "Port Type not registered"),
    (0x0f, "FC-4 Features not registered"),
    (0x10, "Access denied"),
    (0x11, "Unacceptable Port Identifier"),
    (0x12, "Data base empty"),
    (0x13, "No object registered in the specified scope"),
];

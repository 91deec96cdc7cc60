//! FC-LS-2: extended link services, each a request in one frame with an answer in one frame; and
//! SRR of FCP-4, which looks like one.
//!
//! What an answer holds depends on what it answers: [`Els`] is a request, [`Reply`] an answer to
//! one. Bytes behind the end of a payload are ignored, as older ones are longer.

use std::fmt;

use super::frame::{OxId, RxId};
use super::names::{FcId, Wwn};
use super::reader::{ByteReader, Truncated};

/// A field of a fixed length, big-endian.
trait Field: Sized {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, Truncated>;
    fn put(self, out: &mut Vec<u8>);
}

impl Field for u32 {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        reader.u32()
    }

    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}

/// A reserved byte and an address.
impl Field for FcId {
    fn read(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        reader.skip(1)?;
        reader.u24().map(Self)
    }

    fn put(self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.bytes());
    }
}

/// Fields that are a number with a meaning.
macro_rules! number_fields {
    ($($name:ident: $number:ident),*) => {
        $(impl Field for $name {
            fn read(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
                reader.$number().map(Self)
            }

            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0.to_be_bytes());
            }
        })*
    };
}

number_fields!(OxId: u16, RxId: u16, ExchangeStatus: u32, Wwn: u64);

/// What is read and written field by field, in this order.
macro_rules! record {
    ($name:ident: $($field:ident),*) => {
        impl $name {
            pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
                Ok(Self { $($field: super::Field::read(reader)?),* })
            }

            pub(super) fn put(&self, out: &mut Vec<u8>) {
                $(super::Field::put(self.$field, out);)*
            }
        }
    };
}

mod exchange;
mod link;
mod login;
mod process;
mod reject;

pub use exchange::{ExchangeName, ExchangeStatus, RecAccept, Srr};
pub use link::{
    Adisc, LinkErrors, Logo, LsRejectReason, NodeId, Rscn, TimeOuts, explanation, reason,
};
pub use login::{ClassParameters, Features, ServiceParameters};
pub use process::{FcpParameters, ServicePage};

/// The first byte of a payload: what is asked for or answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u8);

macro_rules! codes {
    ($($name:ident = $code:literal, $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($code);)*

            /// What the standard calls it.
            const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    Self(_) => None,
                }
            }
        }
    };
}

codes! {
    LS_RJT = 0x01, "Link Service Reject.";
    LS_ACC = 0x02, "Link Service Accept.";
    PLOGI = 0x03, "N_Port Login.";
    FLOGI = 0x04, "F_Port Login; in VN2VN, the exchange of service parameters.";
    LOGO = 0x05, "Logout.";
    RTV = 0x0e, "Read Timeout Value.";
    RLS = 0x0f, "Read Link Error Status Block.";
    ECHO = 0x10, "Echo.";
    RRQ = 0x12, "Reinstate Recovery Qualifier.";
    REC = 0x13, "Read Exchange Concise.";
    SRR = 0x14, "Sequence Retransmission Request, an FC-4 link service.";
    PRLI = 0x20, "Process Login.";
    PRLO = 0x21, "Process Logout.";
    TPRLO = 0x24, "Third Party Process Logout.";
    PDISC = 0x50, "Discover N_Port Service Parameters.";
    FDISC = 0x51, "Discover F_Port Service Parameters.";
    ADISC = 0x52, "Discover Address.";
    RSCN = 0x61, "Registered State Change Notification.";
    SCR = 0x62, "State Change Registration.";
    RNID = 0x78, "Request Node Identification Data.";
    LIRR = 0x7a, "Link Incident Record Registration.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "ELS {:02x}h", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each has the name of its code")]
pub enum Els {
    Plogi(ServiceParameters),
    Flogi(ServiceParameters),
    Pdisc(ServiceParameters),
    Fdisc(ServiceParameters),
    Logo(Logo),
    Rtv,
    /// Of which port.
    Rls(FcId),
    /// What is to come back.
    Echo(Vec<u8>),
    Rrq(ExchangeName),
    Rec(ExchangeName),
    Srr(Srr),
    Prli(Vec<ServicePage>),
    Prlo(Vec<ServicePage>),
    Tprlo(Vec<ServicePage>),
    Adisc(Adisc),
    Rscn(Rscn),
    /// Registration function: 1 fabric detected, 2 port detected, 3 both, 255 none.
    Scr(u8),
    /// Node identification data format.
    Rnid(u8),
    /// Any other, LS_ACC and LS_RJT among them.
    Other(Code),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// LS_ACC of PLOGI, FLOGI, PDISC, FDISC.
    Login(ServiceParameters),
    /// LS_ACC of PRLI, PRLO, TPRLO: the pages with their response codes.
    Process(Vec<ServicePage>),
    /// LS_ACC of ADISC.
    Adisc(Adisc),
    /// LS_ACC of REC.
    Rec(RecAccept),
    /// LS_ACC of RTV.
    Rtv(TimeOuts),
    /// LS_ACC of RLS.
    Rls(LinkErrors),
    /// LS_ACC of RNID.
    Rnid(NodeId),
    /// LS_ACC of ECHO.
    Echo(Vec<u8>),
    /// LS_ACC of all others.
    Accept,
    /// LS_RJT.
    Reject(LsRejectReason),
}

/// What is wrong with a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ElsError {
    /// It ends too early.
    #[error("a truncated extended link service")]
    Truncated,
    /// Its lengths do not agree with each other, or with its pages.
    #[error("{0} with inconsistent lengths")]
    Length(Code),
    /// An answer that is neither LS_ACC nor LS_RJT.
    #[error("{0} as a response")]
    NoReply(Code),
}

impl From<Truncated> for ElsError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl Els {
    /// What it asks for.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Plogi(_) => Code::PLOGI,
            Self::Flogi(_) => Code::FLOGI,
            Self::Pdisc(_) => Code::PDISC,
            Self::Fdisc(_) => Code::FDISC,
            Self::Logo(_) => Code::LOGO,
            Self::Rtv => Code::RTV,
            Self::Rls(_) => Code::RLS,
            Self::Echo(_) => Code::ECHO,
            Self::Rrq(_) => Code::RRQ,
            Self::Rec(_) => Code::REC,
            Self::Srr(_) => Code::SRR,
            Self::Prli(_) => Code::PRLI,
            Self::Prlo(_) => Code::PRLO,
            Self::Tprlo(_) => Code::TPRLO,
            Self::Adisc(_) => Code::ADISC,
            Self::Rscn(_) => Code::RSCN,
            Self::Scr(_) => Code::SCR,
            Self::Rnid(_) => Code::RNID,
            Self::Other(code) => *code,
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// It is shorter than its kind is, or its lengths do not agree.
    pub fn parse(payload: &[u8]) -> Result<Self, ElsError> {
        let mut reader = ByteReader(payload);
        let (code, lengths) = head(&mut reader)?;
        let pages = || process::pages(code, lengths, payload);
        Ok(match code {
            Code::PLOGI => Self::Plogi(ServiceParameters::parse(&mut reader)?),
            Code::FLOGI => Self::Flogi(ServiceParameters::parse(&mut reader)?),
            Code::PDISC => Self::Pdisc(ServiceParameters::parse(&mut reader)?),
            Code::FDISC => Self::Fdisc(ServiceParameters::parse(&mut reader)?),
            Code::LOGO => Self::Logo(Logo::parse(&mut reader)?),
            Code::RTV => Self::Rtv,
            Code::RLS => Self::Rls(Field::read(&mut reader)?),
            Code::ECHO => Self::Echo(reader.0.to_vec()),
            Code::RRQ => Self::Rrq(ExchangeName::parse(&mut reader)?),
            Code::REC => Self::Rec(ExchangeName::parse(&mut reader)?),
            Code::SRR => Self::Srr(Srr::parse(&mut reader)?),
            Code::PRLI => Self::Prli(pages()?),
            Code::PRLO => Self::Prlo(pages()?),
            Code::TPRLO => Self::Tprlo(pages()?),
            Code::ADISC => Self::Adisc(Adisc::parse(&mut reader)?),
            Code::RSCN => Self::Rscn(Rscn::parse(lengths, payload)?),
            Code::SCR => Self::Scr(link::last_byte(&mut reader)?),
            Code::RNID => Self::Rnid(reader.u8()?),
            other => Self::Other(other),
        })
    }

    /// Writes the request.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.code().0, 0, 0, 0];
        match self {
            Self::Plogi(login) | Self::Flogi(login) | Self::Pdisc(login) | Self::Fdisc(login) => {
                login.put(&mut out);
            }
            Self::Logo(logo) => logo.put(&mut out),
            Self::Rls(port) => port.put(&mut out),
            Self::Echo(data) => out.extend_from_slice(data),
            Self::Rrq(name) | Self::Rec(name) => name.put(&mut out),
            Self::Srr(srr) => srr.put(&mut out),
            Self::Prli(pages) | Self::Prlo(pages) | Self::Tprlo(pages) => {
                process::put(pages, &mut out);
            }
            Self::Adisc(adisc) => adisc.put(&mut out),
            Self::Rscn(rscn) => rscn.put(&mut out),
            Self::Scr(function) => out.extend_from_slice(&[0, 0, 0, *function]),
            Self::Rnid(format) => out.extend_from_slice(&[*format, 0, 0, 0]),
            Self::Rtv | Self::Other(_) => {}
        }
        out
    }
}

impl Reply {
    /// Reads an answer to a request of code `to`.
    ///
    /// # Errors
    /// It is not an answer, is shorter than its kind is, or its lengths do not agree.
    pub fn parse(to: Code, payload: &[u8]) -> Result<Self, ElsError> {
        let mut reader = ByteReader(payload);
        let (code, lengths) = head(&mut reader)?;
        match code {
            Code::LS_ACC => {}
            Code::LS_RJT => return Ok(Self::Reject(LsRejectReason::parse(&mut reader)?)),
            other => return Err(ElsError::NoReply(other)),
        }
        Ok(match to {
            Code::PLOGI | Code::FLOGI | Code::PDISC | Code::FDISC => {
                Self::Login(ServiceParameters::parse(&mut reader)?)
            }
            Code::PRLI | Code::PRLO | Code::TPRLO => {
                Self::Process(process::pages(to, lengths, payload)?)
            }
            Code::ADISC => Self::Adisc(Adisc::parse(&mut reader)?),
            Code::REC => Self::Rec(RecAccept::parse(&mut reader)?),
            Code::RTV => Self::Rtv(TimeOuts::parse(&mut reader)?),
            Code::RLS => Self::Rls(LinkErrors::parse(&mut reader)?),
            Code::RNID => Self::Rnid(NodeId::parse(&mut reader)?),
            Code::ECHO => Self::Echo(reader.0.to_vec()),
            _ => Self::Accept,
        })
    }

    /// Writes the answer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![Code::LS_ACC.0, 0, 0, 0];
        match self {
            Self::Login(login) => login.put(&mut out),
            Self::Process(pages) => process::put(pages, &mut out),
            Self::Adisc(adisc) => adisc.put(&mut out),
            Self::Rec(status) => status.put(&mut out),
            Self::Rtv(times) => times.put(&mut out),
            Self::Rls(errors) => errors.put(&mut out),
            Self::Rnid(node) => node.put(&mut out),
            Self::Echo(data) => out.extend_from_slice(data),
            Self::Accept => {}
            Self::Reject(reject) => {
                out[0] = Code::LS_RJT.0;
                reject.put(&mut out);
            }
        }
        out
    }
}

/// The first word of a payload: its code, and the lengths of a page and of all that have pages.
fn head(reader: &mut ByteReader<'_>) -> Result<(Code, (usize, usize)), Truncated> {
    let [code, page, high, low] = reader.array()?;
    let all = u16::from_be_bytes([high, low]);
    Ok((Code(code), (page.into(), all.into())))
}

//! LOGO, ADISC, RTV, RLS, RNID, RSCN and LS_RJT.

use super::{Code, ElsError};
use crate::wire::names::{FcId, Wwn};
use crate::wire::reader::{ByteReader, Truncated};

/// The port that logs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logo {
    /// His address.
    pub fc_id: FcId,
    /// His port name.
    pub wwpn: Wwn,
}

record!(Logo: fc_id, wwpn);

/// The port at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adisc {
    /// Hard address; 0 for none.
    pub hard_address: FcId,
    /// Port name.
    pub wwpn: Wwn,
    /// Node name.
    pub wwnn: Wwn,
    /// Address.
    pub fc_id: FcId,
}

record!(Adisc: hard_address, wwpn, wwnn, fc_id);

/// The time-outs that a port works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOuts {
    /// R_A_TOV, in milliseconds.
    pub r_a_tov_ms: u32,
    /// E_D_TOV, in milliseconds or, by [`Self::E_D_TOV_NS`], nanoseconds.
    pub e_d_tov: u32,
    /// Qualifier.
    pub qualifier: u32,
}

impl TimeOuts {
    /// Qualifier: E_D_TOV is in nanoseconds.
    pub const E_D_TOV_NS: u32 = 1 << 26;

    /// E_D_TOV in milliseconds, rounded up.
    #[must_use]
    pub const fn e_d_tov_ms(&self) -> u32 {
        if self.qualifier & Self::E_D_TOV_NS != 0 {
            self.e_d_tov.div_ceil(1_000_000)
        } else {
            self.e_d_tov
        }
    }
}

record!(TimeOuts: r_a_tov_ms, e_d_tov, qualifier);

/// The link error status block: what went wrong, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LinkErrors {
    /// Link failures.
    pub link_failures: u32,
    /// Losses of synchronization; in VN2VN, of the virtual link.
    pub sync_losses: u32,
    /// Losses of signal; in VN2VN, missed keep-alives.
    pub signal_losses: u32,
    /// Primitive sequence protocol errors.
    pub protocol_errors: u32,
    /// Invalid transmission words; of FCoE, symbol errors.
    pub invalid_words: u32,
    /// Invalid CRCs; of FCoE, frames whose Ethernet FCS is wrong.
    pub invalid_crcs: u32,
}

record!(
    LinkErrors: link_failures,
    sync_losses,
    signal_losses,
    protocol_errors,
    invalid_words,
    invalid_crcs
);

/// Node identification data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeId {
    /// In what format the specific data is; 0 for none, DFh for general topology discovery.
    pub format: u8,
    /// Port and node name: the common data, which may be left out.
    pub names: Option<(Wwn, Wwn)>,
    /// Specific data, up to 255 bytes.
    pub specific: Vec<u8>,
}

impl NodeId {
    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, ElsError> {
        let [format, common, _, specific] = reader.array()?;
        let names = match usize::from(common) {
            0 => None,
            NAMES_LEN => Some((Wwn(reader.u64()?), Wwn(reader.u64()?))),
            _ => return Err(ElsError::Length(Code::RNID)),
        };
        Ok(Self {
            format,
            names,
            specific: reader.take(usize::from(specific))?.to_vec(),
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let specific = &self.specific[..self.specific.len().min(255)];
        let common = self.names.map_or(0, |_| NAMES_LEN as u8);
        out.extend_from_slice(&[self.format, common, 0, specific.len() as u8]);
        for name in self.names.iter().flat_map(|(wwpn, wwnn)| [wwpn, wwnn]) {
            out.extend_from_slice(&name.0.to_be_bytes());
        }
        out.extend_from_slice(specific);
    }
}

/// Whose state has changed: the first byte of each page says how, and how much of the address
/// counts (0 port, 1 area, 2 domain, 3 the whole fabric).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rscn(pub Vec<(u8, FcId)>);

impl Rscn {
    pub(super) fn parse(
        (page_len, payload_len): (usize, usize),
        payload: &[u8],
    ) -> Result<Self, ElsError> {
        let pages = payload.get(4..payload_len);
        let pages = pages.ok_or(ElsError::Length(Code::RSCN))?;
        if page_len != 4 || pages.is_empty() || !pages.len().is_multiple_of(4) {
            return Err(ElsError::Length(Code::RSCN));
        }
        let page = |page: &[u8]| {
            let mut reader = ByteReader(page);
            Ok((reader.u8()?, FcId(reader.u24()?)))
        };
        pages
            .chunks(4)
            .map(page)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let [high, low] = (4 + 4 * self.0.len() as u16).to_be_bytes();
        out[1..4].copy_from_slice(&[4, high, low]);
        for (flags, fc_id) in &self.0 {
            out.push(*flags);
            out.extend_from_slice(&fc_id.bytes());
        }
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsRejectReason {
    /// One of [`reason`].
    pub reason: u8,
    /// One of [`explanation`].
    pub explanation: u8,
    /// Vendor specific.
    pub vendor: u8,
}

impl LsRejectReason {
    /// The payload has not the length that it should.
    pub(crate) const LENGTH: Self = Self::new(reason::PROTOCOL_ERROR, explanation::PAYLOAD_LENGTH);

    /// No class 3, or less than 256 bytes of payload.
    pub(crate) const SIZES: Self = Self::new(reason::LOGICAL_ERROR, explanation::RECEIVE_SIZE);

    /// The names are not those that FIP told.
    pub(crate) const OTHER_NAME: Self = Self::new(reason::LOGICAL_ERROR, explanation::PORT_NAME);

    /// It may log in by no means.
    pub(crate) const NOT_ALLOWED: Self = Self::new(reason::UNABLE, explanation::PORT_NAME);

    /// There are as many logins as there may be.
    pub(crate) const NO_PLACE: Self = Self::new(reason::UNABLE, explanation::NO_RESOURCES);

    /// There is no N_Port login.
    pub(crate) const NO_LOGIN: Self = Self::new(reason::UNABLE, explanation::LOGIN_REQUIRED);

    /// The exchange is not known.
    pub(crate) const NO_EXCHANGE: Self =
        Self::new(reason::LOGICAL_ERROR, explanation::INVALID_OX_RX_ID);

    /// Come back soon.
    pub(crate) const BUSY: Self = Self::new(reason::LOGICAL_BUSY, explanation::NONE);

    /// The same, as too many logins end.
    pub(crate) const TOO_OFTEN: Self = Self::new(reason::LOGICAL_BUSY, explanation::NO_RESOURCES);

    /// Our own PLOGI goes first.
    pub(crate) const IN_PROGRESS: Self = Self::new(reason::IN_PROGRESS, explanation::NONE);

    /// Nothing that a port of our kind does.
    pub(crate) const NOT_SUPPORTED: Self = Self::new(reason::NOT_SUPPORTED, explanation::NONE);

    /// Without anything vendor specific.
    #[must_use]
    pub const fn new(reason: u8, explanation: u8) -> Self {
        Self {
            reason,
            explanation,
            vendor: 0,
        }
    }

    pub(super) fn parse(reader: &mut ByteReader<'_>) -> Result<Self, Truncated> {
        let [_, reason, explanation, vendor] = reader.array()?;
        Ok(Self {
            reason,
            explanation,
            vendor,
        })
    }

    pub(super) fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, self.reason, self.explanation, self.vendor]);
    }
}

/// Reason codes of LS_RJT.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod reason {
    pub const INVALID_COMMAND: u8 = 0x01;
    pub const LOGICAL_ERROR: u8 = 0x03;
    pub const LOGICAL_BUSY: u8 = 0x05;
    pub const PROTOCOL_ERROR: u8 = 0x07;
    pub const UNABLE: u8 = 0x09;
    pub const NOT_SUPPORTED: u8 = 0x0b;
    pub const IN_PROGRESS: u8 = 0x0e;
    pub const FIP_ERROR: u8 = 0x20;
    pub const VENDOR: u8 = 0xff;
}

/// Reason code explanations of LS_RJT.
#[expect(missing_docs, reason = "the names are those of the standard")]
pub mod explanation {
    pub const NONE: u8 = 0x00;
    pub const OPTIONS: u8 = 0x01;
    pub const RECEIVE_SIZE: u8 = 0x07;
    pub const PORT_NAME: u8 = 0x0d;
    pub const INVALID_OX_RX_ID: u8 = 0x17;
    pub const IN_PROGRESS: u8 = 0x19;
    pub const LOGIN_REQUIRED: u8 = 0x1e;
    pub const INVALID_N_PORT_ID: u8 = 0x1f;
    pub const NO_RESOURCES: u8 = 0x29;
    pub const NO_DATA: u8 = 0x2a;
    pub const NOT_SUPPORTED: u8 = 0x2c;
    pub const PAYLOAD_LENGTH: u8 = 0x2d;
    pub const ADDRESSING_MODE: u8 = 0x60;
    pub const NOT_NEIGHBOUR: u8 = 0x62;
}

/// The last byte of a word.
pub(super) fn last_byte(reader: &mut ByteReader<'_>) -> Result<u8, Truncated> {
    reader.array().map(|[_, _, _, byte]| byte)
}

/// Bytes of the common data of RNID.
const NAMES_LEN: usize = 16;

//! The Terminate message and its codes (RFC 5040 §4.8 and Figure 9, RFC 5041 §7.2, RFC 5044 §8,
//! RFC 6581 §8).

#[cfg(test)]
mod tests;

use scsi::violation::Violation;

use super::ddp::{self, DdpHeader, Opcode, ReadRequest};

/// Why a stream is terminated: layer, error type and error code. Any number can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TerminateCode {
    /// The layer that met the error: 0 RDMAP, 1 DDP, 2 the one below (MPA). 4 bits.
    pub layer: u8,
    /// The error type of that layer. 4 bits.
    pub kind: u8,
    /// The error code of that type.
    pub code: u8,
}

/// Layer and error type in the words of RFC 5040 Figure 9, RFC 5041 §7.2 and RFC 5044 §8.
macro_rules! kind_name {
    (0, 0) => {
        "RDMAP, Local Catastrophic Error"
    };
    (0, 1) => {
        "RDMAP, Remote Protection Error"
    };
    (0, 2) => {
        "RDMAP, Remote Operation Error"
    };
    (1, 0) => {
        "DDP, Local Catastrophic Error"
    };
    (1, 1) => {
        "DDP, Tagged Buffer Error"
    };
    (1, 2) => {
        "DDP, Untagged Buffer Error"
    };
    (2, 0) => {
        "LLP, MPA Error"
    };
}

/// The codes as constants, and a table that names them.
macro_rules! codes {
    ($(
        $name:ident = $layer:tt, $kind:tt, $code:literal: $rule:literal, $clause:literal;
    )*) => {
        impl TerminateCode {
            $(
                #[doc = concat!($rule, " (", $clause, ").")]
                pub const $name: Self = Self { layer: $layer, kind: $kind, code: $code };
            )*

            /// Each known code with its meaning.
            pub const ALL: &[(Self, Violation)] = &[
                $((Self::$name, Violation { rule: $rule, clause: $clause }),)*
            ];

            /// The code for the log where the peer has sent it: the error is one that the peer
            /// tells of, and not one that this end has met.
            #[must_use]
            pub fn by_peer(self) -> Violation {
                match self {
                    $(Self::$name => Violation {
                        rule: concat!(
                            "a Terminate of the peer (", kind_name!($layer, $kind), "): ", $rule
                        ),
                        clause: $clause,
                    },)*
                    _ => UNKNOWN_BY_PEER,
                }
            }
        }
    };
}

codes! {
    LOCAL_CATASTROPHIC = 0, 0, 0x00: "a local catastrophic error", "RFC 5040 §4.8";
    READ_INVALID_STAG = 0, 1, 0x00: "an STag that is not valid", "RFC 5040 §4.8";
    READ_BOUNDS = 0, 1, 0x01: "a base or bounds violation", "RFC 5040 §4.8";
    ACCESS_RIGHTS = 0, 1, 0x02: "an access rights violation", "RFC 5040 §4.8";
    READ_STAG_OF_OTHER_STREAM = 0, 1, 0x03:
        "an STag not associated with the RDMAP stream", "RFC 5040 §4.8";
    READ_TO_WRAP = 0, 1, 0x04: "a Tagged Offset that wraps", "RFC 5040 §4.8";
    CANNOT_INVALIDATE = 0, 1, 0x09: "an STag that cannot be invalidated", "RFC 5040 §5.3";
    PROTECTION_UNSPECIFIED = 0, 1, 0xff: "an unspecified remote protection error", "RFC 5040 §4.8";
    RDMAP_VERSION = 0, 2, 0x05: "an invalid RDMAP version", "RFC 5040 §4.1";
    UNEXPECTED_OPCODE = 0, 2, 0x06: "an unexpected RDMA opcode", "RFC 5040 §4.1";
    CATASTROPHIC_STREAM = 0, 2, 0x07:
        "a catastrophic error, localized to the RDMAP stream", "RFC 5040 §4.8";
    CATASTROPHIC_GLOBAL = 0, 2, 0x08: "a global catastrophic error", "RFC 5040 §4.8";
    CANNOT_INVALIDATE_OPERATION = 0, 2, 0x09:
        "an operation that cannot invalidate its STag", "RFC 5040 §4.8";
    OPERATION_UNSPECIFIED = 0, 2, 0xff: "an unspecified remote operation error", "RFC 5040 §4.8";
    DDP_CATASTROPHIC = 1, 0, 0x00: "a local catastrophic error of DDP", "RFC 5041 §7.2";
    INVALID_STAG = 1, 1, 0x00: "a tagged segment with an STag that is not valid", "RFC 5041 §7.1";
    BOUNDS = 1, 1, 0x01: "a tagged segment beyond its buffer", "RFC 5041 §7.1";
    STAG_OF_OTHER_STREAM = 1, 1, 0x02:
        "an STag not associated with the DDP stream", "RFC 5041 §7.2";
    TO_WRAP = 1, 1, 0x03: "a tagged segment whose Tagged Offset wraps", "RFC 5041 §7.1";
    TAGGED_VERSION = 1, 1, 0x04: "an invalid DDP version of a tagged segment", "RFC 5041 §4.1";
    INVALID_QN = 1, 2, 0x01: "an invalid queue number", "RFC 5041 §7.1";
    NO_BUFFER = 1, 2, 0x02: "an untagged message without a buffer", "RFC 5041 §7.1";
    INVALID_MSN = 1, 2, 0x03: "a message sequence number out of range", "RFC 5041 §7.1";
    INVALID_MO = 1, 2, 0x04: "an invalid message offset", "RFC 5041 §7.1";
    TOO_LONG = 1, 2, 0x05: "a message too long for its buffer", "RFC 5041 §7.1";
    UNTAGGED_VERSION = 1, 2, 0x06:
        "an invalid DDP version of an untagged segment", "RFC 5041 §4.1";
    CLOSED = 2, 0, 0x01: "a TCP connection that was closed or lost", "RFC 5044 §8";
    CRC = 2, 0, 0x02: "an FPDU with a wrong CRC", "RFC 5044 §8";
    FPDU_START = 2, 0, 0x03: "a marker or a ULPDU Length that fits no FPDU", "RFC 5044 §8";
    STARTUP = 2, 0, 0x04: "an invalid startup of MPA", "RFC 5044 §8";
    MPA_CATASTROPHIC = 2, 0, 0x05: "a local catastrophic error of MPA", "RFC 6581 §8";
    INSUFFICIENT_IRD = 2, 0, 0x06: "insufficient IRD resources", "RFC 6581 §9.1";
    NO_RTR = 2, 0, 0x07: "no matching RTR option", "RFC 6581 §9.2";
}

impl TerminateCode {
    /// The code for the log, by its name where it has one.
    #[must_use]
    pub fn violation(self) -> Violation {
        let known = Self::ALL.iter().find(|(code, _)| *code == self);
        known.map_or(UNKNOWN, |(_, violation)| *violation)
    }

    /// The first 16 bits of the Terminate Control field.
    #[must_use]
    pub const fn bits(self) -> u16 {
        let kinds = (self.layer & 0xf) << 4 | self.kind & 0xf;
        u16::from_be_bytes([kinds, self.code])
    }

    /// The reverse of [`Self::bits`].
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        let [kinds, code] = bits.to_be_bytes();
        Self {
            layer: kinds >> 4,
            kind: kinds & 0xf,
            code,
        }
    }

    /// What is told of the segment that was in error (RFC 5040 Figure 10): its DDP header, and its
    /// RDMA header if it has one.
    const fn includes(self) -> (bool, bool) {
        match (self.layer, self.kind) {
            (0, 1) => (true, true),
            (0, 2) | (1, _) => (true, false),
            _ => (false, false),
        }
    }
}

const UNKNOWN: Violation = Violation {
    rule: "a Terminate with a code that no standard has",
    clause: "RFC 5040 §4.8",
};

const UNKNOWN_BY_PEER: Violation = Violation {
    rule: "a Terminate of the peer, with a code that no standard has",
    clause: "RFC 5040 §4.8",
};

/// A Terminate message, without the headers of DDP and RDMAP in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminate {
    /// Why.
    pub code: TerminateCode,
    /// The segment that was in error.
    pub segment: Option<TerminatedSegment>,
}

/// What a Terminate tells of the segment that was in error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminatedSegment {
    /// Its length, headers included, in bytes.
    pub len: u16,
    /// Its DDP header as it came: 14 bytes of a tagged segment, 18 of an untagged one.
    pub header: Vec<u8>,
    /// The RDMA Read Request, with what was left of it to be answered.
    pub request: Option<ReadRequest>,
}

/// Flags of the third byte: DDP Segment Length valid, DDP Header Included, RDMAP Header Included.
const LENGTH_VALID: u8 = 0x80;
const DDP_INCLUDED: u8 = 0x40;
const RDMA_INCLUDED: u8 = 0x20;

/// Bytes of the Terminate Control field and what is reserved behind it.
const CONTROL_LEN: usize = 4;

impl Terminate {
    /// For an error that `ulpdu` led to. Nothing but the code is told where the segment is too
    /// short to have a header, or is none.
    #[must_use]
    pub fn new(code: TerminateCode, ulpdu: &[u8]) -> Self {
        let (with_header, with_request) = code.includes();
        let header = ulpdu.get(..ddp::header_len(ulpdu)).unwrap_or_default();
        let segment = (with_header && !header.is_empty()).then(|| TerminatedSegment {
            len: ulpdu.len() as u16,
            header: header.to_vec(),
            request: with_request.then(|| request_in(ulpdu)).flatten(),
        });
        Self { code, segment }
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let [kinds, code] = self.code.bits().to_be_bytes();
        let mut bytes = vec![kinds, code, 0, 0];
        let Some(segment) = &self.segment else {
            return bytes;
        };
        bytes[2] = LENGTH_VALID | DDP_INCLUDED;
        bytes.extend_from_slice(&segment.len.to_be_bytes());
        bytes.extend_from_slice(&segment.header);
        if let Some(request) = &segment.request {
            bytes[2] |= RDMA_INCLUDED;
            bytes.extend_from_slice(&request.encode());
        }
        bytes
    }

    /// Reads one; `None` if it has no code. Where it is too short for what it says to hold, nothing
    /// is known of the segment: siw says for some codes that a request follows, and sends none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let ([kinds, code, flags, _], rest) = bytes.split_first_chunk::<CONTROL_LEN>()?;
        let code = TerminateCode::from_bits(u16::from_be_bytes([*kinds, *code]));
        let is_included = flags & DDP_INCLUDED != 0;
        let segment = is_included.then(|| parse_segment(*flags, rest)).flatten();
        Some(Self { code, segment })
    }
}

fn parse_segment(flags: u8, bytes: &[u8]) -> Option<TerminatedSegment> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (header, rest) = rest.split_at_checked(ddp::header_len(rest))?;
    let request = if flags & RDMA_INCLUDED == 0 {
        None
    } else {
        Some(ReadRequest::parse(rest.first_chunk()?))
    };
    Some(TerminatedSegment {
        len: u16::from_be_bytes(*len),
        header: header.to_vec(),
        request,
    })
}

/// The RDMA Read Request that a segment holds.
fn request_in(ulpdu: &[u8]) -> Option<ReadRequest> {
    let (DdpHeader::Untagged(header), payload) = DdpHeader::parse(ulpdu).ok()? else {
        return None;
    };
    let is_request = header.opcode == Opcode::READ_REQUEST;
    is_request.then(|| payload.first_chunk().map(ReadRequest::parse))?
}

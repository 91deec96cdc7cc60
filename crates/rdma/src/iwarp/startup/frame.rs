//! Request and Reply Frames as they stand in the stream (RFC 5044 §7.1.1, RFC 6581 §6 and §9).

use scsi::violation::Violation;

/// Bytes before the private data.
const HEADER_LEN: usize = 20;
/// The longest private data, the data of the enhanced startup included, in bytes.
pub const MAX_PRIVATE: usize = 512;
/// Bytes of the data of the enhanced startup, at the beginning of the private data.
const ENHANCED_LEN: usize = 4;

/// Flags of byte 16.
const MARKERS: u8 = 0x80;
const CRC: u8 = 0x40;
const REJECTED: u8 = 0x20;
const ENHANCED: u8 = 0x10;
/// Reserved by the RFCs, so a peer that does not know it ignores it: siw signals that it takes
/// FPDUs longer than a segment of TCP.
const LONG_FPDUS: u8 = 0x08;

/// Flags in the two halves of the enhanced data, above depths of 14 bits.
const HIGH: u16 = 0x8000;
const LOW: u16 = 0x4000;
const DEPTH: u16 = 0x3fff;

/// Which of the two frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first one.
    Request,
    /// The answer to it.
    Reply,
}

impl FrameKind {
    const fn key(self) -> &'static [u8; 16] {
        match self {
            Self::Request => b"MPA ID Req Frame",
            Self::Reply => b"MPA ID Rep Frame",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Request => Self::Reply,
            Self::Reply => Self::Request,
        }
    }
}

/// A Request or a Reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartupFrame {
    /// Which.
    pub kind: FrameKind,
    /// Revision of MPA: 1, or 2 (RFC 6581).
    pub revision: u8,
    /// M: the sender demands markers in what is sent to it.
    pub markers: bool,
    /// C: the sender asks for CRCs.
    pub crc: bool,
    /// R: the connection is rejected. Of a Reply.
    pub rejected: bool,
    /// siw's own bit: FPDUs longer than a segment of TCP are taken.
    pub long_fpdus: bool,
    /// S: data of the enhanced startup. Of revision 2.
    pub enhanced: Option<EnhancedData>,
    /// The consumer's private data.
    pub private: Vec<u8>,
}

/// The data of the enhanced startup (RFC 6581 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnhancedData {
    /// Reads of the receiver that the sender takes. 14 bits.
    pub ird: u16,
    /// Reads that the sender wants to have outstanding, or will have. 14 bits.
    pub ord: u16,
    /// A: the peer-to-peer model, and what may tell that the initiator is ready to receive.
    pub peer_to_peer: Option<RtrKinds>,
}

/// The messages that may tell that the initiator is ready to receive; each is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtrKinds {
    /// B: a Send.
    pub send: bool,
    /// C: an RDMA Write.
    pub write: bool,
    /// D: an RDMA Read.
    pub read: bool,
}

impl RtrKinds {
    /// Any of them.
    pub const ALL: Self = Self {
        send: true,
        write: true,
        read: true,
    };
}

/// A connection that cannot begin. It is closed without a word, as MPA has no message for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.violation())]
pub enum StartupError {
    /// The first bytes are not the key.
    Key,
    /// Both ends began as initiators, or neither did.
    Kind(FrameKind),
    /// The revision is not one that this end knows.
    Revision(u8),
    /// The private data is too long.
    PrivateTooLong(u16),
    /// The private data has no room for what the S flag announces.
    EnhancedTooShort(u16),
    /// There is something behind the frame.
    OutOfTurn,
    /// A Reply without the data that the Request has asked for.
    NotEnhanced,
    /// The R flag is set.
    Rejected,
}

impl StartupError {
    /// The rule that was broken.
    #[must_use]
    pub const fn violation(self) -> Violation {
        let (rule, clause) = match self {
            Self::Key => ("what comes is no frame of MPA", "RFC 5044 §7.1.1"),
            Self::Kind(FrameKind::Request) => {
                ("an MPA Request where a Reply is due", "RFC 5044 §7.1.2")
            }
            Self::Kind(FrameKind::Reply) => {
                ("an MPA Reply where a Request is due", "RFC 5044 §7.1.2")
            }
            Self::Revision(_) => ("a revision of MPA other than 1 and 2", "RFC 5044 §7.1.1"),
            Self::PrivateTooLong(_) => (
                "an MPA frame with private data above 512 bytes",
                "RFC 5044 §7.1.1",
            ),
            Self::EnhancedTooShort(_) => (
                "an enhanced MPA frame without room for its depths",
                "RFC 6581 §6",
            ),
            Self::OutOfTurn => (
                "bytes behind an MPA frame, before their turn",
                "RFC 5044 §7.1.2",
            ),
            Self::NotEnhanced => (
                "an MPA Reply that is not enhanced, as its Request was",
                "RFC 6581 §10",
            ),
            Self::Rejected => (
                "an MPA Reply that rejects the connection",
                "RFC 5044 §7.1.1",
            ),
        };
        Violation { rule, clause }
    }
}

impl StartupFrame {
    /// Writes it. What of the private data is beyond [`MAX_PRIVATE`] is left out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let enhanced = self.enhanced.map(EnhancedData::encode);
        let enhanced = enhanced.as_ref().map_or(&[][..], |data| data);
        let private = &self.private[..self.private.len().min(MAX_PRIVATE - enhanced.len())];
        let len = (enhanced.len() + private.len()) as u16;
        let [high, low] = len.to_be_bytes();
        let mut bytes = self.kind.key().to_vec();
        bytes.extend([self.flags(), self.revision, high, low]);
        bytes.extend_from_slice(enhanced);
        bytes.extend_from_slice(private);
        bytes
    }

    fn flags(&self) -> u8 {
        let flag = |set, mask| if set { mask } else { 0 };
        flag(self.markers, MARKERS)
            | flag(self.crc, CRC)
            | flag(self.rejected, REJECTED)
            | flag(self.enhanced.is_some(), ENHANCED)
            | flag(self.long_fpdus, LONG_FPDUS)
    }

    /// Reads a whole frame that [`private_len`] has let pass.
    fn parse(kind: FrameKind, header: &[u8; HEADER_LEN], private: &[u8]) -> Self {
        let (flags, revision) = (header[16], header[17]);
        let is_enhanced = is_enhanced(flags, revision);
        let (enhanced, private) = match private.split_first_chunk() {
            Some((data, rest)) if is_enhanced => (Some(EnhancedData::parse(*data)), rest),
            _ => (None, private),
        };
        Self {
            kind,
            revision,
            markers: flags & MARKERS != 0,
            crc: flags & CRC != 0,
            rejected: flags & REJECTED != 0 && kind == FrameKind::Reply,
            long_fpdus: flags & LONG_FPDUS != 0,
            enhanced,
            private: private.to_vec(),
        }
    }
}

/// In revision 1 the S flag is one of the reserved bits, which are not looked at.
const fn is_enhanced(flags: u8, revision: u8) -> bool {
    flags & ENHANCED != 0 && revision >= 2
}

impl EnhancedData {
    fn encode(self) -> [u8; ENHANCED_LEN] {
        let flag = |set: fn(RtrKinds) -> bool, mask| {
            let is_set = self.peer_to_peer.is_some_and(set);
            if is_set { mask } else { 0 }
        };
        let ird = self.ird & DEPTH | flag(|_| true, HIGH) | flag(|kinds| kinds.send, LOW);
        let ord =
            self.ord & DEPTH | flag(|kinds| kinds.write, HIGH) | flag(|kinds| kinds.read, LOW);
        let ([a, b], [c, d]) = (ird.to_be_bytes(), ord.to_be_bytes());
        [a, b, c, d]
    }

    /// Where A is 0, the other flags are not looked at (RFC 6581 §9.2).
    fn parse([a, b, c, d]: [u8; ENHANCED_LEN]) -> Self {
        let (ird, ord) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let kinds = RtrKinds {
            send: ird & LOW != 0,
            write: ord & HIGH != 0,
            read: ord & LOW != 0,
        };
        Self {
            ird: ird & DEPTH,
            ord: ord & DEPTH,
            peer_to_peer: (ird & HIGH != 0).then_some(kinds),
        }
    }
}

/// Reads the frame that a connection begins with, however it arrives. At most 532 bytes are kept.
#[derive(Debug)]
pub struct FrameReader {
    kind: FrameKind,
    held: Vec<u8>,
    is_done: bool,
}

impl FrameReader {
    /// Waits for a Request (in a responder) or a Reply.
    #[must_use]
    pub const fn new(kind: FrameKind) -> Self {
        Self {
            kind,
            held: Vec::new(),
            is_done: false,
        }
    }

    /// Takes bytes. `None`: the frame is not whole. Fails as soon as a byte is wrong, and for
    /// whatever comes behind the frame, in this call or a later one.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Option<StartupFrame>, StartupError> {
        let mut rest = bytes;
        self.hold(HEADER_LEN, &mut rest);
        self.check_key()?;
        let Some((header, _)) = self.held.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let (header, len) = (*header, private_len(header)?);
        self.hold(HEADER_LEN + len, &mut rest);
        if !rest.is_empty() {
            return Err(StartupError::OutOfTurn);
        }
        let private = &self.held[HEADER_LEN..];
        if private.len() < len || self.is_done {
            return Ok(None);
        }
        self.is_done = true;
        Ok(Some(StartupFrame::parse(self.kind, &header, private)))
    }

    /// Moves bytes into `held` until that has `len`, as far as they go.
    fn hold(&mut self, len: usize, bytes: &mut &[u8]) {
        let missing = len.saturating_sub(self.held.len()).min(bytes.len());
        let (now, rest) = bytes.split_at(missing);
        self.held.extend_from_slice(now);
        *bytes = rest;
    }

    /// What is there of the key. That it is the other frame's is sure when all of it is there.
    fn check_key(&self) -> Result<(), StartupError> {
        let begins = |kind: FrameKind| {
            let mut pairs = self.held.iter().zip(kind.key());
            pairs.all(|(came, due)| came == due)
        };
        let other = self.kind.other();
        match begins(other) {
            _ if begins(self.kind) => Ok(()),
            true if self.held.len() < other.key().len() => Ok(()),
            true => Err(StartupError::Kind(other)),
            false => Err(StartupError::Key),
        }
    }
}

/// PD_Length of a frame whose key is right, if revision and length can be.
fn private_len(header: &[u8; HEADER_LEN]) -> Result<usize, StartupError> {
    let (flags, revision) = (header[16], header[17]);
    let len = u16::from_be_bytes([header[18], header[19]]);
    if !(1..=2).contains(&revision) {
        return Err(StartupError::Revision(revision));
    }
    if usize::from(len) > MAX_PRIVATE {
        return Err(StartupError::PrivateTooLong(len));
    }
    if is_enhanced(flags, revision) && usize::from(len) < ENHANCED_LEN {
        return Err(StartupError::EnhancedTooShort(len));
    }
    Ok(usize::from(len))
}

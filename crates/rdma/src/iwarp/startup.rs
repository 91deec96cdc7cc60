//! How a connection begins: MPA Request and Reply Frames, and what both ends go by afterwards (RFC
//! 5044 §7.1, RFC 6581).
//!
//! | | initiator of MPA | responder |
//! |---|---|---|
//! | 1 | [`StartupConfig::request`] → | [`FrameReader`] |
//! | 2 | [`FrameReader`], [`StartupConfig::agree`] | ← [`StartupConfig::accept`] or [`StartupConfig::reject`] |
//! | 3 | its first FPDU → | waits for that before it sends one (RFC 5044 §7.1.2, rule 4) |
//!
//! Neither sends anything out of turn: bytes behind a Request come before its Reply, and bytes
//! behind a Reply come before the FPDU that they have to wait for. [`FrameReader`] refuses both.
//!
//! The private data is the consumer's; of iSER it is one word, that says what the sender can do.

mod frame;
#[cfg(test)]
mod tests;

pub use self::frame::{
    EnhancedData, FrameKind, FrameReader, MAX_PRIVATE, RtrKinds, StartupError, StartupFrame,
};
use super::terminate::TerminateCode;

/// What this end wants of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartupConfig {
    /// CRCs are asked for. RFC 5044 §4.4 wants them unless an administrator has said otherwise;
    /// they are used if either end asks.
    pub crc: bool,
    /// FPDUs longer than a segment of TCP are taken, up to [`LONG_FPDU`](super::fpdu::LONG_FPDU).
    pub long_fpdus: bool,
    /// The most reads of the peer that may be outstanding; at least 1.
    pub ird: u16,
    /// The most reads of ours that may be outstanding.
    pub ord: u16,
}

/// Which end of MPA this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpaRole {
    /// The one that has sent the Request; the active end of the TCP connection.
    Initiator,
    /// The one that has sent the Reply.
    Responder,
}

/// What both ends go by from the first FPDU on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Which end this is.
    pub role: MpaRole,
    /// Revision of MPA: 1, or 2 (RFC 6581).
    pub revision: u8,
    /// FPDUs have CRCs, both ways.
    pub crc: bool,
    /// The peer demands markers in what is sent to it.
    pub markers: bool,
    /// FPDUs may be longer than a segment of TCP, both ways.
    pub long_fpdus: bool,
    /// Reads of the peer that may be outstanding.
    pub ird: u16,
    /// Reads of ours that may be outstanding.
    pub ord: u16,
    /// The initiator begins with an empty message that means nothing but *ready to receive*.
    pub rtr: bool,
    /// What was agreed upon cannot be kept: the stream ends at once, and tells the peer this.
    pub refused: Option<TerminateCode>,
}

/// The reads that a peer is trusted to take which did not say how many it does: RFC 5044 alone
/// leaves that to the consumer.
const ORD_UNTOLD: u16 = 1;

/// In place of a depth: it is left to the consumers, and not to be changed (RFC 6581 §9.1).
const LEFT_TO_CONSUMER: u16 = 0x3fff;

impl StartupConfig {
    /// The Request that a connection begins with, in the client-server model. What of `private`
    /// is beyond 508 bytes is left out.
    #[must_use]
    pub fn request(&self, private: &[u8]) -> StartupFrame {
        StartupFrame {
            kind: FrameKind::Request,
            revision: 2,
            markers: false,
            crc: self.crc,
            rejected: false,
            long_fpdus: self.long_fpdus,
            enhanced: Some(EnhancedData {
                ird: self.ird.min(LEFT_TO_CONSUMER - 1),
                ord: self.ord.min(LEFT_TO_CONSUMER - 1),
                peer_to_peer: None,
            }),
            private: private.to_vec(),
        }
    }

    /// The Reply that accepts a Request, and what holds then.
    #[must_use]
    pub fn accept(&self, request: &StartupFrame, private: &[u8]) -> (StartupFrame, Agreed) {
        let asked = request.enhanced;
        let peer_to_peer = asked.and_then(|asked| asked.peer_to_peer);
        let ird = asked.map_or(self.ird, |asked| self.answer_ird(asked.ord, peer_to_peer));
        let ord = match asked.map(|asked| asked.ird) {
            Some(LEFT_TO_CONSUMER) => self.ord,
            Some(theirs) => self.ord.min(theirs),
            None => self.ord.min(ORD_UNTOLD),
        };
        let reply = StartupFrame {
            crc: self.crc || request.crc,
            enhanced: asked.map(|asked| EnhancedData {
                ird: unless_left(asked.ord, ird),
                ord: unless_left(asked.ird, ord),
                peer_to_peer: peer_to_peer.map(|_| RtrKinds::ALL),
            }),
            private: private.to_vec(),
            ..self.reply(request)
        };
        let agreed = Agreed {
            role: MpaRole::Responder,
            revision: reply.revision,
            crc: reply.crc,
            markers: request.markers,
            long_fpdus: reply.long_fpdus,
            ird,
            ord,
            rtr: peer_to_peer.is_some(),
            refused: None,
        };
        (reply, agreed)
    }

    /// Our IRD, for a peer that wants to have `ord` reads outstanding. An empty read that tells
    /// *ready to receive* needs one, too.
    fn answer_ird(&self, ord: u16, peer_to_peer: Option<RtrKinds>) -> u16 {
        match ord {
            LEFT_TO_CONSUMER => self.ird,
            0 if peer_to_peer.is_some() => 1,
            wanted => wanted.min(self.ird),
        }
    }

    /// The Reply that rejects a Request. The private data may say why.
    #[must_use]
    pub fn reject(&self, request: &StartupFrame, private: &[u8]) -> StartupFrame {
        StartupFrame {
            rejected: true,
            enhanced: request.enhanced.map(|asked| EnhancedData {
                ird: unless_left(asked.ord, self.ird),
                ord: unless_left(asked.ird, self.ord),
                peer_to_peer: asked.peer_to_peer.map(|_| RtrKinds::ALL),
            }),
            private: private.to_vec(),
            ..self.reply(request)
        }
    }

    /// What each Reply has.
    fn reply(&self, request: &StartupFrame) -> StartupFrame {
        StartupFrame {
            kind: FrameKind::Reply,
            revision: request.revision,
            markers: false,
            crc: self.crc,
            rejected: false,
            long_fpdus: self.long_fpdus && request.long_fpdus,
            enhanced: None,
            private: Vec::new(),
        }
    }

    /// What holds after the Reply to [`Self::request`]. Fails if the connection was rejected, or
    /// the peer does not know RFC 6581. A Reply that asks for more than was offered leads to a
    /// stream that ends at once, and says so.
    pub fn agree(&self, reply: &StartupFrame) -> Result<Agreed, StartupError> {
        if reply.rejected {
            return Err(StartupError::Rejected);
        }
        let answer = reply.enhanced.ok_or(StartupError::NotEnhanced)?;
        let wants_reads = answer.ord != LEFT_TO_CONSUMER && answer.ord > self.ird;
        let refused = if wants_reads {
            Some(TerminateCode::INSUFFICIENT_IRD)
        } else {
            // It was not asked for: no kind of it is ours.
            answer.peer_to_peer.map(|_| TerminateCode::NO_RTR)
        };
        Ok(Agreed {
            role: MpaRole::Initiator,
            revision: reply.revision,
            crc: self.crc || reply.crc,
            markers: reply.markers,
            long_fpdus: self.long_fpdus && reply.long_fpdus,
            ird: self.ird,
            ord: match answer.ird {
                LEFT_TO_CONSUMER => self.ord,
                theirs => self.ord.min(theirs),
            },
            rtr: false,
            refused,
        })
    }
}

/// What is answered to a depth: that it is left to the consumer, if the peer left it.
const fn unless_left(asked: u16, answer: u16) -> u16 {
    if asked == LEFT_TO_CONSUMER || answer > LEFT_TO_CONSUMER {
        LEFT_TO_CONSUMER
    } else {
        answer
    }
}

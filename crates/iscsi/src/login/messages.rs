//! A login over RDMA: each PDU is a message of its own, behind an iSER header (RFC 7145 §9.1).
//!
//! By the standard the login goes over a stream of bytes, which then becomes a queue pair. Where
//! there is no such stream, its PDUs go as messages (RFC 7145 Appendix A); Linux does so over
//! iWARP too.

use rdma::verbs::{QueuePair, SendHeader, Work};
use scsi::medium::{Lease, Now};
use scsi::violation::Violation;

use super::Login;
use crate::wire::bhs::{BHS_LEN, Bhs};
use crate::wire::framer::padding;
use crate::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};

impl<L: Lease> Login<L> {
    /// Takes a message, after `poll` has given `None`. Returns `false` for one that comes after the
    /// last request: it is the session's.
    pub fn receive_message(&mut self, now: Now, message: &[u8]) -> bool {
        if !self.takes_requests() {
            return false;
        }
        match pdu(message) {
            Ok(bytes) => {
                self.receive(now, &bytes);
            }
            Err(violation) => self.close(violation),
        }
        true
    }

    /// Posts what is to be sent; returns whether there was anything.
    pub fn post(&mut self, pair: &mut impl QueuePair<L>) -> bool {
        let outgoing = std::mem::take(&mut self.outgoing);
        let mut rest = &outgoing[..];
        while let Some((head, behind)) = rest.split_first_chunk::<BHS_LEN>() {
            let length = Bhs(*head).data_len();
            let len = length as usize + usize::from(padding(length));
            let (data, behind) = behind.split_at_checked(len).unwrap_or((behind, &[]));
            rest = behind;
            let iser = IserHeader::Control(AdvertisedBuffers::default()).encode();
            if let Some(header) = SendHeader::new(&[&iser, head]) {
                pair.post(Work::Send {
                    header,
                    data: (len > 0).then(|| L::from_bytes(data.to_vec())),
                    invalidate: None,
                });
            }
        }
        !outgoing.is_empty()
    }
}

/// The PDU of a message, with its padding.
fn pdu(message: &[u8]) -> Result<Vec<u8>, Violation> {
    let (header, rest) = IserHeader::split(message)?;
    if !matches!(header, IserHeader::Control(_)) {
        return Err(HELLO);
    }
    let pdu = ControlMessage::split(rest)?;
    let padding = &[0; 3][..usize::from(padding(pdu.bhs.data_len()))];
    Ok([&pdu.bhs.0, pdu.ahs, pdu.data, padding].concat())
}

const HELLO: Violation = Violation {
    rule: "an iSER Hello during login",
    clause: "RFC 7145 §5.1.3",
};

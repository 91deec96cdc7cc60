//! RDMA Read Requests that are not heard: an initiator that owes data.
//!
//! FPDUs without markers are told from one another by their lengths. While data is withheld, a
//! request is kept back; what comes behind it is heard. It is given later, with its turn in its
//! queue.

use rdma::iwarp::ddp::Opcode;

/// What is kept back.
#[derive(Debug, Default)]
pub(super) struct Withholding {
    is_on: bool,
    /// The FPDU that is coming, if it may be a request.
    current: Vec<u8>,
    withheld: Vec<u8>,
}

impl Withholding {
    pub(super) const fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) const fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// What is heard with these bytes: whole FPDUs.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = Vec::new();
        if !self.is_on {
            heard.append(&mut self.withheld);
        }
        self.current.extend_from_slice(bytes);
        while let Some(len) = whole_fpdu(&self.current) {
            let fpdu: Vec<u8> = self.current.drain(..len).collect();
            let kept = if self.is_on && is_read_request(&fpdu) {
                &mut self.withheld
            } else {
                &mut heard
            };
            kept.extend(fpdu);
        }
        heard
    }
}

/// Bytes of the FPDU that stands first, if it is whole (RFC 5044 §4).
fn whole_fpdu(bytes: &[u8]) -> Option<usize> {
    let len = u16::from_be_bytes(*bytes.first_chunk()?);
    let len = (2 + usize::from(len)).next_multiple_of(4) + CRC_LEN;
    (len <= bytes.len()).then_some(len)
}

/// Behind the length stands the control byte of DDP, and then that of RDMAP.
fn is_read_request(fpdu: &[u8]) -> bool {
    fpdu.get(3)
        .is_some_and(|control| control & 0xf == Opcode::READ_REQUEST.0)
}

const CRC_LEN: usize = 4;

//! RFC 7143 §11.9: Asynchronous Message.

use scsi::wire::lun::Lun;

use super::bhs::{Bhs, Itt, Opcode, Stamps};

/// An Asynchronous Message. Its data segment holds SenseLength (2 bytes), sense data, event data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncMessage {
    /// Logical unit, of a SCSI event.
    pub lun: Lun,
    /// StatSN, ExpCmdSN, MaxCmdSN.
    pub stamps: Stamps,
    /// AsyncEvent: [`event`] lists them.
    pub event: u8,
    /// AsyncVCode.
    pub vendor_code: u8,
    /// Parameter1 to Parameter3.
    pub parameters: [u16; 3],
}

/// Event codes.
#[expect(missing_docs, reason = "the names are those of the events")]
pub mod event {
    pub const SCSI: u8 = 0;
    pub const LOGOUT_REQUEST: u8 = 1;
    pub const CONNECTION_DROP: u8 = 2;
    pub const SESSION_DROP: u8 = 3;
    pub const NEGOTIATION_REQUEST: u8 = 4;
    pub const TASK_TERMINATION: u8 = 5;
}

impl AsyncMessage {
    /// Reads a header.
    #[must_use]
    pub fn decode(bhs: &Bhs) -> Self {
        Self {
            lun: bhs.lun(),
            stamps: Stamps::decode(bhs),
            event: bhs.0[36],
            vendor_code: bhs.0[37],
            parameters: [bhs.half(38), bhs.half(40), bhs.half(42)],
        }
    }

    /// Writes the header; DataSegmentLength is 0.
    #[must_use]
    pub fn encode(&self) -> Bhs {
        let mut bhs = Bhs::new(Opcode::AsyncMessage);
        bhs.0[1] = 0x80;
        bhs.put_lun(self.lun);
        bhs.put_itt(Itt::NONE);
        self.stamps.encode(&mut bhs);
        bhs.0[36] = self.event;
        bhs.0[37] = self.vendor_code;
        bhs.put_half(38, self.parameters[0]);
        bhs.put_half(40, self.parameters[1]);
        bhs.put_half(42, self.parameters[2]);
        bhs
    }
}

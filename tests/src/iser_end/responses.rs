//! Messages of the target, and what the initiator would have heard in their place over TCP.

use iscsi::wire::bhs::{Bhs, Opcode, Ttt};
use iscsi::wire::data::DataIn;
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};
use iscsi::wire::login::{LoginResponse, stage};
use iscsi::wire::scsi_command::ScsiResponse;
use iscsi::wire::serial::DataSn;
use iscsi::wire::task_management::TaskResponse;
use rdma::verbs::Stag;
use scsi::violation::Violation;
use scsi::wire::lun::Lun;

use super::memory::Command;
use super::{IserEnd, Link, keys};

impl IserEnd {
    /// Takes a message.
    pub(super) fn message(
        &mut self,
        message: &[u8],
        invalidated: Option<Stag>,
    ) -> Result<(), Violation> {
        let (header, rest) = IserHeader::split(message)?;
        let buffers = match header {
            IserHeader::Control(buffers) => buffers,
            IserHeader::HelloReply(reply) if self.awaits_hello_reply && !reply.reject => {
                self.awaits_hello_reply = false;
                return Ok(());
            }
            _ => return Err(UNASKED_GREETING),
        };
        if buffers != AdvertisedBuffers::default() {
            return Err(ADVERTISES);
        }
        let pdu = ControlMessage::split(rest)?;
        // They stand at the same place in all of them.
        self.stamps = ScsiResponse::decode(&pdu.bhs).stamps;
        if pdu.bhs.opcode() == Opcode::ScsiResponse {
            return self.response(&pdu, invalidated);
        }
        if invalidated.is_some() {
            return Err(INVALIDATES);
        }
        self.other(&pdu)
    }

    fn other(&mut self, pdu: &ControlMessage<'_>) -> Result<(), Violation> {
        match pdu.bhs.opcode() {
            Opcode::DataIn | Opcode::R2t => return Err(DATA_PDU),
            Opcode::LoginResponse => {
                let text = keys::answered(pdu.data);
                self.tell(pdu.bhs, &text);
                self.logged_in(&LoginResponse::decode(&pdu.bhs));
                return Ok(());
            }
            Opcode::TaskResponse => {
                if let Link::Open(stream) = &mut self.link {
                    let pdu = TaskResponse::decode(&pdu.bhs);
                    self.commands.managed(stream, &pdu);
                }
            }
            _ => {}
        }
        self.tell(pdu.bhs, pdu.data);
        Ok(())
    }

    fn logged_in(&mut self, pdu: &LoginResponse) {
        if self.has_hello && pdu.transit && pdu.next == stage::FULL_FEATURE {
            self.greet();
        }
    }

    /// A command has ended: its data, and then its status.
    fn response(
        &mut self,
        pdu: &ControlMessage<'_>,
        invalidated: Option<Stag>,
    ) -> Result<(), Violation> {
        let Link::Open(stream) = &mut self.link else {
            return Ok(());
        };
        let response = ScsiResponse::decode(&pdu.bhs);
        let command = self.commands.forget(stream, response.itt.0);
        let expected = command.as_ref().and_then(Command::invalidated);
        if invalidated != expected.filter(|_| self.settings.can_invalidate) {
            return Err(INVALIDATES);
        }
        if let Some(command) = command {
            let data = command.data_in(&response)?;
            self.data_in(&response, &data);
        }
        self.tell(pdu.bhs, pdu.data);
        Ok(())
    }

    /// Data-In PDUs.
    fn data_in(&mut self, response: &ScsiResponse, data: &[u8]) {
        let mut pieces = data.chunks(PIECE).enumerate().peekable();
        while let Some((number, piece)) = pieces.next() {
            let pdu = DataIn {
                last: pieces.peek().is_none(),
                acknowledge: false,
                status: None,
                lun: Lun([0; 8]),
                itt: response.itt,
                ttt: Ttt::NONE,
                stamps: response.stamps,
                data_sn: DataSn(number as u32),
                offset: (number * PIECE) as u32,
            };
            let bhs: Bhs = pdu.encode();
            self.tell(bhs, piece);
        }
    }
}

/// Bytes of a Data-In PDU.
const PIECE: usize = 8192;

const UNASKED_GREETING: Violation = Violation {
    rule: "a Hello, or a HelloReply that is not due or rejects",
    clause: "RFC 7145 §5.1.3",
};

const ADVERTISES: Violation = Violation {
    rule: "an STag advertised by a target",
    clause: "RFC 7145 §9.2",
};

const INVALIDATES: Violation = Violation {
    rule: "an STag invalidated other than that of the command",
    clause: "RFC 7145 §7.3.2",
};

const DATA_PDU: Violation = Violation {
    rule: "a Data-In or R2T as a PDU",
    clause: "RFC 7145 §7.3.5",
};

//! What an initiator sends, in one line a PDU.

use crate::test_support::{flag, ttt};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::control::{NopOut, TextRequest};
use crate::wire::data::DataOut;
use crate::wire::login::{LoginRequest, LogoutRequest};
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::task_management::TaskRequest;

fn tag(itt: Itt) -> String {
    if itt == Itt::NONE {
        "-".into()
    } else {
        format!("#{:x}", itt.0)
    }
}

/// A PDU in one line; `#10000` is the Initiator Task Tag, `[a+b]` b bytes from a on, `|` a null.
pub(super) fn line(bhs: &Bhs, data: &[u8]) -> String {
    let itt = tag(bhs.itt());
    let text = String::from_utf8_lossy(data).replace('\0', "|");
    match bhs.opcode() {
        Opcode::LoginRequest => {
            let pdu = LoginRequest::decode(bhs);
            let next = if pdu.transit {
                format!(" T {}", pdu.next)
            } else {
                String::new()
            };
            format!("Login {}{next}{} {text}", pdu.current, flag(pdu.more, " C"))
        }
        Opcode::ScsiCommand => {
            let pdu = ScsiCommand::decode(bhs);
            format!(
                "Command {itt}{}{}{} {:02x} {} [0+{}]",
                flag(pdu.last, " F"),
                flag(pdu.read, " R"),
                flag(pdu.write, " W"),
                pdu.cdb[0],
                pdu.expected,
                data.len()
            )
        }
        Opcode::DataOut => {
            let pdu = DataOut::decode(bhs);
            format!(
                "Data-Out {itt}{} sn={} [{}+{}]{}",
                ttt(pdu.ttt),
                pdu.data_sn.0,
                pdu.offset,
                data.len(),
                flag(pdu.last, " F"),
            )
        }
        Opcode::TaskRequest => {
            let pdu = TaskRequest::decode(bhs);
            format!(
                "Task {itt} {} lun={:?} of {} {}",
                pdu.function,
                pdu.lun.index(),
                tag(pdu.referenced),
                pdu.ref_cmd_sn.0
            )
        }
        Opcode::NopOut => format!("NOP-Out {itt}{}", ttt(NopOut::decode(bhs).ttt)),
        Opcode::TextRequest => {
            let pdu = TextRequest::decode(bhs);
            format!("Text {itt}{}{} {text}", flag(pdu.last, " F"), ttt(pdu.ttt))
        }
        Opcode::LogoutRequest => format!("Logout {itt} {}", LogoutRequest::decode(bhs).reason),
        other => format!("{other:?}"),
    }
}

//! What a session sends, in one line a PDU.

use scsi::residual::Residual;

use crate::test_support::{flag, ttt};
use crate::wire::bhs::{Bhs, Itt, Opcode, Stamps};
use crate::wire::control::{AsyncMessage, NopIn, Reject, TextResponse};
use crate::wire::data::{DataIn, R2t};
use crate::wire::login::LogoutResponse;
use crate::wire::scsi_command::ScsiResponse;
use crate::wire::serial::{CmdSn, StatSn};
use crate::wire::task_management::TaskResponse;

/// StatSN, if it is valid, and the window.
pub(super) type Counted = (Option<StatSn>, (CmdSn, CmdSn));

type Numbers = (Counted, bool);

/// The numbers of a PDU, and whether it uses up a StatSN.
pub(super) fn numbers(bhs: &Bhs) -> Numbers {
    let stamps = NopIn::decode(bhs).stamps;
    let window = (stamps.exp_cmd_sn, stamps.max_cmd_sn);
    match bhs.opcode() {
        Opcode::DataIn if DataIn::decode(bhs).status.is_none() => {
            assert_eq!(stamps.stat_sn, Stamps::default().stat_sn);
            ((None, window), false)
        }
        Opcode::R2t => ((Some(stamps.stat_sn), window), false),
        Opcode::NopIn if bhs.itt() == Itt::NONE => ((Some(stamps.stat_sn), window), false),
        _ => ((Some(stamps.stat_sn), window), true),
    }
}

fn residual(residual: Residual) -> String {
    match residual {
        Residual::Exact => String::new(),
        Residual::Overflow(count) => format!(" O={count}"),
        Residual::Underflow(count) => format!(" U={count}"),
    }
}

/// A PDU in one line; `#1` is the Initiator Task Tag, `[a+b]` b bytes from a on.
pub(in super::super) fn line(bhs: &Bhs, data: &[u8]) -> String {
    let itt = if bhs.itt() == Itt::NONE {
        "-".into()
    } else {
        format!("#{}", bhs.itt().0)
    };
    match bhs.opcode() {
        Opcode::DataIn => data_in_line(&itt, &DataIn::decode(bhs), data.len()),
        Opcode::ScsiResponse => response_line(&itt, &ScsiResponse::decode(bhs), data),
        Opcode::R2t => {
            let pdu = R2t::decode(bhs);
            format!(
                "R2T {itt} ttt={:x} sn={} [{}+{}]",
                pdu.ttt.0, pdu.r2t_sn.0, pdu.offset, pdu.desired
            )
        }
        Opcode::NopIn => {
            let pdu = NopIn::decode(bhs);
            let text = String::from_utf8_lossy(data).into_owned();
            format!("NOP-In {itt}{} {text:?}", ttt(pdu.ttt))
        }
        Opcode::TaskResponse => {
            let pdu = TaskResponse::decode(bhs);
            let information = if pdu.information == [0; 3] {
                String::new()
            } else {
                format!(" {:02x?}", pdu.information)
            };
            format!("Task Response {itt} {}{information}", pdu.response)
        }
        Opcode::TextResponse => {
            let pdu = TextResponse::decode(bhs);
            let text = String::from_utf8_lossy(data).replace('\0', "|");
            format!(
                "Text Response {itt}{}{}{} {text}",
                flag(pdu.last, " F"),
                flag(pdu.more, " C"),
                ttt(pdu.ttt)
            )
        }
        Opcode::LogoutResponse => {
            format!(
                "Logout Response {itt} {}",
                LogoutResponse::decode(bhs).response
            )
        }
        Opcode::AsyncMessage => {
            let pdu = AsyncMessage::decode(bhs);
            format!("Async {} {:?} {:02x?}", pdu.event, pdu.parameters, data)
        }
        Opcode::Reject => {
            let header = Bhs(*data.first_chunk().unwrap());
            format!(
                "Reject {:02x} of {:?}",
                Reject::decode(bhs).reason,
                header.opcode()
            )
        }
        other => format!("{other:?}"),
    }
}

fn data_in_line(itt: &str, pdu: &DataIn, len: usize) -> String {
    let status = pdu.status.map_or(String::new(), |ending| {
        format!(" S {:02x}{}", ending.status, residual(ending.residual))
    });
    format!(
        "Data-In {itt} sn={} [{}+{len}]{}{status}",
        pdu.data_sn.0,
        pdu.offset,
        flag(pdu.last, " F"),
    )
}

pub(super) fn response_line(itt: &str, pdu: &ScsiResponse, data: &[u8]) -> String {
    let sense = match data {
        [_, _, sense @ ..] if sense.len() >= 14 => {
            format!(" sense={:x}/{:02x}{:02x}", sense[2], sense[12], sense[13])
        }
        _ => String::new(),
    };
    let read = match pdu.read_residual {
        Residual::Exact => String::new(),
        other => format!(" read{}", residual(other)),
    };
    format!(
        "Response {itt} {:02x}{}{read}{sense}",
        pdu.status,
        residual(pdu.residual)
    )
}

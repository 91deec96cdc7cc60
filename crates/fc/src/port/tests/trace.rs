//! What a frame says, in a line.

use crate::wire::els::{Code, Els, Reject, Reply};
use crate::wire::ethernet::{self, Header};
use crate::wire::fcoe::{self, Frame};
use crate::wire::fcp::{Cmnd, Rsp, XferRdy};
use crate::wire::fip::Message;
use crate::wire::frame::{RCtl, Type};

/// A frame.
pub(super) fn line(octets: &[u8]) -> String {
    let (ethernet, payload) = Header::parse(octets).unwrap();
    match ethernet.ethertype {
        ethernet::FIP => format!("FIP {:?}", Message::parse(payload).unwrap().operation),
        _ => fc(&fcoe::decode(payload).unwrap()),
    }
}

fn fc(frame: &Frame<'_>) -> String {
    let (header, payload) = (&frame.header, frame.payload);
    let len = payload.len();
    match (header.kind, header.r_ctl) {
        (Type::ELS, RCtl::ELS_REQUEST) => request(&Els::parse(payload).unwrap()),
        (Type::ELS, RCtl::ELS_REPLY) => reply(payload),
        (Type::FCP, RCtl::UNSOLICITED_COMMAND) => {
            let cmnd = Cmnd::parse(payload).unwrap();
            format!("FCP_CMND {:02x} FCP_DL {}", cmnd.cdb[0], cmnd.data_len)
        }
        (Type::FCP, RCtl::SOLICITED_DATA) => {
            let (seq, at) = (header.seq_cnt, header.parameter);
            let last = if header.f_ctl.end_sequence() {
                ", last"
            } else {
                ""
            };
            format!("FCP_DATA SEQ_CNT {seq}, {len} at {at}{last}")
        }
        (Type::FCP, RCtl::DATA_DESCRIPTOR) => {
            let ready = XferRdy::parse(payload).unwrap();
            format!("FCP_XFER_RDY {} at {}", ready.burst, ready.offset)
        }
        (Type::FCP, RCtl::COMMAND_STATUS) => {
            format!("FCP_RSP {:02x}", Rsp::parse(payload).unwrap().status)
        }
        (Type::FCP, RCtl::SOLICITED_CONTROL) => "FCP_CONF".to_owned(),
        (Type::BLS, RCtl::ABTS) => "ABTS".to_owned(),
        (Type::BLS, RCtl::BA_ACC) => "BA_ACC".to_owned(),
        (Type::BLS, RCtl::BA_RJT) => "BA_RJT".to_owned(),
        (kind, r_ctl) => format!("R_CTL {r_ctl:?} TYPE {kind:?}"),
    }
}

fn request(els: &Els) -> String {
    match els {
        Els::Plogi(says) => format!("PLOGI {} bytes", says.receive_size),
        Els::Prli(pages) => format!("PRLI {:03x}", pages[0].parameters),
        other => other.code().to_string(),
    }
}

fn reply(payload: &[u8]) -> String {
    match Reply::parse(Code::LOGO, payload).unwrap() {
        Reply::Reject(Reject {
            reason,
            explanation,
            ..
        }) => format!("LS_RJT {reason:02x}/{explanation:02x}"),
        _ => "LS_ACC".to_owned(),
    }
}

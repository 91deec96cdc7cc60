//! What a frame says, in a line.

use crate::wire::els::{Code, Els, LsRejectReason, Reply};
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::fcoe::{self, ReceivedFrame};
use crate::wire::fcp::{Cmnd, Rsp, XferRdy};
use crate::wire::fip::FipMessage;
use crate::wire::frame::{FrameType, RCtl};

/// A frame.
pub(super) fn line(bytes: &[u8]) -> String {
    let (ethernet, payload) = EthernetHeader::parse(bytes).unwrap();
    match ethernet.ethertype {
        ethernet::FIP => format!("FIP {:?}", FipMessage::parse(payload).unwrap().operation),
        _ => fc(&fcoe::decode(payload).unwrap()),
    }
}

fn fc(frame: &ReceivedFrame<'_>) -> String {
    let (header, payload) = (&frame.header, frame.payload);
    let len = payload.len();
    match (header.kind, header.r_ctl) {
        (FrameType::ELS, RCtl::ELS_REQUEST) => request(&Els::parse(payload).unwrap()),
        (FrameType::ELS, RCtl::ELS_REPLY) => reply(payload),
        (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) => {
            let cmnd = Cmnd::parse(payload).unwrap();
            format!("FCP_CMND {:02x} FCP_DL {}", cmnd.cdb[0], cmnd.data_len)
        }
        (FrameType::FCP, RCtl::SOLICITED_DATA) => {
            let (seq, at) = (header.seq_cnt, header.parameter);
            let last = if header.f_ctl.end_sequence() {
                ", last"
            } else {
                ""
            };
            format!("FCP_DATA SEQ_CNT {seq}, {len} at {at}{last}")
        }
        (FrameType::FCP, RCtl::DATA_DESCRIPTOR) => {
            let ready = XferRdy::parse(payload).unwrap();
            format!("FCP_XFER_RDY {} at {}", ready.burst, ready.offset)
        }
        (FrameType::FCP, RCtl::COMMAND_STATUS) => {
            format!("FCP_RSP {:02x}", Rsp::parse(payload).unwrap().status)
        }
        (FrameType::FCP, RCtl::SOLICITED_CONTROL) => "FCP_CONF".to_owned(),
        (FrameType::BLS, RCtl::ABTS) => "ABTS".to_owned(),
        (FrameType::BLS, RCtl::BA_ACC) => "BA_ACC".to_owned(),
        (FrameType::BLS, RCtl::BA_RJT) => "BA_RJT".to_owned(),
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
        Reply::Reject(LsRejectReason {
            reason,
            explanation,
            ..
        }) => format!("LS_RJT {reason:02x}/{explanation:02x}"),
        _ => "LS_ACC".to_owned(),
    }
}

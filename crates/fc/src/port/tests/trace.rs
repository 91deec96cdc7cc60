//! What a frame says, in a line: FIP too, and more of each than commands are told by.

use crate::tests::trace::words;
use crate::wire::els::Els;
use crate::wire::ethernet::{self, EthernetHeader};
use crate::wire::fcoe;
use crate::wire::fcp::Cmnd;
use crate::wire::fip::FipMessage;
use crate::wire::frame::{FrameType, RCtl};

/// A frame.
pub(super) fn line(bytes: &[u8]) -> String {
    let (ethernet, payload) = EthernetHeader::parse(bytes).unwrap();
    if ethernet.ethertype == ethernet::FIP {
        return format!("FIP {:?}", FipMessage::parse(payload).unwrap().operation);
    }
    let frame = fcoe::decode(payload).unwrap();
    let line = words(&frame);
    match (frame.header.kind, frame.header.r_ctl) {
        (FrameType::ELS, RCtl::ELS_REQUEST) => match Els::parse(frame.payload).unwrap() {
            Els::Plogi(says) => format!("{line} {} bytes", says.receive_size),
            Els::Prli(pages) => format!("{line} {:03x}", pages[0].parameters),
            _ => line,
        },
        (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) => {
            let cmnd = Cmnd::parse(frame.payload).unwrap();
            format!("{line} FCP_DL {}", cmnd.data_len)
        }
        (FrameType::FCP, RCtl::SOLICITED_DATA) => {
            format!("{line} SEQ_CNT {}", frame.header.seq_cnt)
        }
        _ => line,
    }
}

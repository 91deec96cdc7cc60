//! Frames in words, so that stories can be told by them.

use scsi::residual::Residual;

use crate::wire::bls::BaRjt;
use crate::wire::els::{Code, Els, Reply};
use crate::wire::fcoe::ReceivedFrame;
use crate::wire::fcp::{Cmnd, Rsp, XferRdy};
use crate::wire::frame::{FrameType, RCtl};

/// `> CMND 28`: to the target, a READ(10).
pub(crate) fn line(to_target: bool, frame: &ReceivedFrame<'_>) -> String {
    let way = if to_target { '>' } else { '<' };
    format!("{way} {}", words(frame))
}

/// What a frame says.
pub(crate) fn words(frame: &ReceivedFrame<'_>) -> String {
    let header = &frame.header;
    match (header.kind, header.r_ctl) {
        (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) => {
            let cmnd = Cmnd::parse(frame.payload).unwrap();
            match cmnd.management.0 {
                0 => format!("CMND {:02x}", cmnd.cdb[0]),
                flags => format!("CMND management {flags:02x}"),
            }
        }
        (FrameType::FCP, RCtl::SOLICITED_DATA) => {
            let end = if header.f_ctl.end_sequence() {
                " end"
            } else {
                ""
            };
            format!("DATA {}+{}{end}", header.parameter, frame.payload.len())
        }
        (FrameType::FCP, RCtl::DATA_DESCRIPTOR) => {
            let asked = XferRdy::parse(frame.payload).unwrap();
            format!("XFER_RDY {}+{}", asked.offset, asked.burst)
        }
        (FrameType::FCP, RCtl::COMMAND_STATUS) => response(&Rsp::parse(frame.payload).unwrap()),
        (FrameType::FCP, RCtl::SOLICITED_CONTROL) => "CONF".to_owned(),
        (FrameType::BLS, RCtl::ABTS) => "ABTS".to_owned(),
        (FrameType::BLS, RCtl::BA_ACC) => "BA_ACC".to_owned(),
        (FrameType::BLS, RCtl::BA_RJT) => {
            let why = BaRjt::parse(frame.payload).unwrap();
            format!("BA_RJT {:02x}", why.explanation)
        }
        (_, RCtl::ELS_REQUEST | RCtl::FC4_REQUEST) => request(&Els::parse(frame.payload).unwrap()),
        (_, RCtl::ELS_REPLY | RCtl::FC4_REPLY) => {
            match Reply::parse(Code::RRQ, frame.payload).unwrap() {
                Reply::Reject(why) => format!("LS_RJT {:02x} {:02x}", why.reason, why.explanation),
                _ => "LS_ACC".to_owned(),
            }
        }
        (kind, r_ctl) => format!("{kind:?} {r_ctl:?}"),
    }
}

fn response(rsp: &Rsp<'_>) -> String {
    let residual = match rsp.residual {
        Residual::Exact => String::new(),
        Residual::Overflow(by) => format!(" over {by}"),
        Residual::Underflow(by) => format!(" under {by}"),
    };
    let code = rsp.response.map(|code| format!(" code {code:02x}"));
    let sense = match rsp.sense.len() {
        0 => String::new(),
        len => format!(" sense of {len}"),
    };
    let confirm = if rsp.confirm { ", confirm" } else { "" };
    let code = code.unwrap_or_default();
    format!("RSP {:02x}{residual}{code}{sense}{confirm}", rsp.status)
}

fn request(els: &Els) -> String {
    match els {
        Els::Srr(srr) => match srr.unit {
            RCtl::SOLICITED_DATA => format!("SRR data from {}", srr.offset),
            RCtl::DATA_DESCRIPTOR => format!("SRR XFER_RDY from {}", srr.offset),
            _ => "SRR response".to_owned(),
        },
        other => other.code().to_string(),
    }
}

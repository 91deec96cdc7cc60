//! Frames of FCoE, as Linux sends them.

use std::collections::HashMap;

use fc::wire::els::{Code, Els, FcpParameters, Reply, ServicePage};
use fc::wire::ethernet::{self, Mac};
use fc::wire::fcoe::{self, Eof, FcoeError, ReceivedFrame, Sof};
use fc::wire::fcp::{Cmnd, Rsp, XferRdy};
use fc::wire::frame::{FrameType, OxId, RCtl, RxId};
use fc::wire::names::{FcId, Wwn};
use scsi::residual::Residual;

use crate::frames;

const MTU_2500: &str = include_str!("fcoe-vn2vn-mtu2500.hex");
const MTU_1500: &str = include_str!("fcoe-vn2vn-mtu1500.hex");

/// The frames of a file that are no FIP: title and bytes.
fn captured(file: &str) -> Vec<(&str, Vec<u8>)> {
    let mut frames = frames(file);
    frames.retain(|(_, bytes)| parts(bytes).0.ethertype == ethernet::FCOE);
    frames
}

fn parts(bytes: &[u8]) -> (ethernet::EthernetHeader, &[u8]) {
    ethernet::EthernetHeader::parse(bytes).unwrap()
}

/// What was asked for by exchanges, so that their answers can be read.
#[derive(Default)]
struct Asked(HashMap<(FcId, OxId), Code>);

impl Asked {
    /// The payload of a frame, taken for what it means and written again.
    fn again(&mut self, frame: &ReceivedFrame<'_>) -> Vec<u8> {
        let (header, payload) = (&frame.header, frame.payload);
        match (header.kind, header.r_ctl) {
            (FrameType::ELS, RCtl::ELS_REQUEST) => {
                let els = Els::parse(payload).unwrap();
                self.0.insert((header.s_id, header.ox_id), els.code());
                els.encode()
            }
            (FrameType::ELS, RCtl::ELS_REPLY) => {
                let to = self.0[&(header.d_id, header.ox_id)];
                Reply::parse(to, payload).unwrap().encode()
            }
            (FrameType::FCP, RCtl::UNSOLICITED_COMMAND) => {
                let cmnd = Cmnd::parse(payload).unwrap();
                put(cmnd.len(), |bytes| cmnd.put(bytes))
            }
            (FrameType::FCP, RCtl::DATA_DESCRIPTOR) => {
                XferRdy::parse(payload).unwrap().encode().into()
            }
            (FrameType::FCP, RCtl::COMMAND_STATUS) => {
                let rsp = Rsp::parse(payload).unwrap();
                put(rsp.len(), |bytes| rsp.put(bytes))
            }
            (FrameType::FCP, RCtl::SOLICITED_DATA) => payload.to_vec(),
            other => panic!("{other:?} was not captured"),
        }
    }
}

fn put(len: usize, write: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = vec![0; len];
    write(&mut bytes);
    bytes
}

#[test]
fn captured_frames_are_encoded_as_they_came() {
    for file in [MTU_2500, MTU_1500] {
        let mut asked = Asked::default();
        for (title, bytes) in captured(file) {
            let (ethernet, inside) = parts(&bytes);
            let frame = fcoe::decode(inside).unwrap_or_else(|error| panic!("{title}: {error}"));
            let payload = asked.again(&frame);
            let mut slot = vec![0xa5; fcoe::frame_len(&ethernet, payload.len())];
            let delimiters = (frame.sof, frame.eof);
            let write = |to: &mut [u8]| to.copy_from_slice(&payload);
            let len = payload.len();
            let len = fcoe::encode(&mut slot, &ethernet, delimiters, &frame.header, len, write);
            assert_eq!((&slot, len), (&bytes, bytes.len()), "{title}");
        }
    }
}

#[test]
fn a_captured_crc_does_not_survive_a_flipped_bit() {
    for (title, mut bytes) in captured(MTU_1500) {
        bytes[ethernet::EthernetHeader::BARE_LEN + 14 + 17] ^= 1;
        let decoded = fcoe::decode(parts(&bytes).1);
        assert_eq!(decoded, Err(FcoeError::Crc), "{title}");
    }
}

/// The first frame whose title ends so.
fn frame(file: &str, title: &str) -> Vec<u8> {
    let mut frames = captured(file).into_iter();
    frames.find(|frame| frame.0.ends_with(title)).unwrap().1
}

#[test]
fn a_captured_login_means_what_its_sender_meant() {
    let bytes = frame(MTU_2500, "ELS PLOGI");
    let (ethernet, inside) = parts(&bytes);
    let frame = fcoe::decode(inside).unwrap();
    let (from, to) = (FcId(0xd100), FcId(0x4100));
    assert_eq!((frame.header.s_id, frame.header.d_id), (from, to));
    assert_eq!(ethernet.src, Mac::of_port(Mac::VN2VN_FC_MAP, from));
    let begin = (frame.sof, frame.eof, frame.header.rx_id);
    assert_eq!(begin, (Sof::I3, Eof::T, RxId::UNASSIGNED));
    let Ok(Els::Plogi(login)) = Els::parse(frame.payload) else {
        panic!("{frame:?}");
    };
    assert_eq!(login.wwpn, Wwn(0x2000_5254_00eb_d100));
    assert_eq!(login.wwnn, Wwn(0x1000_5254_00eb_d100));
    let sizes = [login.receive_size, login.class_3.receive_size];
    assert_eq!(sizes, [2112, 2112]);
    assert!(login.class_3.is_valid());
    assert_eq!(login.e_d_tov_ms(), 2000);
}

#[test]
fn captured_service_parameters_are_those_of_the_kernel() {
    let bytes = frame(MTU_2500, "ELS PRLI");
    let frame = fcoe::decode(parts(&bytes).1).unwrap();
    let Ok(Els::Prli(pages)) = Els::parse(frame.payload) else {
        panic!("{frame:?}");
    };
    let both = FcpParameters::INITIATOR.with(FcpParameters::TARGET);
    let kernel = both
        .with(FcpParameters::CONFIRM)
        .with(FcpParameters::READ_XFER_RDY_DISABLED);
    assert_eq!(pages, [ServicePage::fcp(kernel)]);
}

#[test]
fn a_captured_write_is_asked_for_and_sent_by_offsets() {
    let cmnd = frame(MTU_1500, "FCP_CMND of WRITE(10)");
    let cmnd = fcoe::decode(parts(&cmnd).1).unwrap();
    let command = Cmnd::parse(cmnd.payload).unwrap();
    assert!(command.write && !command.read);
    assert_eq!((command.cdb[0], command.data_len), (0x2a, 128 * 512));
    let ready = frame(MTU_1500, "FCP_XFER_RDY of WRITE(10)");
    let ready = XferRdy::parse(fcoe::decode(parts(&ready).1).unwrap().payload).unwrap();
    assert_eq!((ready.offset, ready.burst), (0, command.data_len));
    let data = frame(MTU_1500, "FCP_DATA of WRITE(10)");
    let data = fcoe::decode(parts(&data).1).unwrap();
    assert!(data.header.f_ctl.relative_offset() && !data.header.f_ctl.exchange_responder());
    assert_eq!(data.header.ox_id, cmnd.header.ox_id);
    assert_eq!(data.header.parameter, 0);
}

#[test]
fn a_captured_response_has_status_sense_and_residual() {
    let bad = captured(MTU_2500).into_iter().find_map(|(_, bytes)| {
        let frame = fcoe::decode(parts(&bytes).1).unwrap();
        let rsp = (frame.header.r_ctl == RCtl::COMMAND_STATUS).then(|| Rsp::parse(frame.payload));
        let rsp = rsp?.unwrap();
        (rsp.status != 0).then(|| (rsp.status, rsp.residual, rsp.sense.to_vec()))
    });
    let (status, residual, sense) = bad.unwrap();
    assert_eq!((status, residual), (0x02, Residual::Exact));
    assert_eq!((sense[0] & 0x7f, sense[2] & 0x0f), (0x70, 0x05));
}

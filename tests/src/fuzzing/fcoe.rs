//! Frames of FCoE: what was written is read the same, damage is noticed; and what link services and
//! information units mean is written so that it means the same.

use fc::wire::bls::{BaAcc, BaRjt};
use fc::wire::els::{Code, Els, Reply};
use fc::wire::ethernet;
use fc::wire::fcoe::{self, Eof, FcoeError, ReceivedFrame, Sof};
use fc::wire::fcp::{Cmnd, Rsp, XferRdy};
use fc::wire::frame::{FCtl, FrameHeader, HEADER_LEN, MAX_PAYLOAD};

use super::script::Script;

/// See docs/fuzzing.md.
pub fn fcoe(data: &[u8]) {
    let mut script = Script::new(data);
    if script.flag() {
        return made(&mut script);
    }
    let Ok((ethernet, inside)) = ethernet::EthernetHeader::parse(script.rest()) else {
        return;
    };
    if let Ok(frame) = fcoe::decode(inside) {
        let bytes = written(&ethernet, &frame);
        assert_eq!(bytes.len(), ethernet.len() + inside.len());
        let inside = &bytes[ethernet.len()..];
        assert_eq!(
            ethernet::EthernetHeader::parse(&bytes),
            Ok((ethernet, inside))
        );
        assert_eq!(fcoe::decode(inside), Ok(frame));
    }
}

/// See docs/fuzzing.md.
pub fn els(data: &[u8]) {
    let mut script = Script::new(data);
    let to = Code(script.byte());
    let payload = script.rest();
    if let Ok(els) = Els::parse(payload) {
        assert_eq!(Els::parse(&els.encode()), Ok(els));
    }
    if let Ok(reply) = Reply::parse(to, payload) {
        assert_eq!(Reply::parse(to, &reply.encode()), Ok(reply));
    }
    if let Ok(accept) = BaAcc::parse(payload) {
        assert_eq!(BaAcc::parse(&accept.encode()), Ok(accept));
    }
    if let Ok(reject) = BaRjt::parse(payload) {
        assert_eq!(BaRjt::parse(&reject.encode()), Ok(reject));
    }
    information_units(payload);
}

fn information_units(payload: &[u8]) {
    let mut bytes = [0; MAX_PAYLOAD];
    if let Ok(cmnd) = Cmnd::parse(payload) {
        let bytes = &mut bytes[..cmnd.len()];
        cmnd.put(bytes);
        assert_eq!(Cmnd::parse(bytes), Ok(cmnd));
    }
    if let Ok(rsp) = Rsp::parse(payload)
        && rsp.len() <= MAX_PAYLOAD
    {
        let bytes = &mut bytes[..rsp.len()];
        rsp.put(bytes);
        assert_eq!(Rsp::parse(bytes), Ok(rsp));
    }
    if let Ok(ready) = XferRdy::parse(payload) {
        assert_eq!(XferRdy::parse(&ready.encode()), Ok(ready));
    }
}

/// A frame that is right comes out as it went in; one byte changed on the way is noticed.
fn made(script: &mut Script<'_>) {
    let (around, head) = (script.array::<18>(), script.array::<HEADER_LEN>());
    let (Ok((ethernet, _)), Ok(header)) = (
        ethernet::EthernetHeader::parse(&around),
        FrameHeader::parse(&head),
    ) else {
        panic!("a header that is whole");
    };
    let changed = (usize::from(script.half()), script.byte());
    let payload = script.take(MAX_PAYLOAD);
    let frame = ReceivedFrame {
        sof: script.pick(&[Sof::I3, Sof::N3]),
        eof: script.pick(&[Eof::N, Eof::T]),
        header: FrameHeader {
            f_ctl: header.f_ctl.with(FCtl::END_SEQUENCE),
            df_ctl: 0,
            ..header
        },
        payload,
    };
    let mut bytes = written(&ethernet, &frame);
    let inside = &mut bytes[ethernet.len()..];
    let fill = payload.len().next_multiple_of(4) - payload.len();
    let f_ctl = frame.header.f_ctl.with_fill(fill);
    let header = FrameHeader {
        f_ctl,
        ..frame.header
    };
    assert_eq!(fcoe::decode(inside), Ok(ReceivedFrame { header, ..frame }));
    let summed = HEAD_LEN..inside.len() - 4;
    let (at, change) = (summed.start + changed.0 % summed.len(), changed.1);
    inside[at] ^= change;
    if change != 0 {
        assert_eq!(fcoe::decode(inside), Err(FcoeError::Crc), "byte {at}");
    }
}

fn written(ethernet: &ethernet::EthernetHeader, frame: &ReceivedFrame<'_>) -> Vec<u8> {
    fc::tests::frame(
        ethernet,
        (frame.sof, frame.eof),
        &frame.header,
        frame.payload,
    )
}

/// Bytes of FCoE before those that the CRC is taken over.
const HEAD_LEN: usize = 14;

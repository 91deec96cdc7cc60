//! The stream of PDUs: cut into the same pieces however it arrives, and every header that can come
//! is read and written without loss.

use iscsi::wire::ahs;
use iscsi::wire::bhs::{BHS_LEN, Bhs, MAX_DATA_LEN, Opcode};
use iscsi::wire::control::{AsyncMessage, NopIn, NopOut, Reject, TextRequest, TextResponse};
use iscsi::wire::data::{DataIn, DataOut, R2t, SnackRequest};
use iscsi::wire::framer::{FrameError, Framer, PduPiece};
use iscsi::wire::login::{LoginRequest, LoginResponse, LogoutRequest, LogoutResponse};
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use iscsi::wire::task_management::{TaskRequest, TaskResponse};

use super::script::Script;

/// A PDU as it was cut out: `None` instead of data where its digest was wrong.
#[derive(Debug, PartialEq)]
struct Pdu {
    bhs: Bhs,
    ahs: Vec<u8>,
    data: Option<Vec<u8>>,
    ended: bool,
}

/// A whole stream, and the way it ended.
type Stream = (Vec<Pdu>, Option<FrameError>);

/// See docs/fuzzing.md.
pub fn framer(data: &[u8]) {
    let mut script = Script::new(data);
    let flags = script.byte();
    let digests = (flags & 1 != 0, flags & 2 != 0);
    let limit = script.word() & MAX_DATA_LEN;
    let step = 1 + usize::from(script.byte());
    if flags & 4 == 0 {
        same_in_pieces(script.rest(), digests, limit, step);
    } else {
        made(&mut script, digests, step);
    }
}

/// Bytes that may be anything.
fn same_in_pieces(bytes: &[u8], digests: (bool, bool), limit: u32, step: usize) -> Stream {
    let whole = cut(bytes, digests, limit, usize::MAX);
    let pieces = cut(bytes, digests, limit, step);
    assert_eq!(whole, pieces, "in pieces of {step}");
    for pdu in &whole.0 {
        header(&pdu.bhs);
        additional(&pdu.ahs);
    }
    whole
}

/// PDUs that are right, digests and all, come out as they went in; one byte that changed on the
/// way cannot make more of them right.
fn made(script: &mut Script<'_>, digests: (bool, bool), step: usize) {
    let (mut bytes, mut pdus) = (Vec::new(), Vec::new());
    let changed = script.flag().then(|| usize::from(script.half()));
    while !script.is_over() {
        pdus.push(pdu(script, digests, &mut bytes));
    }
    let right = same_in_pieces(&bytes, digests, MAX_DATA_LEN, step);
    assert_eq!((pdus, None), right);
    let Some(at) = changed.filter(|at| *at < bytes.len()) else {
        return;
    };
    bytes[at] ^= 0x10;
    let wrong = same_in_pieces(&bytes, digests, MAX_DATA_LEN, step);
    if digests == (true, true) {
        assert_ne!(right, wrong, "byte {at} was changed");
    }
}

fn pdu(script: &mut Script<'_>, digests: (bool, bool), bytes: &mut Vec<u8>) -> Pdu {
    let mut bhs = Bhs(script.array());
    let ahs_len = 4 * script.below(256);
    let ahs = script.take(ahs_len);
    let ahs = ahs[..ahs.len() / 4 * 4].to_vec();
    let data_len = usize::from(script.half() & 0x1fff);
    let data = script.take(data_len).to_vec();
    bhs.set_ahs_len(ahs.len());
    bhs.set_data_len(data.len() as u32);
    bytes.extend(iscsi::test_support::pdu(bhs, &ahs, &data, digests));
    Pdu {
        bhs,
        ahs,
        data: Some(data),
        ended: true,
    }
}

/// Cuts a stream that arrives in pieces of `step` bytes.
fn cut(bytes: &[u8], digests: (bool, bool), limit: u32, step: usize) -> Stream {
    let mut framer = Framer::new(limit);
    framer.set_digests(digests.0, digests.1);
    let mut pdus = Vec::new();
    for mut arrived in bytes.chunks(step) {
        loop {
            match framer.next(&mut arrived) {
                Ok(Some(piece)) => take(&framer, &mut pdus, piece),
                Ok(None) => break,
                Err(error) => return (pdus, Some(error)),
            }
        }
        assert!(arrived.is_empty(), "what is not used is forgotten");
    }
    for pdu in &pdus {
        assert!(pdu.bhs.data_len() <= limit);
        assert_eq!(pdu.ahs.len(), pdu.bhs.ahs_len());
    }
    (pdus, None)
}

fn take(framer: &Framer, pdus: &mut Vec<Pdu>, piece: PduPiece<'_>) {
    if let PduPiece::Header(bhs) = piece {
        pdus.push(Pdu {
            bhs,
            ahs: framer.ahs().to_vec(),
            data: Some(Vec::new()),
            ended: bhs.data_len() == 0,
        });
        return;
    }
    let Some(pdu) = pdus.last_mut().filter(|pdu| !pdu.ended) else {
        panic!("{piece:?} of no PDU");
    };
    match piece {
        PduPiece::Header(_) => {}
        PduPiece::Data { bytes, end } => {
            let data = pdu.data.get_or_insert_default();
            data.extend_from_slice(bytes);
            pdu.ended = end;
            let (have, all) = (data.len(), pdu.bhs.data_len() as usize);
            assert!(have <= all && (!end || have == all), "{have} of {all}");
        }
        PduPiece::BadData => {
            assert!(framer.has_data_digest());
            (pdu.data, pdu.ended) = (None, true);
        }
    }
}

/// What a PDU means is written as it was read, whatever is in its reserved fields.
macro_rules! read_and_written {
    ($bhs:expr, $($pdu:ty),* $(,)?) => {$(
        let value = <$pdu>::decode($bhs);
        let written = value.encode();
        assert_eq!(<$pdu>::decode(&written), value);
        assert_eq!(<$pdu>::decode(&written).encode(), written);
    )*};
}

fn header(bhs: &Bhs) {
    assert_eq!(bhs.0.len(), BHS_LEN);
    let opcode = bhs.opcode();
    assert_eq!(Opcode::from_code(opcode.code()), opcode);
    read_and_written!(
        bhs,
        NopOut,
        ScsiCommand,
        TaskRequest,
        LoginRequest,
        TextRequest,
        DataOut,
        LogoutRequest,
        SnackRequest,
        NopIn,
        ScsiResponse,
        TaskResponse,
        LoginResponse,
        TextResponse,
        DataIn,
        LogoutResponse,
        R2t,
        AsyncMessage,
        Reject,
    );
}

fn additional(bytes: &[u8]) {
    let mut len = 0;
    for segment in ahs::segments(bytes) {
        match segment {
            Ok(ahs::Ahs::ExtendedCdb(cdb)) => len += 4 + cdb.len(),
            Ok(_) => len += 4,
            Err(ahs::MalformedAhs) => {}
        }
    }
    assert!(len <= bytes.len(), "{len} of {} bytes", bytes.len());
}

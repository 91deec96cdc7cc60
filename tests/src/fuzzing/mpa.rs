//! Software iWARP: how a connection begins, and one end of it under a peer that does what it
//! likes.

mod end;

use rdma::iwarp::startup::{FrameKind, FrameReader, StartupConfig, StartupError, StartupFrame};

use self::end::End;
use super::script::Script;

/// See docs/fuzzing.md.
pub fn mpa(data: &[u8]) {
    let mut script = Script::new(data);
    if script.flag() {
        End::new(&mut script).run(&mut script);
    } else {
        startup(&mut script);
    }
}

fn startup(script: &mut Script<'_>) {
    let kind = script.pick(&[FrameKind::Request, FrameKind::Reply]);
    let step = 1 + usize::from(script.byte());
    let key: &[u8] = match (script.below(4), kind) {
        (0, _) => b"",
        (_, FrameKind::Request) => b"MPA ID Req Frame",
        (_, FrameKind::Reply) => b"MPA ID Rep Frame",
    };
    let bytes = [key, script.rest()].concat();
    let whole = FrameReader::new(kind).receive(&bytes);
    let pieces = in_pieces(kind, &bytes, step);
    match (&whole, pieces) {
        // In pieces the frame is told before what is behind it comes.
        (Err(StartupError::OutOfTurn), Err(StartupError::OutOfTurn)) => {}
        (whole, pieces) => assert_eq!(*whole, pieces, "in pieces of {step}"),
    }
    if let Ok(Some(frame)) = whole {
        again(&frame);
        negotiate(&frame);
    }
}

fn in_pieces(
    kind: FrameKind,
    bytes: &[u8],
    step: usize,
) -> Result<Option<StartupFrame>, StartupError> {
    let mut reader = FrameReader::new(kind);
    let mut frame = None;
    for piece in bytes.chunks(step) {
        let told = reader.receive(piece)?;
        assert!(told.is_none() || frame.is_none(), "a frame is told once");
        frame = frame.or(told);
    }
    Ok(frame)
}

/// What was read is written so that it reads the same.
fn again(frame: &StartupFrame) {
    let read = FrameReader::new(frame.kind).receive(&frame.encode());
    assert_eq!(read, Ok(Some(frame.clone())));
}

const CONFIG: StartupConfig = StartupConfig {
    crc: true,
    long_fpdus: true,
    ird: 8,
    ord: 32,
};

/// A Reply can be agreed to, and no depth is above what either end has said.
fn negotiate(frame: &StartupFrame) {
    match frame.kind {
        FrameKind::Request => {
            let (reply, agreed) = CONFIG.accept(frame, &[]);
            again(&reply);
            assert!(agreed.ird <= CONFIG.ird && agreed.ord <= CONFIG.ord);
            assert_eq!(reply.enhanced.is_some(), frame.enhanced.is_some());
            if let (Some(asked), Some(told)) = (frame.enhanced, reply.enhanced) {
                assert!(agreed.ord <= asked.ird);
                assert!([agreed.ird, 0x3fff].contains(&told.ird));
                assert!([agreed.ord, 0x3fff].contains(&told.ord));
            }
            again(&CONFIG.reject(frame, b"no"));
        }
        FrameKind::Reply => {
            let Ok(agreed) = CONFIG.agree(frame) else {
                return;
            };
            assert!(agreed.crc && agreed.ird == CONFIG.ird && agreed.ord <= CONFIG.ord);
            let told = frame.enhanced.expect("only those are agreed to");
            assert!(agreed.ord <= told.ird);
        }
    }
}

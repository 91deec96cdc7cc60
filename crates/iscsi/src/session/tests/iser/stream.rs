//! Initiators that reach for memory of the target, which lets them have none of it (RFC 5040 §7.2,
//! RFC 5041 §7.1).

use rdma::iwarp::terminate::TerminateCode;
use rdma::verbs::{ReadId, SendHeader, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::{lend, solicited};
use crate::session::tests::rig::{IserRig as Rig, bytes_of};

type Reach = fn(Tag) -> Work<HeapLease>;

fn write(to: Tag) -> Work<HeapLease> {
    let from = HeapLease::from_bytes(vec![0xdd]);
    Work::Write { to, from }
}

fn read(from: Tag) -> Work<HeapLease> {
    let into = HeapLease::from_bytes(vec![0]);
    let id = ReadId(0);
    Work::Read { id, from, into }
}

fn invalidate(tag: Tag) -> Work<HeapLease> {
    Work::Send {
        header: SendHeader::new(&[b"a message"]).unwrap(),
        data: None,
        invalidate: Some(tag.stag),
    }
}

/// The target is reading the data of a write, by an STag that the initiator knows.
fn reading() -> (Rig, HeapLease) {
    let mut rig = Rig::with(solicited());
    rig.peer.is_silent = true;
    let command = rig.write(1, 512, true, &[]);
    let memory = lend(&mut rig, command.tag, 0, 512);
    rig.sends_nothing();
    assert_eq!(rig.peer.requests, [512]);
    (rig, memory)
}

#[test]
fn each_gets_the_terminate_for_it_and_the_session_ends() {
    let rows: [(Reach, TerminateCode, u16); 3] = [
        (write, TerminateCode::INVALID_STAG, 0x1100),
        (read, TerminateCode::READ_INVALID_STAG, 0x0100),
        (invalidate, TerminateCode::CANNOT_INVALIDATE, 0x0109),
    ];
    for (reach, code, bits) in rows {
        for stag in [Some(0), Some(0x1234_5678), None] {
            let (mut rig, memory) = reading();
            let guessed = stag.map(|stag| Tag {
                stag: Stag(stag),
                offset: 0,
            });
            let tag = guessed.or(rig.peer.sink).unwrap();
            rig.does(reach(tag));
            assert_eq!(rig.rule(), code.violation().rule, "{tag:?}");
            rig.sends_nothing();
            assert_eq!(rig.peer.terminated, Some(bits), "{tag:?}");
            assert_eq!(bytes_of(&memory), [0xee; 512], "nothing is placed");
        }
    }
}

/// Whatever their STags are, nobody may look at them (RFC 5041 §5.2, RFC 5040 §5.2.1).
#[test]
fn empty_ones_reach_for_nothing() {
    let tag = Tag {
        stag: Stag(0x1234_5678),
        offset: u64::MAX,
    };
    let empty = || HeapLease::from_bytes(Vec::new());
    let mut rig = Rig::new();
    for id in (0..3).map(ReadId) {
        rig.does(Work::Write {
            to: tag,
            from: empty(),
        });
        rig.does(Work::Read {
            id,
            from: tag,
            into: empty(),
        });
        rig.sends_nothing();
    }
    rig.ping(1, b"still here");
    rig.sends(["NOP-In #1 \"still here\""]);
    assert_eq!(rig.peer.terminated, None);
}

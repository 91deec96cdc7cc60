//! One frame of a command is lost, comes twice or comes late, each in turn: the data is right, or
//! the command fails as one that may be repeated.

use crate::initiator::{Fate as End, FcpInitiatorEvent};
use crate::remote::Fcp;
use crate::tests::pair::{Fate, Pair, TWICE, all, late, plain};

/// Bytes of a read or write: three sequences of the disk's.
const LEN: usize = 24 << 10;

/// Carries a command out until the disk says that it was done well.
fn carry_out(pair: &mut Pair, begin: impl Fn(&mut Pair, u64)) {
    for id in 1..10 {
        begin(pair, id);
        let before = pair.told.len();
        pair.until_told(before + 1);
        match &pair.told[before] {
            FcpInitiatorEvent::Done(done) => {
                assert_eq!((done.id, done.status), (id, 0));
                return;
            }
            FcpInitiatorEvent::Failed(failed) => assert_eq!(failed.fate, End::Aborted),
            other => panic!("{other:?}"),
        }
    }
    panic!("it is never done")
}

fn read_with(mut pair: Pair) -> Pair {
    carry_out(&mut pair, |pair, id| pair.read(id, 8, (LEN / 512) as u16));
    assert_eq!(pair.done().moved as usize, LEN);
    assert!(pair.data() == pair.disk.bytes[8 * 512..8 * 512 + LEN]);
    pair
}

fn write_with(mut pair: Pair) -> Pair {
    let data: Vec<u8> = (0..LEN).map(|at| (at * 7) as u8).collect();
    carry_out(&mut pair, |pair, id| pair.write(id, 8, data.clone()));
    assert!(data == pair.disk.bytes[8 * 512..8 * 512 + LEN]);
    pair
}

/// With each of so many frames to the target and to the initiator spoilt in every way.
fn each(frames: [usize; 2], run: impl Fn(Pair, Fcp, Fate)) {
    for fcp in [all(), plain()] {
        for fate in [Fate::IsLost, TWICE, late(2), late(100)] {
            for (to_target, count) in [(true, frames[0]), (false, frames[1])] {
                for victim in 0..count {
                    run(Pair::but_one(fcp, (victim, to_target), fate), fcp, fate);
                }
            }
        }
    }
}

#[test]
fn a_read_survives_each_of_its_frames() {
    let frames = read_with(Pair::new(all())).frames();
    assert_eq!(frames, [2, 13]);
    each(frames, |pair, _, _| drop(read_with(pair)));
}

#[test]
fn a_write_survives_each_of_its_frames() {
    let frames = write_with(Pair::new(all())).frames();
    assert_eq!(frames, [13, 2]);
    each(frames, |pair, fcp, fate| {
        let pair = write_with(pair);
        let may_fail = fate == Fate::IsLost || fcp == plain();
        let trace = &pair.trace;
        assert!(may_fail || pair.disk.executed == 1, "{fate:?} {trace:?}");
    });
}

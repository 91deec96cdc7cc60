//! One frame of a command is lost, comes twice or comes late, each in turn: the data is right, or
//! the command fails as one that may be repeated.

use crate::exchange::tests::pair::{Fate, Pair, all, bytes, plain};
use crate::initiator::{Data, Fate as End, FcpInitiatorEvent};
use crate::remote::Fcp;

/// Bytes of a read or write: three sequences of the disk's.
const LEN: usize = 24 << 10;

/// Carries a command out until the disk says that it was done well; so many times it was begun.
fn carry_out(pair: &mut Pair, begin: impl Fn(&mut Pair, u64)) -> usize {
    for id in 1..10 {
        begin(pair, id);
        let before = pair.told.len();
        pair.until_told(before + 1);
        match &pair.told[before] {
            FcpInitiatorEvent::Done(done) => {
                assert_eq!((done.id, done.status), (id, 0));
                return id as usize;
            }
            FcpInitiatorEvent::Failed(failed) => assert_eq!(failed.fate, End::Aborted),
            other => panic!("{other:?}"),
        }
    }
    panic!("it is never done")
}

fn read_with(fcp: Fcp, plan: impl FnMut(usize, bool) -> Fate + 'static) -> Pair {
    let mut pair = Pair::new(fcp, plan);
    carry_out(&mut pair, |pair, id| pair.read(id, 8, (LEN / 512) as u16));
    let Some(FcpInitiatorEvent::Done(done)) = pair.told.last() else {
        panic!("it is done");
    };
    let Data::In(into) = &done.data else {
        panic!("it is a read");
    };
    assert_eq!(done.moved as usize, LEN);
    assert!(bytes(into) == pair.disk[8 * 512..8 * 512 + LEN]);
    pair
}

fn write_with(fcp: Fcp, plan: impl FnMut(usize, bool) -> Fate + 'static) -> Pair {
    let mut pair = Pair::new(fcp, plan);
    let data: Vec<u8> = (0..LEN).map(|at| (at * 7) as u8).collect();
    carry_out(&mut pair, |pair, id| pair.write(id, 8, data.clone()));
    assert!(data == pair.disk[8 * 512..8 * 512 + LEN]);
    pair
}

fn spared(_: usize, _: bool) -> Fate {
    Fate::Arrives
}

fn each(run: impl Fn(Fcp, Fate, usize, bool), frames: [usize; 2]) {
    for fcp in [all(), plain()] {
        for fate in [
            Fate::IsLost,
            Fate::ComesTwice,
            Fate::ComesLate(2),
            Fate::ComesLate(100),
        ] {
            for (to_target, count) in [(true, frames[0]), (false, frames[1])] {
                for victim in 0..count {
                    run(fcp, fate, victim, to_target);
                }
            }
        }
    }
}

#[test]
fn a_read_survives_each_of_its_frames() {
    let frames = read_with(all(), spared).frames();
    assert_eq!(frames, [2, 13]);
    let run = |fcp, fate, victim, direction| {
        read_with(fcp, move |at, to_target| {
            if (at, to_target) == (victim, direction) {
                fate
            } else {
                Fate::Arrives
            }
        });
    };
    each(run, frames);
}

#[test]
fn a_write_survives_each_of_its_frames() {
    let frames = write_with(all(), spared).frames();
    assert_eq!(frames, [13, 2]);
    let run = |fcp, fate, victim, direction| {
        let pair = write_with(fcp, move |at, to_target| {
            if (at, to_target) == (victim, direction) {
                fate
            } else {
                Fate::Arrives
            }
        });
        let lost = fate == Fate::IsLost;
        assert!(
            lost || fcp == plain() || pair.executed == 1,
            "{fate:?} {victim}"
        );
    };
    each(run, frames);
}

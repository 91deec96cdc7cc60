//! Many commands at once over a wire that loses, doubles and delays what it likes: all of them end,
//! and what is read is what was written.

use proptest::prelude::*;

use crate::initiator::{Data, Fate as End, FcpInitiatorEvent};
use crate::tests::bytes;
use crate::tests::pair::{Fate, Pair, TWICE, all, late, plain};

/// Blocks that one command is about; each has its own place.
const BLOCKS: usize = 40;

/// What the command `id` writes: no two the same at one place, so that one that lands late is seen.
fn pattern(id: u64) -> Vec<u8> {
    (0..BLOCKS * 512)
        .map(|at| (at as u64 * 13 + id * 37) as u8)
        .collect()
}

fn place(id: u64) -> u32 {
    (id as usize % 8 * BLOCKS) as u32
}

fn begin(pair: &mut Pair, id: u64, is_write: bool) {
    if is_write {
        pair.write(id, place(id), pattern(id));
    } else {
        pair.read(id, place(id), BLOCKS as u16);
    }
}

/// Writes eight places at once, then reads them, each until it is done.
fn run(mut pair: Pair) {
    // Which command wrote each place last, and was told to be done.
    let mut written = [0; 8];
    for is_write in [true, false] {
        let mut open: Vec<u64> = (0..8).collect();
        for round in 0..60_u64 {
            if open.is_empty() {
                break;
            }
            pair.told.clear();
            for id in &open {
                begin(&mut pair, id + 8 * round, is_write);
            }
            pair.until_told(open.len());
            for event in &pair.told {
                match event {
                    FcpInitiatorEvent::Done(done) => {
                        assert_eq!(done.status, 0);
                        let place = done.id % 8;
                        match &done.data {
                            Data::In(into) => {
                                let wanted = pattern(written[place as usize]);
                                assert!(bytes(into) == wanted, "wrong data");
                            }
                            _ => written[place as usize] = done.id,
                        }
                        open.retain(|id| *id != place);
                    }
                    FcpInitiatorEvent::Failed(failed) => assert_eq!(failed.fate, End::Aborted),
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(open.is_empty(), "some are never done");
    }
    for id in 0..8 {
        let at = place(id) as usize * 512;
        assert!(pair.disk.bytes[at..at + BLOCKS * 512] == pattern(written[id as usize]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn all_commands_end_and_no_byte_is_wrong(seed: u64, rate in 1_u64..40, recovers: bool) {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = move |_, _| match random.u64(..1000) {
            lot if lot < rate => Fate::IsLost,
            lot if lot < rate * 2 => TWICE,
            lot if lot < rate * 3 => late(random.u32(..30)),
            _ => Fate::Arrives,
        };
        run(Pair::with(if recovers { all() } else { plain() }, plan));
    }
}

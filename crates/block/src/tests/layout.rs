//! Where blocks lie: each on one part, and back again.

use std::sync::Arc;

use proptest::prelude::*;
use scsi::medium::Extent;

use crate::concat::ConcatLayout;
use crate::parts::{Layout, PartOffset};
use crate::stripe::Chunks;

fn layouts() -> impl Strategy<Value = (Arc<dyn Layout>, usize)> {
    let chunks = (1..40_u64, 1..6_u64).prop_map(|(chunk, parts)| {
        let layout: Arc<dyn Layout> = Arc::new(Chunks { chunk, parts });
        (layout, parts as usize)
    });
    let row = prop::collection::vec(1..90_u64, 1..6).prop_map(|lengths| {
        let starts = lengths.iter().scan(0, |end, length| {
            let start = *end;
            *end += length;
            Some(start)
        });
        let row = ConcatLayout {
            starts: starts.collect(),
        };
        (Arc::new(row) as Arc<dyn Layout>, lengths.len())
    });
    prop_oneof![chunks, row]
}

proptest! {
    #[test]
    fn every_block_lies_in_one_place_and_back(
        (layout, parts) in layouts(), lba in 0..1000_u64, blocks in 0..300_u64
    ) {
        let extent = Extent::new(lba, blocks);
        let inside: Vec<_> = (0..parts).map(|part| layout.on(part, extent)).collect();
        let mut on = vec![0; parts];
        for lba in lba..extent.end() {
            let place = layout.place(lba);
            prop_assert_eq!(layout.back(place.part, place.lba), lba);
            // Consecutive on its part, in the order of the whole.
            prop_assert_eq!(inside[place.part].lba + on[place.part], place.lba);
            on[place.part] += 1;
        }
        prop_assert_eq!(inside.iter().map(|part| part.blocks).collect::<Vec<_>>(), on);
    }

    #[test]
    fn a_run_is_what_lies_together(
        (layout, _) in layouts(), lba in 0..1000_u64
    ) {
        let place = layout.place(lba);
        let run = place.run.min(2000);
        for ahead in 1..run {
            let next = layout.place(lba + ahead);
            prop_assert_eq!((next.part, next.lba), (place.part, place.lba + ahead));
        }
        if run < 2000 && run == place.run {
            let behind = layout.place(lba + run);
            let follows = (behind.part, behind.lba) == (place.part, place.lba + run);
            // A stripe over one volume goes on where it was.
            prop_assert!(!follows || layout.on(0, Extent::new(0, 9)).blocks == 9);
            prop_assert!((lba + run).is_multiple_of(layout.boundary()));
        }
    }
}

#[test]
fn a_stripe_goes_round() {
    let stripe = Chunks { chunk: 4, parts: 3 };
    let place = |part, lba, run| PartOffset { part, lba, run };
    assert_eq!(stripe.place(0), place(0, 0, 4));
    assert_eq!(stripe.place(7), place(1, 3, 1));
    assert_eq!(stripe.place(12), place(0, 4, 4));
    // The last block of the first chunk up to the first of the fourth, which follow each other.
    let extent = Extent::new(3, 10);
    assert_eq!(stripe.on(0, extent), Extent::new(3, 2));
    assert_eq!(stripe.on(1, extent), Extent::new(0, 4));
    assert_eq!(stripe.on(2, extent), Extent::new(0, 4));
}

#[test]
fn granules_of_a_stripe_are_whole_on_every_part() {
    let granule = |chunk, of_part| Chunks { chunk, parts: 3 }.granule(of_part);
    assert_eq!(granule(128, 8), 8);
    assert_eq!(granule(8, 4096), 3 * 4096);
    assert_eq!(granule(12, 8), 3 * 24);
    assert_eq!(granule(3, u64::MAX), u64::MAX);
}

#[test]
fn the_last_of_a_row_has_no_end() {
    let row = ConcatLayout { starts: vec![0, 5] };
    let run = u64::MAX - 7;
    let place = PartOffset {
        part: 1,
        lba: 2,
        run,
    };
    assert_eq!(row.place(7), place);
    assert_eq!(row.on(0, Extent::new(7, 9)).blocks, 0);
}

//! Cores that forward by a snapshot of the table, and count by themselves.

use super::rig::{fcoe_frame, ms, open, quiet, sent, switch_of};
use crate::fabric::{
    DropReason, ForwardTable, PairDrops, PortCounters, PortNumber, SwitchConfig, Verdict,
};
use crate::wire::names::{FcId, Wwn};

const KNOWN: FcId = FcId(0x01_0100);
const STRANGER: FcId = FcId(0x01_0200);

fn counted(table: &ForwardTable, frame: &[u8]) -> PortCounters {
    let verdict = table.forward(PortNumber(0), frame);
    let mut counters = PortCounters::default();
    counters.count(&verdict, frame);
    counters
}

#[test]
fn counts_of_several_cores_add_up() {
    let switch = quiet(switch_of(1, &open(), 1));
    let table = switch.forwarding();
    let mut sum = PortCounters::default();
    for from in [KNOWN, STRANGER, KNOWN] {
        let mut counters = counted(&table, &fcoe_frame(0, from, STRANGER, 64));
        sum.add(&counters);
        counters.clear();
        sum.add(&counters);
    }
    assert_eq!(sum.dropped(DropReason::NotLoggedIn), 3);
    let row = |s_id, frames| PairDrops {
        s_id,
        d_id: STRANGER,
        reason: DropReason::NotLoggedIn,
        frames,
    };
    let rows: Vec<_> = sum.pairs().copied().collect();
    assert_eq!(rows, [row(KNOWN, 2), row(STRANGER, 1)]);
    sum.clear();
    assert_eq!(
        (sum.dropped(DropReason::NotLoggedIn), sum.pairs().count()),
        (0, 0)
    );
}

/// As of one that the switch itself has dropped, but it is not counted twice.
#[test]
fn the_sender_of_a_frame_that_another_core_has_dropped_is_told() {
    let config = SwitchConfig {
        ids: vec![(Wwn(0x2000_0200_0000_0001), KNOWN)],
        ..open()
    };
    let mut switch = quiet(switch_of(1, &config, 1));
    let frame = fcoe_frame(0, KNOWN, STRANGER, 64);
    let verdict = switch.forwarding().forward(PortNumber(0), &frame);
    let Verdict::Dropped(reason) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(reason.is_heeded());
    switch.heed_drop(ms(1), PortNumber(0), reason, &frame);
    let cleared = ["fcf1.0 > enodes ClearVirtualLinks 010100"];
    assert_eq!(sent(&mut switch, 0), cleared);
    let counters = switch.counted(PortNumber(0)).unwrap();
    assert_eq!(counters.dropped(reason), 0);
}

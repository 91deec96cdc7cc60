//! Stations that say too much.

use super::rig::{Rig, fcf, ms};

#[test]
fn a_flood_of_forged_addresses_does_not_make_the_fcf_seem_silent() {
    let mut rig = Rig::up();
    let mut frame = fcf(200).advertisement();
    for second in 1..=60 {
        rig.run(ms(second * 1000));
        for number in 0..20_000_u32 {
            frame[8..12].copy_from_slice(&number.to_be_bytes());
            let _ = rig.try_hear(&frame);
        }
        if second % 8 == 0 {
            rig.hear(&fcf(1).advertisement());
        }
    }
    assert!(rig.enode.statistics().dropped > 0);
    assert_eq!(rig.told().len(), 0);
}

#[test]
fn what_a_message_costs_does_not_grow() {
    let mut rig = Rig::up();
    for round in 0..10_000_u64 {
        rig.now = ms(round * 10);
        let _ = rig.try_hear(&fcf((round % 200) as u8).solicited().advertisement());
        rig.hear(&fcf(1).advertisement());
        rig.enode.expire(rig.now);
        rig.sent();
    }
    assert!(rig.enode.fcfs().len() <= 32);
}

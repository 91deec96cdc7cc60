//! Stations that send without end.

use super::logins::linked;
use super::rig::{alone, config, frames, message, ms, multicast, receive, told, up};
use crate::fip::{Fip, FipConfig};
use crate::wire::ethernet::Mac;
use crate::wire::fip::FipOperation;
use crate::wire::names::Wwn;

/// Another ENode each time, which says that the N_Port_ID 000077 is its.
fn pretender(number: u16) -> FipConfig {
    FipConfig {
        wwpn: Wwn(0x2000_0600_0000_0000 | u64::from(number)),
        mac: Mac([6, 0, 0, 0, number.to_be_bytes()[0], number.to_be_bytes()[1]]),
        ..config(0x77)
    }
}

#[test]
fn what_a_beacon_costs_does_not_grow_with_those_before_it() {
    let mut fip = up();
    for number in 0..20_000 {
        let beacon = multicast(&pretender(number), FipOperation::Beacon, 0x77);
        // As fast as a sender may speak.
        receive(&mut fip, ms(1000 + 8 * u64::from(number)), &beacon).unwrap();
        assert!(fip.records() <= 3, "{} after {number}", fip.records());
        frames(&mut fip);
    }
    assert_eq!(fip.statistics().dropped, 0);
}

#[test]
fn a_flood_is_dropped_unread_and_others_are_heard() {
    let mut fip = up();
    let claim = multicast(&config(1), FipOperation::ClaimNotification, 1);
    let over = (0..100_000).filter(|_| receive(&mut fip, ms(1000), &claim).is_err());
    assert_eq!(over.count(), 1, "a remark when it begins, and no more");
    assert_eq!(fip.statistics().dropped, 100_000 - 512);
    let other = multicast(&config(3), FipOperation::ClaimNotification, 3);
    receive(&mut fip, ms(1000), &other).unwrap();
    assert!(fip.neighbours.knows(crate::wire::names::FcId(3)));
}

#[test]
fn forged_addresses_do_not_silence_who_is_linked() {
    let mut fip = linked();
    assert_eq!(told(&mut fip), ["found 000001"]);
    let beacon = multicast(&config(1), FipOperation::Beacon, 1);
    let mut forged = beacon.clone();
    for at in (2000..60_000).step_by(8000) {
        for number in 2..50_000_u32 {
            forged[8..12].copy_from_slice(&number.to_be_bytes());
            let _ = receive(&mut fip, ms(at), &forged);
        }
        receive(&mut fip, ms(at), &beacon).unwrap();
        alone(&mut fip, ms(at + 8000));
        assert!(told(&mut fip).is_empty(), "at {at}");
    }
    fip.link(ms(70_000), false);
    assert_eq!(fip.records(), 0);
}

/// What is kept for it is little.
#[test]
fn a_flood_of_who_is_linked_is_dropped_too() {
    let mut fip = linked();
    let beacon = multicast(&config(1), FipOperation::Beacon, 1);
    for _ in 0..10_000 {
        let _ = receive(&mut fip, ms(100_000), &beacon);
    }
    assert_eq!(fip.statistics().dropped, 10_000 - 512 - 8);
}

#[test]
fn after_a_flood_its_sender_is_heard_again() {
    let mut fip = up();
    let claim = message(
        &config(1),
        FipOperation::ClaimNotification,
        1,
        Mac::BROADCAST,
    );
    let taken = |fip: &mut Fip, at| {
        let before = fip.statistics().dropped;
        let _ = receive(fip, ms(at), &claim);
        fip.statistics().dropped == before
    };
    for _ in 0..512 {
        assert!(taken(&mut fip, 1000));
    }
    assert!(!taken(&mut fip, 1000));
    assert!(!taken(&mut fip, 1007));
    assert!(taken(&mut fip, 1008));
    assert!(!taken(&mut fip, 1008));
    assert!(taken(&mut fip, 1016));
}

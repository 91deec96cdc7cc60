//! Reservations over a power loss.

use super::super::ReservationType::{ExclusiveAccess, WriteExclusive};
use super::super::{Holding, Registration, Reservation, ReservationType, Reservations, StoreError};
use super::{quietly, release};
use crate::nexus::NexusIdentity;
use crate::testing::{by_port, host};
use proptest::prelude::*;
use std::sync::Arc;

fn kept(kind: Option<ReservationType>) -> Reservations {
    let registration = |nexus, key| Registration { nexus, key };
    let mut all = Reservations {
        generation: 0,
        aptpl: true,
        registrations: vec![
            registration(host(1), 0xa),
            registration(host(2), u64::MAX),
            registration(by_port(1, 2), 0xa),
        ],
        hold: Holding::Free,
    };
    if let Some(kind) = kind {
        let holder = (!kind.all_registrants()).then(|| host(2));
        all.hold = Holding::Persistent(Reservation { kind, holder });
    }
    all
}

#[test]
fn comes_back_as_it_was() {
    for kind in ReservationType::ALL.map(Some).into_iter().chain([None]) {
        let before = kept(kind);
        let after = Reservations::from_bytes(&before.to_bytes());
        assert_eq!(after, Ok(before), "{kind:?}");
    }
}

#[test]
fn keeps_nothing_without_aptpl_nor_the_generation() {
    let mut all = kept(Some(WriteExclusive));
    all.generation = 77;
    let restored = Reservations::from_bytes(&all.to_bytes()).unwrap();
    assert_eq!(restored.generation(), 0);
    all.aptpl = false;
    assert_eq!(
        Reservations::from_bytes(&all.to_bytes()),
        Ok(Reservations::default())
    );
    assert_eq!(all.to_bytes(), Reservations::default().to_bytes());
}

#[test]
fn is_restored_for_initiators_that_are_not_logged_in_and_works() {
    let bytes = kept(Some(WriteExclusive)).to_bytes();
    let mut all = Reservations::from_bytes(&bytes).unwrap();
    quietly(&mut all, &host(2), &release(u64::MAX, WriteExclusive));
    assert_eq!(all.reservation(), None);
}

#[test]
fn every_truncation_says_where_it_ends() {
    let bytes = kept(Some(ExclusiveAccess)).to_bytes();
    for len in 0..bytes.len() {
        let found = Reservations::from_bytes(&bytes[..len]);
        assert!(
            matches!(found, Err(StoreError::Truncated(_))),
            "{len}: {found:?}"
        );
    }
}

#[test]
fn every_damaged_byte_is_noticed() {
    let bytes = kept(Some(ExclusiveAccess)).to_bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(Reservations::from_bytes(&damaged).is_err(), "byte {at}");
    }
}

#[test]
fn says_what_is_wrong() {
    let bytes = kept(None).to_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Reservations::from_bytes(&bytes).map_err(|error| error.to_string())
    };
    let says = |text: &str| Err(text.to_string());
    assert_eq!(with(0, 0), says("it is not a file of stored reservations"));
    assert_eq!(
        with(9, 2),
        says("its format has version 2, but only version 1 is supported")
    );
    assert_eq!(with(11, 2), says("its reservation type is not valid"));
    assert_eq!(with(11, 1), says("its holder is not valid"));
    assert_eq!(
        with(12, 0xff),
        says("its number of registrations is not valid")
    );
    let longer = [&bytes[..], &[0]].concat();
    let found = Reservations::from_bytes(&longer);
    assert_eq!(found, Err(StoreError::Trailing(1)));
}

fn identity() -> impl Strategy<Value = Arc<NexusIdentity>> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    (bytes, any::<u16>()).prop_map(|(bytes, port)| {
        let initiator = bytes.into();
        Arc::new(NexusIdentity { initiator, port })
    })
}

proptest! {
    #[test]
    fn any_registrations_come_back(
        nexuses in proptest::collection::vec((identity(), 1_u64..), 0..20),
    ) {
        let mut all = Reservations { aptpl: true, ..Reservations::default() };
        for (nexus, key) in nexuses {
            all.set(&nexus, key).unwrap();
        }
        prop_assert_eq!(Reservations::from_bytes(&all.to_bytes()), Ok(all));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let named = [b"LUNAR-PR\x00\x01", &bytes[..]].concat();
        prop_assert!(Reservations::from_bytes(&bytes).is_err());
        prop_assert!(Reservations::from_bytes(&named).is_err());
    }
}

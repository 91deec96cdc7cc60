//! N_Port_IDs: counted up, and the same for the same WWPN.

use crate::fabric::PortNumber;
use crate::fabric::ids::Ids;
use crate::wire::names::{FcId, Wwn};

fn take(ids: &mut Ids, wwpn: u64) -> u32 {
    ids.take(Wwn(wwpn)).unwrap().fc_id.0
}

#[test]
fn ids_are_counted_up_from_0100() {
    let mut ids = Ids::new(1, 0x100, &[]);
    assert_eq!(
        [7, 5, 6].map(|wwpn| take(&mut ids, wwpn)),
        [0x01_0100, 0x01_0101, 0x01_0102]
    );
    assert_eq!(take(&mut ids, 5), 0x01_0101);
    ids.release(Wwn(5));
    assert_eq!(
        [8, 5].map(|wwpn| take(&mut ids, wwpn)),
        [0x01_0103, 0x01_0101]
    );
}

/// After the last comes the first, and what lies outside is as good as the first.
#[test]
fn ids_begin_where_they_are_told_to() {
    let remembered = [(Wwn(9), FcId(0x01_feff))];
    let mut ids = Ids::new(1, 0xfefe, &remembered);
    assert_eq!(
        [1, 2, 9].map(|wwpn| take(&mut ids, wwpn)),
        [0x01_fefe, 0x01_0100, 0x01_feff]
    );
    for outside in [0, 0xffff] {
        assert_eq!(take(&mut Ids::new(1, outside, &[]), 1), 0x01_0100);
    }
}

#[test]
fn what_is_remembered_is_given_again() {
    let remembered = [
        (Wwn(5), FcId(0x01_0300)),
        // The first of two has it.
        (Wwn(6), FcId(0x01_0300)),
        // The first of two WWPNs that are one.
        (Wwn(5), FcId(0x01_0400)),
        // Outside of what is given.
        (Wwn(7), FcId(0x01_00ff)),
        // Of another domain: it keeps the lower half.
        (Wwn(8), FcId(0x07_0100)),
    ];
    let mut ids = Ids::new(2, 0x100, &remembered);
    let list: Vec<_> = ids.iter().collect();
    assert_eq!(list, [(Wwn(5), FcId(0x02_0300)), (Wwn(8), FcId(0x02_0100))]);
    assert_eq!(ids.owner(FcId(0x02_0300)), Some(Wwn(5)));
    let given = ids.take(Wwn(5)).unwrap();
    assert_eq!((given.fc_id, given.is_new), (FcId(0x02_0300), false));
    assert_eq!(
        [6, 7].map(|wwpn| take(&mut ids, wwpn)),
        [0x02_0101, 0x02_0102]
    );
}

/// 16,384 ports are remembered. Of those that are out, the one that has been out longest goes, and
/// its N_Port_ID is given again only after all others.
#[test]
fn the_port_that_has_been_out_longest_is_forgotten() {
    let mut ids = Ids::new(1, 0x100, &[]);
    for wwpn in 1..=16_384 {
        take(&mut ids, wwpn);
    }
    assert_eq!(ids.take(Wwn(20_000)), None, "all are logged in");
    ids.release(Wwn(300));
    ids.release(Wwn(200));
    ids.release(Wwn(300));
    assert_eq!(take(&mut ids, 20_000), 0x01_0100 + 16_384);
    assert_eq!(ids.owner(FcId(0x01_0100 + 299)), None);
    assert_eq!(ids.owner(FcId(0x01_0100 + 199)), Some(Wwn(200)));
    assert_eq!(take(&mut ids, 300), 0x01_0100 + 16_385);
    assert_eq!(ids.iter().count(), 16_384);
}

/// Hosts at one port of the switch log in under ever other names: what was given elsewhere, and
/// what is remembered from before, stays.
#[test]
fn a_port_of_the_switch_has_its_own_names_forgotten() {
    let mut ids = Ids::new(1, 0x100, &[(Wwn(1), FcId(0x01_0100))]);
    let mut visit = |port, wwpn| {
        let given = ids.take_at(PortNumber(port), Wwn(wwpn)).unwrap();
        ids.release(Wwn(wwpn));
        given.fc_id
    };
    let before = [visit(0, 2), visit(0, 3)];
    for wwpn in 100..40_000 {
        visit(1, wwpn);
    }
    assert_eq!([visit(0, 2), visit(5, 3)], before);
    assert_eq!(visit(0, 1), FcId(0x01_0100));
    assert_eq!(ids.iter().count(), 16_384);
    assert!(!ids.take(Wwn(39_999)).unwrap().is_new);
}

/// A list that comes late: what somebody has already stays, and the rest of the list holds.
#[test]
fn what_is_restored_late_collides_with_nobody_that_is_logged_in() {
    let mut ids = Ids::new(1, 0x100, &[]);
    assert_eq!(
        [5, 6, 7].map(|wwpn| take(&mut ids, wwpn)),
        [0x01_0100, 0x01_0101, 0x01_0102]
    );
    ids.release(Wwn(7));
    ids.restore(&[
        // It is logged in with another one.
        (Wwn(5), FcId(0x01_0300)),
        // Another one is logged in with it.
        (Wwn(8), FcId(0x01_0101)),
        // One that was given meanwhile to a port that is out again.
        (Wwn(9), FcId(0x01_0102)),
        (Wwn(10), FcId(0x01_0400)),
    ]);
    let list: Vec<_> = ids.iter().map(|(Wwn(wwpn), id)| (wwpn, id.0)).collect();
    let expected = [
        (5, 0x01_0100),
        (6, 0x01_0101),
        (9, 0x01_0102),
        (10, 0x01_0400),
    ];
    assert_eq!(list, expected);
    ids.release(Wwn(5));
    assert_eq!(
        [7, 8, 5].map(|wwpn| take(&mut ids, wwpn)),
        [0x01_0103, 0x01_0104, 0x01_0100]
    );
}

/// A list that comes late does not free a port of the switch from what was given there.
#[test]
fn what_was_given_at_a_port_counts_there_after_a_list_was_restored() {
    let mut ids = Ids::new(1, 0x100, &[]);
    let names = 100..10_100;
    for wwpn in names.clone() {
        ids.take_at(PortNumber(1), Wwn(wwpn)).unwrap();
    }
    let before: Vec<_> = (1..=6_284)
        .map(|wwpn| (Wwn(20_000 + wwpn), FcId(0x01_4000 + wwpn as u32)))
        .collect();
    ids.restore(&before);
    for wwpn in names {
        ids.release(Wwn(wwpn));
    }
    assert!(ids.take_at(PortNumber(1), Wwn(1)).unwrap().is_new);
    assert!(
        !ids.take(Wwn(20_001)).unwrap().is_new,
        "it was there before"
    );
}

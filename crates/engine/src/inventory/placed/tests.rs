//! Who sees nothing of a target.

use std::collections::BTreeSet;

use iscsi::target::NodeAccess;
use scsi::unit::UnitId;

use super::PlacedInventory;
use crate::inventory::{Inventory, LunRow, TargetRow};

const TARGET: &str = "iqn.2026-11.org.example:san";
const ADMITTED: &str = "iqn.2026-11.org.example:worker";
const REVOKED: &str = "iqn.2026-11.org.example:guest";

fn luns() -> Vec<LunRow> {
    vec![LunRow::new(3, "disk".to_owned())]
}

/// The number of LUNs that each of both sees.
fn seen(access: NodeAccess, groups: Vec<(BTreeSet<String>, Vec<LunRow>)>) -> [usize; 2] {
    let row = TargetRow {
        luns: luns(),
        groups,
        access,
        ..TargetRow::default()
    };
    let inventory = Inventory {
        targets: [(TARGET.to_owned(), row)].into(),
        ..Inventory::default()
    };
    let placed = PlacedInventory {
        inventory: &inventory,
        unit: &|_| Some(UnitId::first(0)),
        bound: &|asked| vec![asked],
    };
    let views = placed.views();
    [ADMITTED, REVOKED].map(|initiator| {
        let device = views.device(TARGET, initiator, 0).unwrap();
        device.luns.len()
    })
}

fn only(name: &str) -> BTreeSet<String> {
    BTreeSet::from([name.to_owned()])
}

#[test]
fn an_initiator_that_is_revoked_sees_nothing_of_what_others_see() {
    assert_eq!(seen(NodeAccess::only(only(ADMITTED)), Vec::new()), [1, 0]);
}

#[test]
fn nor_does_it_see_what_its_group_saw() {
    let groups = vec![(only(REVOKED), luns())];
    assert_eq!(seen(NodeAccess::only(only(ADMITTED)), groups), [1, 0]);
}

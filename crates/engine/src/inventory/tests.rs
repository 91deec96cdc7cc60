//! Inventories that are wrong, and what lies between two that are right.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use fc::remote::Partners;
use fc::wire::names::Wwn;
use iscsi::auth::Hash;
use iscsi::target::{AccessGroup, ChapUser, Initiators, NodeAccess, TargetChap};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::{
    FcPortRow, Inventory, InventoryError, LocalNode, LunRow, LunRows, MOST_LUNS, Step, TargetRow,
    UnitRow, diff,
};

const TARGET: &str = "iqn.2026-11.org.lunar:san";
const HOST: &str = "iqn.2026-11.org.example:host";

/// The server.
const HERE: LocalNode<'_> = LocalNode {
    addresses: &[IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))],
    initiator: "iqn.2026-11.org.lunar:us",
};

fn unit(written: &str) -> Arc<UnitRow> {
    UnitRow::new(written.parse().unwrap(), written.to_owned()).into()
}

fn serving(luns: &[(u16, &str)]) -> Inventory {
    let mut inventory = Inventory::default();
    for name in ["a", "b"] {
        inventory.units.insert(name.into(), unit("ram:1M"));
    }
    let luns = luns.iter().map(|&(lun, name)| LunRow::new(lun, name));
    let row = TargetRow {
        luns: luns.collect(),
        ..TargetRow::default()
    };
    inventory.targets.insert(TARGET.into(), row);
    inventory
}

fn refused(inventory: &Inventory) -> String {
    inventory.check(HERE).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    assert_eq!(serving(&[(0, "a"), (1, "b"), (2, "a")]).check(HERE), Ok(()));
    assert_eq!(
        refused(&serving(&[(3, "a"), (3, "b")])),
        format!("{TARGET} has LUN 3 twice: give one of the volumes another number")
    );
    assert_eq!(
        refused(&serving(&[(0, "c")])),
        format!("{TARGET}: LUN 0 is of \"c\", which is not among the volumes")
    );
    assert_eq!(
        refused(&serving(&[(MOST_LUNS as u16, "a")])),
        format!("{TARGET}: LUN 16384 is too high: the highest is 16383")
    );
}

#[test]
fn an_initiator_sees_what_one_group_sees() {
    let mut inventory = serving(&[(0, "a")]);
    let group = (BTreeSet::from([HOST.to_owned()]), vec![LunRow::new(0, "b")]);
    let target = inventory.targets.get_mut(TARGET).unwrap();
    target.groups = vec![group.clone(), group];
    let twice = InventoryError::TwoGroups {
        target: TARGET.into(),
        initiator: HOST.into(),
    };
    assert_eq!(inventory.check(HERE), Err(twice));
}

#[test]
fn a_target_has_portals_of_its_inventory_each_in_one_group() {
    let first: SocketAddr = ([127, 0, 0, 1], 3260).into();
    let other: SocketAddr = ([127, 0, 0, 2], 3260).into();
    let found = |portals: &[(u16, SocketAddr)], ids: &[(u16, u16)]| {
        let mut inventory = serving(&[(0, "a")]);
        inventory.portals = vec![first, other];
        let target = inventory.targets.get_mut(TARGET).unwrap();
        target.portals = portals.to_vec();
        target.port_ids = ids.iter().copied().collect();
        inventory.check(HERE).err().map(|error| error.to_string())
    };
    assert_eq!(found(&[(1, first), (6, other)], &[(6, 300)]), None);
    assert_eq!(found(&[(0, first)], &[(0, 1)]), None);
    let [absent, twice, zero, same] = [
        found(&[(1, ([127, 0, 0, 3], 3260).into())], &[]),
        found(&[(1, first), (6, first)], &[]),
        found(&[(0, first)], &[]),
        found(&[(1, first), (6, other)], &[(6, 1)]),
    ]
    .map(Option::unwrap);
    assert!(absent.ends_with("127.0.0.3:3260, which is not among the portals"));
    assert!(twice.contains("has the portal 127.0.0.1:3260 twice"));
    assert!(zero.contains("portal group 0 cannot have the identifier 0"));
    assert!(same.contains("portal group 6 cannot have the identifier 1"));
}

#[test]
fn a_name_is_written_as_it_is_compared() {
    let mut inventory = Inventory::default();
    inventory
        .targets
        .insert("IQN.2026-11.org.lunar:A".into(), TargetRow::default());
    let told = refused(&inventory);
    assert!(
        told.ends_with("iSCSI compares it as iqn.2026-11.org.lunar:a"),
        "{told}"
    );
}

#[test]
fn a_designator_is_one_of_its_formats_and_of_one_unit() {
    let told = |a: &[u8], b: &[u8]| {
        let mut inventory = serving(&[(0, "a")]);
        for (name, naa) in [("a", a), ("b", b)] {
            Arc::make_mut(inventory.units.get_mut(name).unwrap()).naa = Some(naa.to_vec());
        }
        inventory.check(HERE)
    };
    assert_eq!(told(&[0x60; 16], &[0x50; 8]), Ok(()));
    let naa = "60".repeat(16);
    let (unit, other) = ("b".to_owned(), "a".to_owned());
    let twice = InventoryError::NaaTwice { unit, other, naa };
    assert_eq!(told(&[0x60; 16], &[0x60; 16]), Err(twice));
    for wrong in [&[0x60; 8][..], &[0x50; 16], &[0x10; 8], &[0x50; 7], &[]] {
        let found = told(&[0x30; 8], wrong);
        assert!(
            matches!(found, Err(InventoryError::NotNaa { .. })),
            "{wrong:x?}"
        );
    }
}

#[test]
fn an_initiator_that_may_log_in_is_written_as_iscsi_compares_it() {
    let mut inventory = serving(&[(0, "a")]);
    let target = inventory.targets.get_mut(TARGET).unwrap();
    target.access = NodeAccess::only([HOST.to_uppercase()].into());
    let told = refused(&inventory);
    assert!(
        told.ends_with(&format!("iSCSI compares it as {HOST}")),
        "{told}"
    );
}

/// LUN 0 is unit `a`, LUN 1 unit `b`, behind a portal that listens on these.
fn served_at(portal: &str, a: &str, b: &str) -> Inventory {
    let mut inventory = serving(&[(0, "a"), (1, "b")]);
    inventory.portals = vec![portal.parse().unwrap()];
    inventory.units.insert("a".into(), unit(a));
    inventory.units.insert("b".into(), unit(b));
    inventory
}

#[test]
fn a_volume_that_leads_back_to_its_unit_is_refused() {
    let to = |host: &str, lun: u16| format!("iscsi://{host}/{TARGET}/{lun}");
    for (portal, a, b, is_cycle) in [
        ("192.0.2.1:3260", to("192.0.2.1", 0), "ram:1M".into(), true),
        ("0.0.0.0:3260", to("192.0.2.1", 1), to("127.0.0.1", 0), true),
        (
            "[::]:3260",
            format!("concat(ram:1M,{})", to("localhost", 0)),
            "ram:1M".into(),
            true,
        ),
        ("127.0.0.1:3260", to("0.0.0.0", 0), "ram:1M".into(), true),
        (
            "127.0.0.1:3260",
            to("[::ffff:127.0.0.1]", 0),
            "ram:1M".into(),
            true,
        ),
        ("127.0.0.1:3260", to("LOCALHOST", 0), "ram:1M".into(), true),
        // Through a unit that is not part of the cycle itself.
        (
            "127.0.0.1:3260",
            to("127.0.0.1", 1),
            to("127.0.0.1", 1),
            true,
        ),
        // A LUN made of another one of the same server, another server, port or name.
        ("127.0.0.1:3260", to("127.0.0.1", 1), "ram:1M".into(), false),
        ("192.0.2.1:3260", to("192.0.2.2", 0), "ram:1M".into(), false),
        (
            "192.0.2.1:3260",
            to("192.0.2.1:3261", 0),
            "ram:1M".into(),
            false,
        ),
        ("0.0.0.0:3260", to("192.0.2.2", 0), "ram:1M".into(), false),
        ("0.0.0.0:3260", to("[::1]", 0), "ram:1M".into(), false),
        (
            "192.0.2.1:3260",
            format!("iscsi://192.0.2.1/{HOST}/0"),
            "ram:1M".into(),
            false,
        ),
        ("192.0.2.1:3260", to("192.0.2.1", 2), "ram:1M".into(), false),
    ] {
        let found = served_at(portal, &a, &b).check(HERE);
        assert_eq!(found.is_err(), is_cycle, "{portal} {a} {b}: {found:?}");
    }
}

#[test]
fn a_cycle_goes_by_what_the_server_itself_is_shown() {
    let address = format!("iscsi://127.0.0.1/{TARGET}/0");
    let mut inventory = served_at("127.0.0.1:3260", &address, "ram:1M");
    let target = inventory.targets.get_mut(TARGET).unwrap();
    let group = BTreeSet::from([HERE.initiator.to_owned()]);
    target.groups = vec![(group, vec![LunRow::new(0, "b")])];
    assert_eq!(inventory.check(HERE), Ok(()));
    let other = unit(&format!("{address}?initiator={HOST}"));
    inventory.units.insert("a".into(), other);
    assert!(inventory.check(HERE).is_err());
}

#[test]
fn a_cycle_goes_by_the_portals_of_its_target() {
    let address = format!("iscsi://127.0.0.1/{TARGET}/0");
    let mut inventory = served_at("127.0.0.1:3260", &address, "ram:1M");
    let other: SocketAddr = ([192, 0, 2, 1], 3260).into();
    inventory.portals.push(other);
    assert!(inventory.check(HERE).is_err());
    let target = inventory.targets.get_mut(TARGET).unwrap();
    target.portals = vec![(1, other)];
    assert_eq!(inventory.check(HERE), Ok(()));
}

#[test]
fn a_long_chain_of_units_takes_no_stack() {
    const LAST: u16 = MOST_LUNS as u16 - 1;
    let mut inventory = serving(&[]);
    inventory.portals = vec![([127, 0, 0, 1], 3260).into()];
    let target = inventory.targets.get_mut(TARGET).unwrap();
    for lun in 0..=LAST {
        target.luns.push(LunRow::new(lun, lun.to_string()));
        let next = unit(&format!(
            "iscsi://127.0.0.1/{TARGET}/{}",
            lun.min(LAST - 1) + 1
        ));
        inventory.units.insert(lun.to_string(), next);
    }
    inventory.units.insert(LAST.to_string(), unit("ram:1M"));
    assert_eq!(inventory.check(HERE), Ok(()));
}

#[test]
fn a_cycle_is_named_by_the_volume_that_closes_it() {
    let address = format!("iscsi://127.0.0.1/{TARGET}/0");
    let told = refused(&served_at("127.0.0.1:3260", &address, "ram:1M"));
    assert_eq!(
        told,
        format!(
            "{address} leads back to itself through what is served here: give the unit a volume \
             that does not need it"
        )
    );
}

#[test]
fn a_cycle_through_a_fibre_channel_port_is_refused_too() {
    let wwpn = "20:00:ac:de:48:23:45:67";
    let mut inventory = served_at("127.0.0.1:3260", &format!("fcoe://eth0/{wwpn}/3"), "ram:1M");
    let row = |wwpn: &str| FcPortRow {
        port: format!("eth1,wwpn={wwpn}").parse().unwrap(),
        luns: vec![LunRow::new(3, "a")],
        groups: Vec::new(),
        partners: Partners::Any,
        port_id: None,
    };
    inventory.fc_ports = vec![row("20:00:ac:de:48:23:45:68")];
    assert_eq!(inventory.check(HERE), Ok(()));
    inventory.fc_ports = vec![row(wwpn)];
    assert!(inventory.check(HERE).is_err());
}

#[test]
fn a_unit_with_another_volume_is_swapped_and_one_with_another_name_is_another() {
    let old = serving(&[(0, "a")]);
    let mut new = old.clone();
    new.units.insert("a".into(), unit("ram:2M"));
    let swapped = Step::SwapVolume("a".into(), unit("ram:2M"));
    assert_eq!(diff(&old, &new), [swapped]);
    let other = Arc::new(UnitRow {
        serial: Some("1".into()),
        ..UnitRow::clone(&unit("ram:1M"))
    });
    new.units.insert("a".into(), Arc::clone(&other));
    let steps = [
        Step::RemoveUnit("a".into()),
        Step::AddUnit("a".into(), other),
    ];
    assert_eq!(diff(&old, &new), steps);
}

#[test]
fn a_fibre_channel_port_stays_when_others_may_log_in_to_it() {
    let row = FcPortRow {
        port: "eth0".parse().unwrap(),
        luns: vec![LunRow::new(0, "a")],
        groups: Vec::new(),
        partners: Partners::Any,
        port_id: None,
    };
    let mut old = serving(&[]);
    old.fc_ports = vec![row.clone()];
    let (mut new, name) = (old.clone(), Wwn(7));
    let group = (BTreeSet::from([name]), vec![LunRow::new(0, "b")]);
    new.fc_ports[0].partners = Partners::Only([name].into());
    new.fc_ports[0].groups = vec![group.clone()];
    assert_eq!(diff(&old, &new), [Step::SetFcPort(new.fc_ports[0].clone())]);
    new.fc_ports[0].groups.push(group);
    assert_eq!(
        refused(&new),
        format!("eth0: {name} is in two groups that see different LUNs")
    );
}

fn rows() -> impl Strategy<Value = UnitRow> {
    let address = prop_oneof![Just("ram:1M"), Just("ram:2M"), Just("null:1G")];
    let designators = (option::of("[0-9]"), option::of(vec(0x30..0x32_u8, 8)));
    (address, designators).prop_map(|(address, (serial, naa))| UnitRow {
        serial,
        naa,
        ..UnitRow::clone(&unit(address))
    })
}

fn chap() -> impl Strategy<Value = TargetChap> {
    let minimum = prop_oneof![Just(Hash::Md5), Just(Hash::Sha256)];
    ("[ab]", option::of("[ab]"), minimum).prop_map(|(user, mutual, minimum)| TargetChap {
        users: vec![ChapUser {
            name: user,
            initiator: None,
            secret: b"twelve bytes".to_vec(),
        }],
        mutual: mutual.map(|name| (name, b"a dozen bytes".to_vec())),
        minimum,
    })
}

fn access() -> impl Strategy<Value = NodeAccess> {
    let names = btree_set("iqn.2026-11.h:[a-c]", 0..3).prop_map(Initiators::Named);
    let initiators = prop_oneof![Just(Initiators::Everybody), names];
    let group = (initiators, option::of(chap()));
    let group = group.prop_map(|(initiators, chap)| AccessGroup { initiators, chap });
    vec(group, 0..3).prop_map(NodeAccess::new)
}

fn portal() -> impl Strategy<Value = SocketAddr> {
    (1..4_u16).prop_map(|port| ([127, 0, 0, 1], port).into())
}

fn targets() -> impl Strategy<Value = TargetRow> {
    let portals = vec((0..3_u16, portal()), 0..3);
    let port_ids = btree_map(0..3_u16, 1..3_u16, 0..2);
    let all = (luns(), access(), portals, port_ids);
    all.prop_map(|(luns, access, portals, port_ids)| TargetRow {
        luns,
        access,
        portals,
        port_ids,
        ..TargetRow::default()
    })
}

fn luns() -> impl Strategy<Value = LunRows> {
    let row = (0..4_u16, "[a-d]", any::<bool>());
    let row = row.prop_map(|(lun, unit, read_only)| LunRow {
        lun,
        unit,
        read_only,
    });
    vec(row, 0..4)
}

fn fc_port() -> impl Strategy<Value = FcPortRow> {
    let names = || btree_set((1..4_u64).prop_map(Wwn), 0..3);
    let partners = prop_oneof![Just(Partners::Any), names().prop_map(Partners::Only)];
    let groups = vec((names(), luns()), 0..2);
    let all = ("eth[0-2]", luns(), groups, partners, option::of(2..4_u16));
    all.prop_map(|(port, luns, groups, partners, port_id)| FcPortRow {
        port: port.parse().unwrap(),
        luns,
        groups,
        partners,
        port_id,
    })
}

/// An interface has one port.
fn fc_ports() -> impl Strategy<Value = Vec<FcPortRow>> {
    vec(fc_port(), 0..4).prop_map(|mut ports| {
        ports.sort_by_key(|one| one.port.place.to_string());
        ports.dedup_by(|one, other| one.port == other.port);
        ports
    })
}

fn inventories() -> impl Strategy<Value = Inventory> {
    let targets = btree_map("iqn.2026-11.t:[a-c]", targets(), 0..3);
    let portals = vec(portal(), 0..4);
    let units = btree_map("[a-d]", rows().prop_map(Arc::new), 0..4);
    let all = (units, targets, portals, fc_ports());
    all.prop_map(|(units, targets, portals, fc_ports)| Inventory {
        units,
        targets,
        portals,
        fc_ports,
        ..Inventory::default()
    })
}

proptest! {
    #[test]
    fn the_steps_lead_from_the_old_to_the_new(old in inventories(), new in inventories()) {
        let mut made = old.clone();
        diff(&old, &new).into_iter().for_each(|step| made.make(step));
        let mut wanted = new;
        for inventory in [&mut made, &mut wanted] {
            inventory.portals.sort_unstable();
            inventory.fc_ports.sort_by_key(|one| one.port.place.to_string());
        }
        prop_assert_eq!(made, wanted);
    }

    #[test]
    fn there_are_no_steps_between_equal_ones(inventory in inventories()) {
        prop_assert_eq!(diff(&inventory, &inventory), []);
    }
}

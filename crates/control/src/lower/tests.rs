//! Trees, and what is served of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use engine::inventory::Inventory;
use proptest::prelude::*;

use super::{Machine, inventory, sources};
use crate::any;
use crate::document::parse;
use crate::tree::Tree;

fn served(text: &str) -> Result<Inventory, Vec<String>> {
    let tree = parse(text).unwrap();
    assert_eq!(crate::check::check(&tree).problems, []);
    let secrets = sources(&tree).into_iter();
    let machine = Machine {
        id: "a machine".to_owned(),
        ports: BTreeMap::from([(("iqn.2026-11.org.example:san".to_owned(), 1), 0x100)]),
        secrets: secrets
            .map(|source| (source, b"twelve bytes".to_vec().into()))
            .collect(),
    };
    inventory(&tree, &machine, &Inventory::default(), |name, _| {
        name == "vm1"
    })
}

#[test]
fn rows_become_units_targets_and_portals() {
    let inventory = served(
        r#"
version = 1
[volume.vm1]
address = "file:/srv/vm1.img"
size = "100G"
limit = { iops = "2k" }
[volume.left]
address = "ram:1G"
[volume.right]
address = "ram:1G"
[volume.gold]
address = "stripe:64k(vol:left,readonly(vol:right))"
serial = "GOLD"
vendor = "LAB"
[group.cluster]
initiators = ["iqn.2026-11.org.example:NODE1", "20:00:00:00:5e:00:53:00"]
chap = { user = "cluster", secret = "state:cluster" }
[target."iqn.2026-11.org.example:san"]
portals = ["192.0.2.1", "[2001:db8::1]:3261"]
luns = { 0 = "vm1" }
allow = ["cluster", "iqn.2026-11.org.example:guest"]
view.cluster = { 7 = "gold" }
[target."iqn.2026-11.org.example:san".login]
header-digest = "crc32c"
data-digest = "none"
initial-r2t = true
immediate-data = false
max-recv-data-segment-length = "64k"
first-burst-length = "32k"
max-burst-length = "128k"
max-outstanding-r2t = 4
data-pdu-in-order = true
data-sequence-in-order = false
default-time2wait = 3
default-time2retain = 0
max-connections = 1
error-recovery-level = 0
max-sessions = 7
[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:int0"]
luns = { 0 = "vm1" }
allow = ["cluster"]
"#,
    );
    insta::assert_debug_snapshot!(inventory.unwrap());
}

#[test]
fn another_machine_and_another_row_are_other_disks() {
    let text =
        "version = 1\n[volume.a]\naddress = \"null:1G\"\n[volume.b]\naddress = \"null:1G\"\n";
    let tree = parse(text).unwrap();
    let serials = |id: &str| {
        let machine = Machine {
            id: id.to_owned(),
            ..Machine::default()
        };
        let units = inventory(&tree, &machine, &Inventory::default(), |_, _| false)
            .unwrap()
            .units;
        units
            .into_values()
            .map(|unit| unit.serial.clone())
            .collect::<Vec<_>>()
    };
    let (one, other) = (serials("one"), serials("other"));
    assert_eq!(one, serials("one"));
    assert!(one[0] != one[1] && one[0] != other[0]);
}

#[test]
fn a_view_of_everybody_is_what_those_without_a_name_see() {
    let inventory = served(
        r#"
version = 1
[volume.a]
address = "null:1G"
[group.everybody]
initiators = ["*"]
[target."iqn.2026-11.org.example:san"]
portals = ["192.0.2.1"]
luns = { 0 = "a" }
allow = ["iqn.2026-11.org.example:known", "everybody"]
view = { everybody = { 0 = { volume = "a", access = "ro" } } }
"#,
    );
    let target = &inventory.unwrap().targets["iqn.2026-11.org.example:san"];
    assert!(target.luns.iter().all(|lun| lun.read_only));
    let [(names, luns)] = &target.groups[..] else {
        panic!("{:?}", target.groups);
    };
    assert!(names.contains("iqn.2026-11.org.example:known"));
    assert!(luns.iter().all(|lun| !lun.read_only));
}

#[test]
fn a_portal_takes_iser_if_any_row_says_so() {
    let text = r#"
version = 1
[target."iqn.2026-11.org.example:a"]
portals = { 1 = ["192.0.2.1", { address = "192.0.2.3:3261", iser = true }], 6 = ["192.0.2.2"] }
[target."iqn.2026-11.org.example:b"]
portals = [{ address = "192.0.2.1:3260", iser = true }, { address = "192.0.2.4" }]
[target."iqn.2026-11.org.example:c"]
portals = [{ address = "192.0.2.1", iser = true }]
"#;
    let iser = served(text).unwrap().iser;
    let portals: Vec<_> = iser.portals.iter().map(SocketAddr::to_string).collect();
    assert_eq!(portals, ["192.0.2.1:3260", "192.0.2.3:3261"]);
    assert!(!iser.without_crc);
    for (written, without) in [("true", false), ("false", true)] {
        let text = format!("{text}[daemon]\niser-crc = {written}\n");
        assert_eq!(served(&text).unwrap().iser.without_crc, without);
    }
}

#[test]
fn a_unit_is_shared_but_where_its_row_names_another() {
    let tree = |size| {
        let left = format!("[volume.left]\naddress = \"ram:{size}\"\n");
        let alone = "[volume.alone]\naddress = \"file:/srv/a.img?size=1G\"\n";
        let gold = "[volume.gold]\naddress = \"readonly(vol:left)\"\n";
        parse(&format!("version = 1\n{left}{gold}{alone}")).unwrap()
    };
    let (machine, nothing) = (Machine::default(), Inventory::default());
    let before = inventory(&tree("1G"), &machine, &nothing, |_, _| false).unwrap();
    let after = inventory(&tree("2G"), &machine, &before, |name, _| name == "left").unwrap();
    assert_eq!(after.units["gold"].address.to_string(), "readonly(ram:2G)");
    assert!(Arc::ptr_eq(&before.units["alone"], &after.units["alone"]));
}

proptest! {
    #[test]
    fn units_are_the_same_whether_they_are_kept_or_made_anew(
        (old, mut new) in (any::tree(), any::tree()),
        (stays, made) in (prop::collection::vec(any::<bool>(), 4), any::<bool>()),
    ) {
        let kept = old.volume.iter().zip(stays).filter(|(_, stays)| *stays);
        new.volume.extend(kept.map(|((name, row), _)| (name.clone(), row.clone())));
        let (machine, nothing) = (Machine::default(), Inventory::default());
        let rows = |tree: &Tree| Tree { volume: tree.volume.clone(), ..Tree::default() };
        let (old, new) = (rows(&old), rows(&new));
        let before = inventory(&old, &machine, &nothing, |_, _| made).unwrap_or_default();
        let makes = |name: &str, row: &_| old.volume.get(name) != Some(row);
        let made = inventory(&new, &machine, &nothing, makes);
        prop_assert_eq!(inventory(&new, &machine, &before, makes), made);
    }
}

/// The WWPN of a further port is a target, whose LUNs and initiators are its own.
#[test]
fn further_ports_of_an_enode_show_what_their_targets_have() {
    let [first, second] = ["20:00:ac:de:48:23:45:67", "20:00:ac:de:48:23:45:68"];
    let text = format!(
        "version = 1\n[volume.a]\naddress = \"ram:1M\"\n[volume.b]\naddress = \"ram:1M\"\n\
         [target.\"{first}\"]\nportals = [\"fcoe:int0,mode=fabric,npiv={second}\"]\n\
         luns = {{ 0 = \"a\" }}\nallow = [\"*\"]\n\
         [target.\"{second}\"]\nluns = {{ 3 = \"b\" }}\n\
         allow = [\"20:00:ac:de:48:00:00:01\"]\n"
    );
    let tree = parse(&text).unwrap();
    let machine = Machine {
        ports: [((second.to_owned(), 1), 7)].into(),
        ..Machine::default()
    };
    let inventory = inventory(&tree, &machine, &Inventory::default(), |_, _| false).unwrap();
    let ports = inventory.fc_ports.iter().map(|row| {
        let luns: Vec<_> = row.luns.iter().map(|one| (one.lun, &*one.unit)).collect();
        let is_anybody = row.partners.admit(fc::wire::names::Wwn(9));
        let wwpn = row.port.wwpn.unwrap().to_string();
        (wwpn, row.port.is_further, luns, is_anybody, row.port_id)
    });
    assert_eq!(
        ports.collect::<Vec<_>>(),
        [
            (first.to_owned(), false, vec![(0, "a")], true, None),
            (second.to_owned(), true, vec![(3, "b")], false, Some(7)),
        ]
    );
    let groups: Vec<_> = super::portal_groups(&tree).collect();
    assert_eq!(groups, [first, second].map(|name| (name.to_owned(), 1)));
}

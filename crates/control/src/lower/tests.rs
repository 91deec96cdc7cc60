//! Trees, and what is served of them.

use std::collections::BTreeMap;

use engine::inventory::Inventory;

use super::{Machine, inventory, sources};
use crate::document::parse;

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
    inventory(&tree, &machine, |name| name == "vm1")
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
        let units = inventory(&tree, &machine, |_| false).unwrap().units;
        units
            .into_values()
            .map(|unit| unit.serial)
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

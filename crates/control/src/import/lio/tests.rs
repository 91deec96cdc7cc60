//! The way to LIO and back.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;
use zeroize::Zeroizing;

use super::{Exported, export_lio, naa};
use crate::any;
use crate::import::tests::sample;
use crate::import::{Imported, import};
use crate::secret::SecretSource;
use crate::tree::{Access, ChapRow, GroupRow, HashName, LunNumber, Portals, TargetRow, Tree};

/// As `/dev/disk/by-id` of an initiator shows them: `wwn-0x6001405…`.
#[test]
fn the_designator_is_that_of_the_kernel() {
    assert_eq!(
        naa("5d0c1e46-9a0f-4c53-8f66-1f3be2a7c901"),
        "60014055d0c1e469a0f4c538f661f3be"
    );
    // Other characters than hexadecimal digits are skipped; zeros fill the rest.
    assert_eq!(naa("My Disk 7F"), "6001405d7f0000000000000000000000");
    assert_eq!(naa(""), "60014050000000000000000000000000");
}

fn there_and_back(imported: &Imported) -> (Exported, Imported) {
    let exported = export_lio(&imported.tree, &|source| match source {
        SecretSource::State(name) => imported.secrets.get(name).cloned(),
        _ => None,
    });
    let again = import(crate::import::Format::Lio, &exported.text).unwrap();
    (exported, again)
}

#[test]
fn a_file_of_targetcli_comes_back_the_same() {
    let (format, text) = sample("lio-targetcli");
    let imported = import(format, text).unwrap();
    let (exported, again) = there_and_back(&imported);
    assert_eq!(exported.left_out, []);
    assert_eq!(again.tree, imported.tree);
    assert!(again.secrets == imported.secrets);
    let original: Value = serde_json::from_str(text).unwrap();
    let written: Value = serde_json::from_str(&exported.text).unwrap();
    is_part(&written, &original, "");
}

#[test]
fn iser_of_a_portal_goes_there_and_back() {
    let portal = |port: u16, iser: &str| {
        format!(r#"{{"ip_address": "10.10.1.3", {iser} "offload": false, "port": {port}}}"#)
    };
    let portals = [
        portal(3260, r#""iser": true,"#),
        portal(3261, r#""iser": false,"#),
        portal(3262, ""),
    ];
    let text = format!(
        r#"{{"storage_objects": [], "targets": [{{"fabric": "iscsi",
        "wwn": "iqn.2026-11.org.example:san", "tpgs": [{{"tag": 1, "enable": true,
        "portals": [{}]}}]}}]}}"#,
        portals.join(", ")
    );
    let imported = import(crate::import::Format::Lio, &text).unwrap();
    let row = &imported.tree.target["iqn.2026-11.org.example:san"];
    let iser: Vec<_> = row
        .portals
        .iter()
        .map(|(_, row)| row.iser.is_taken())
        .collect();
    assert_eq!(iser, [true, false, false]);
    let told = imported.left_out.iter();
    assert!(
        !told.clone().any(|one| one.text.contains("iser")),
        "{:?}",
        imported.left_out
    );
    let (exported, again) = there_and_back(&imported);
    assert_eq!(again.tree.target, imported.tree.target);
    assert_eq!(exported.text.matches("\"iser\": true").count(), 1);
    assert_eq!(exported.text.matches("\"iser\": false").count(), 2);
}

/// Each value that is written stands in the original too. Items of lists are found by what they are
/// known by.
fn is_part(part: &Value, whole: &Value, path: &str) {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            for (key, value) in part {
                let other = whole.get(key).unwrap_or(&Value::Null);
                is_part(value, other, &format!("{path}.{key}"));
            }
        }
        (Value::Array(part), Value::Array(whole)) => {
            assert_eq!(part.len(), whole.len(), "{path}");
            for item in part {
                let same = whole.iter().find(|other| key_of(other) == key_of(item));
                let same = same.unwrap_or_else(|| panic!("{path}: {item}"));
                is_part(item, same, &format!("{path}[{}]", key_of(item)));
            }
        }
        _ => assert_eq!(part, whole, "{path}"),
    }
}

fn key_of(item: &Value) -> String {
    let keys = ["name", "wwn", "node_wwn", "ip_address", "tag", "index"];
    let key = keys.iter().find_map(|key| item.get(key));
    key.map_or_else(String::new, ToString::to_string)
}

#[test]
fn other_fabrics_come_back_as_far_as_they_were_taken() {
    let (format, text) = sample("lio-fabrics");
    let mut imported = import(format, text).unwrap();
    // LIO has another product than the name here, and an image of Ceph needs a size there.
    for name in ["fcoetest", "odd", "image"] {
        let row = imported.tree.volume.get_mut(name).unwrap();
        row.product = Some(name.to_owned());
    }
    let (exported, again) = there_and_back(&imported);
    let left: Vec<_> = exported.left_out.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(left.join("\n"));
    let target = "iqn.2026-11.org.example:readers";
    imported.tree.volume.remove("image");
    let row = imported.tree.target.get_mut(target).unwrap();
    row.luns.remove(&LunNumber(3));
    assert_eq!(again.tree, imported.tree);
}

#[test]
fn what_lio_has_not_is_named() {
    let text = r#"
version = 1
[daemon]
threads = 2
[volume."long name"]
address = "stripe:64k(ram:1G,ram:1G)"
[volume.db]
address = "file:/srv/db.img"
removable = true
limit = { iops = "1k" }
[group.none]
[group.unused]
initiators = ["iqn.2026-11.org.example:x"]
[group.chap]
initiators = ["iqn.2026-11.org.example:h"]
chap = { user = "u", secret = "file:/secret" }
[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:eth0"]
luns = { 0 = "db" }
allow = ["*"]
[target."iqn.2026-11.org.example:a"]
portals = ["127.0.0.1:3261"]
luns = { 0 = "db", 1 = { volume = "db", access = "ro" }, 2 = "long name" }
allow = ["*", "chap", "none", "iqn.2026-11.org.example:h"]
login = { max-sessions = 4 }
"#;
    let tree = crate::document::parse(text).unwrap();
    let exported = export_lio(&tree, &|_| None);
    let left: Vec<_> = exported.left_out.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(left.join("\n"));
    insta::assert_snapshot!("written", &*exported.text);
}

/// Whoever exports has to know what is missing, and where it goes: each secret once.
#[test]
fn secrets_that_are_not_exported_are_named_with_their_places() {
    let text = r#"
version = 1
[group.chap]
initiators = ["iqn.2026-11.org.example:h1", "iqn.2026-11.org.example:h2"]
chap = { user = "u", secret = "state:chap" }
chap-min = "md5"
mutual = { user = "san", secret = "file:/etc/lunar/san" }
[target."iqn.2026-11.org.example:a"]
portals = ["127.0.0.1"]
allow = ["chap"]
[target."iqn.2026-11.org.example:b"]
portals = ["127.0.0.1"]
allow = ["chap"]
"#;
    let tree = crate::document::parse(text).unwrap();
    let exported = export_lio(&tree, &|_| None);
    let left: Vec<_> = exported.left_out.iter().map(ToString::to_string).collect();
    let place = |key: &str| format!("beside each \"{key}_userid\"");
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left[0].contains("group.chap.chap.secret: state:chap is not exported"));
    assert!(left[0].contains(&place("chap")) && left[0].contains("cannot log in"));
    assert!(left[1].contains("group.chap.mutual.secret: file:/etc/lunar/san"));
    assert!(left[1].contains(&place("chap_mutual")));
    // LIO lets nobody in by a user without a password.
    let written: Value = serde_json::from_str(&exported.text).unwrap();
    for target in written["targets"].as_array().unwrap() {
        let tpg = &target["tpgs"][0];
        assert_eq!(tpg["attributes"]["authentication"], 1);
        for acl in tpg["node_acls"].as_array().unwrap() {
            assert_eq!(acl["chap_userid"], "u");
            assert!(acl.get("chap_password").is_none());
        }
    }
}

/// What an initiator finds at a target: its LUNs, and what it logs in with.
type Sight = Option<(BTreeMap<LunNumber, (String, Access)>, Option<String>)>;

fn sight(tree: &Tree, row: &TargetRow, initiator: &str) -> Sight {
    let none = GroupRow::default();
    let group_of = |name: &String| tree.group.get(name);
    let is = |name: &&String, who: &str| match group_of(name) {
        Some(group) => group.initiators.iter().any(|one| one == who),
        None => *name == who,
    };
    let named = row.allow.iter().find(|name| is(name, initiator));
    let name = named.or_else(|| row.allow.iter().find(|name| is(name, "*")))?;
    let luns = row.view.get(name).unwrap_or(&row.luns);
    let luns = luns.iter().map(|(number, lun)| {
        let volume = lun.volume().to_owned();
        let readonly = tree
            .volume
            .get(&volume)
            .is_some_and(|volume| volume.readonly);
        let access = if readonly {
            Access::ReadOnly
        } else {
            lun.access()
        };
        (*number, (volume, access))
    });
    let chap = &group_of(name).unwrap_or(&none).chap;
    Some((luns.collect(), chap.as_ref().map(|chap| chap.user.clone())))
}

/// A tree that LIO can have: its identities, names without spaces, one ACL for an initiator, LUNs
/// that are there, groups that are used and ask for what LIO asks for, and no switches.
fn for_lio(mut tree: Tree) -> Tree {
    tree.switch.clear();
    tree.volume = std::mem::take(&mut tree.volume)
        .into_iter()
        .map(|(name, mut row)| {
            let name = name.replace(' ', "-");
            let serial = row.serial.take().unwrap_or_else(|| format!("{name}-1f"));
            row.vendor = Some("LIO-ORG".to_owned());
            row.product = Some(name.clone());
            row.naa = Some(naa(&serial));
            row.serial = Some(serial);
            row.limit = None;
            row.readonly = false;
            // One medium is one volume, whatever it is called.
            row.address = row.address.replace("/srv/", &format!("/srv/{name}-"));
            (name, row)
        })
        .collect();
    for (name, group) in &mut tree.group {
        let chap = group.chap.take();
        group.chap_min = chap.is_some().then_some(HashName::Md5);
        // A secret of its own each, named as an import names it.
        group.chap = chap.map(|_| ChapRow {
            user: name.clone(),
            secret: SecretSource::State(format!("chap-{name}")),
        });
        let mut seen = BTreeSet::new();
        group
            .initiators
            .retain(|initiator| seen.insert(initiator.clone()));
    }
    tree.group.retain(|_, group| !group.initiators.is_empty());
    let volumes: BTreeSet<_> = tree.volume.keys().cloned().collect();
    let groups: Vec<_> = tree.group.keys().cloned().collect();
    for row in tree.target.values_mut() {
        target_for_lio(row, &tree.group, &volumes, &groups);
    }
    let used: BTreeSet<_> = tree
        .target
        .values()
        .flat_map(|row| row.allow.clone())
        .collect();
    tree.group.retain(|name, _| used.contains(name));
    tree
}

fn target_for_lio(
    row: &mut TargetRow,
    rows: &BTreeMap<String, GroupRow>,
    volumes: &BTreeSet<String>,
    groups: &[String],
) {
    row.alias = row.alias.take().filter(|alias| !alias.trim().is_empty());
    // What LIO offers anyway does not come back.
    row.login = None;
    if let Portals::Groups(tagged) = &row.portals
        && tagged.keys().all(|tag| tag.0 == 1)
    {
        row.portals = Portals::One(tagged.values().flatten().take(1).cloned().collect());
    }
    for luns in row.view.values_mut().chain([&mut row.luns]) {
        luns.retain(|_, lun| volumes.contains(lun.volume()));
    }
    row.allow.extend(groups.iter().cloned());
    let mut seen = BTreeSet::new();
    row.allow.retain(|name| match rows.get(name) {
        Some(group) => {
            let is_new = group.initiators.iter().all(|one| !seen.contains(one));
            if is_new {
                seen.extend(group.initiators.iter().cloned());
            }
            is_new
        }
        None => seen.insert(name.clone()),
    });
    let allow = row.allow.clone();
    row.view.retain(|name, _| allow.contains(name));
}

/// What the groups of such a tree refer to.
fn secrets(tree: &Tree) -> BTreeMap<String, Zeroizing<String>> {
    let groups = tree.group.iter().filter(|(_, group)| group.chap.is_some());
    let secret = |name: &String| Zeroizing::new(format!("the secret of {name}"));
    groups
        .map(|(name, _)| (format!("chap-{name}"), secret(name)))
        .collect()
}

proptest! {
    /// Every initiator finds what it found, whatever rows say it.
    #[test]
    fn initiators_find_the_same_after_the_way_there_and_back(tree in any::tree()) {
        let tree = for_lio(tree);
        let imported = Imported { secrets: secrets(&tree), tree, ..Imported::default() };
        let (exported, again) = there_and_back(&imported);
        for (name, row) in &imported.tree.target {
            let back = &again.tree.target[name];
            prop_assert_eq!(row.alias.as_ref(), back.alias.as_ref());
            prop_assert_eq!(&row.portals, &back.portals);
            for initiator in (0..4).map(|number| format!("iqn.2026-11.org.example:h{number}")) {
                let (before, after) =
                    (sight(&imported.tree, row, &initiator), sight(&again.tree, back, &initiator));
                prop_assert_eq!(before, after, "{} {}", initiator, &*exported.text);
            }
        }
        for (name, row) in &again.tree.volume {
            prop_assert_eq!(row, &imported.tree.volume[name]);
        }
    }

    /// What came from LIO once is the same each time.
    #[test]
    fn a_tree_of_lio_comes_back_the_same(tree in any::tree()) {
        let tree = for_lio(tree);
        let imported = Imported { secrets: secrets(&tree), tree, ..Imported::default() };
        let (_, first) = there_and_back(&imported);
        let (exported, again) = there_and_back(&first);
        prop_assert_eq!(&again.tree, &first.tree, "{}", &*exported.text);
        prop_assert!(again.secrets == first.secrets);
        prop_assert_eq!(exported.left_out, vec![]);
    }

    /// Where nothing has to be left out and no LUN is only for some, rows and names are the same.
    #[test]
    fn a_tree_without_views_comes_back_as_it_was(tree in any::tree()) {
        let mut tree = for_lio(tree);
        for row in tree.target.values_mut() {
            row.view.clear();
            let is_seen = !row.allow.is_empty();
            row.luns.retain(|_, lun| is_seen || lun.access() == Access::ReadWrite);
        }
        let imported = Imported { secrets: secrets(&tree), tree, ..Imported::default() };
        let (exported, again) = there_and_back(&imported);
        prop_assert_eq!(again.tree, imported.tree, "{}", &*exported.text);
        prop_assert!(again.secrets == imported.secrets);
        prop_assert_eq!(exported.left_out, vec![]);
    }
}

//! Plans, as they are printed.

use std::slice;

use proptest::prelude::*;

use super::{Allowed, Difference, Impact, SessionFact, plan};
use crate::any;
use crate::document::parse;
use crate::tree::Tree;

const SAN: &str = "iqn.2026-11.org.example:san";

const TEXT: &str = r#"
version = 1
[volume.vm1]
address = "file:/srv/vm1.img?sparse"
size = "100G"
[volume.db]
address = "file:/srv/db.img?size=200G&sparse"
limit = { iops = "20k" }
[volume.scratch]
address = "ram:1G"
[group.cluster]
initiators = ["iqn.2026-11.org.example:node1", "iqn.2026-11.org.example:node2"]
[target."iqn.2026-11.org.example:san"]
portals = ["192.0.2.1", "192.0.2.2"]
luns = { 0 = "vm1", 1 = "db" }
allow = ["cluster", "iqn.2026-11.org.example:guest"]
view.cluster = { 0 = "vm1", 1 = "db", 2 = "scratch" }
[target."iqn.2026-11.org.example:old"]
portals = ["192.0.2.1"]
luns = { 0 = "db" }
allow = ["*"]
"#;

fn tree() -> Tree {
    parse(TEXT).unwrap()
}

/// A session of `node1` with a target at a portal.
fn session(host: &str, target: &str, portal: &str) -> SessionFact {
    SessionFact {
        target: target.to_owned(),
        initiator: format!("iqn.2026-11.org.example:{host}"),
        portal: Some(portal.parse().unwrap()),
    }
}

fn sessions() -> Vec<SessionFact> {
    vec![
        session("node1", SAN, "192.0.2.1:3260"),
        session("node2", SAN, "192.0.2.2:3260"),
        session("guest", SAN, "192.0.2.2:3260"),
        session("node2", "iqn.2026-11.org.example:old", "192.0.2.1:3260"),
    ]
}

#[test]
fn at_a_start_nothing_is_said_to_count_at_the_next_one() {
    let text = TEXT.replace("version = 1", "version = 1\ndaemon = { threads = 2 }");
    let text = text.replace("size = \"100G\"", "");
    let text = format!("{text}[target.\"{SAN}\".login]\nmax-sessions = 4\n");
    let plan = plan(&tree(), &parse(&text).unwrap(), &[]).at_start();
    let told: Vec<_> = plan.differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "~ daemon  + threads = 2",
            "~ volume vm1  - size = \"100G\": the file stays as long as it is",
            "~ target iqn.2026-11.org.example:san  + login.max-sessions = 4",
        ]
    );
}

/// The plan after lines of the text were replaced.
fn after(replacements: &[(&str, &str)]) -> String {
    let mut text = TEXT.to_owned();
    for (old, new) in replacements {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let plan = plan(&tree(), &parse(&text).unwrap(), &sessions());
    format!("{plan}\n  {} {}\n", plan.worst(), plan.way_out())
}

#[test]
fn a_view_of_nothing_is_told() {
    let view = "view.cluster = { 0 = \"vm1\", 1 = \"db\", 2 = \"scratch\" }\n";
    let told = after(&[(view, "view.cluster = {}\n")]);
    assert!(told.contains("+ view.cluster = {}"), "{told}");
}

/// Stories: lines of the text, and what stands there then.
const STORIES: &[(&str, &[(&str, &str)])] = &[
    ("nothing", &[]),
    ("a volume grows", &[("100G", "150G")]),
    ("a limit", &[("20k", "30k")]),
    (
        "a volume is made read-only",
        &[("size = \"100G\"", "size = \"100G\"\nreadonly = true")],
    ),
    (
        "a wrapper",
        &[(
            "\"file:/srv/db.img?size=200G&sparse\"",
            "\"stats(file:/srv/db.img?size=200G&sparse)\"",
        )],
    ),
    (
        "a file is used in another way",
        &[("vm1.img?sparse\"", "vm1.img?direct\"")],
    ),
    (
        "a file is to have no write cache",
        &[("vm1.img?sparse\"", "vm1.img?sparse&sync\"")],
    ),
    (
        "a file is opened for reading",
        &[("vm1.img?sparse\"", "vm1.img?sparse&readonly\"")],
    ),
    (
        "a volume grows and is made read-only",
        &[
            ("vm1.img?sparse\"", "vm1.img?sparse&readonly\""),
            ("size = \"100G\"", "size = \"150G\""),
        ],
    ),
    ("another file", &[("db.img", "new.img")]),
    ("RAM grows", &[("ram:1G", "ram:2G")]),
    ("RAM is to be locked", &[("ram:1G", "ram:1G?locked")]),
    (
        "a serial number",
        &[("limit =", "serial = \"DB\"\nlimit =")],
    ),
    (
        "a row is renamed",
        &[
            ("[volume.db]", "[volume.data]"),
            ("1 = \"db\"", "1 = \"data\""),
            ("1 = \"db\"", "1 = \"data\""),
            ("0 = \"db\"", "0 = \"data\""),
        ],
    ),
    (
        "a LUN more",
        &[(
            "luns = { 0 = \"vm1\", 1 = \"db\" }",
            "luns = { 0 = \"vm1\", 1 = \"db\", 2 = \"scratch\" }",
        )],
    ),
    (
        "a LUN for reading",
        &[(
            "2 = \"scratch\" }",
            "2 = { volume = \"scratch\", access = \"ro\" } }",
        )],
    ),
    (
        "LUNs that stay, for reading",
        &[(
            "1 = \"db\" }\nallow",
            "1 = { volume = \"db\", access = \"ro\" } }\nallow",
        )],
    ),
    (
        "one name is revoked, and others see other LUNs",
        &[
            (", \"iqn.2026-11.org.example:guest\"", ""),
            ("2 = \"scratch\"", "3 = \"scratch\""),
        ],
    ),
    (
        "a name is revoked",
        &[(", \"iqn.2026-11.org.example:node2\"", "")],
    ),
    (
        "a portal goes",
        &[(
            "portals = [\"192.0.2.1\", \"192.0.2.2\"]",
            "portals = [\"192.0.2.1\"]",
        )],
    ),
    (
        "a portal comes",
        &[("\"192.0.2.2\"]", "\"192.0.2.2\", \"192.0.2.3\"]")],
    ),
    (
        "a portal in another group",
        &[(
            "portals = [\"192.0.2.1\", \"192.0.2.2\"]",
            "portals = { 1 = [\"192.0.2.1\"], 6 = [\"192.0.2.2\"] }",
        )],
    ),
    (
        "login keys",
        &[(
            "192.0.2.2\"]\n",
            "192.0.2.2\"]\nlogin = { header-digest = \"crc32c\", max-burst-length = \"64k\" }\n",
        )],
    ),
    (
        "login keys, and a name is revoked",
        &[
            (", \"iqn.2026-11.org.example:node2\"", ""),
            (
                "192.0.2.2\"]\n",
                "192.0.2.2\"]\nlogin = { max-sessions = 2 }\n",
            ),
        ],
    ),
    (
        "a target goes",
        &[(
            "[target.\"iqn.2026-11.org.example:old\"]\nportals = [\"192.0.2.1\"]\n\
             luns = { 0 = \"db\" }\nallow = [\"*\"]\n",
            "",
        )],
    ),
    (
        "a target comes",
        &[(
            "[target.\"iqn.2026-11.org.example:old\"]",
            "[target.\"iqn.2026-11.org.example:new\"]\nalias = \"new\"\n\
             [target.\"iqn.2026-11.org.example:old\"]",
        )],
    ),
    (
        "RAM goes",
        &[
            ("[volume.scratch]\naddress = \"ram:1G\"\n", ""),
            (", 2 = \"scratch\"", ""),
        ],
    ),
    (
        "the process",
        &[(
            "version = 1",
            "version = 1\ndaemon.threads = 2\ndiscovery.advertise = [\"san:3260\"]",
        )],
    ),
];
#[test]
fn each_difference_tells_what_it_does_to_whom() {
    let told: String = STORIES
        .iter()
        .map(|(name, replacements)| format!("{name}\n{}", after(replacements)))
        .collect();
    insta::assert_snapshot!(told);
}

#[test]
fn a_size_that_shrinks_is_told_to_do_nothing() {
    let told = after(&[("100G", "50G")]);
    let says = "~ volume vm1  size = \"100G\" -> \"50G\": the file stays as long as it is";
    assert!(told.contains(says), "{told}");
}

#[test]
fn what_is_worse_than_allowed_is_refused() {
    let mut new = tree();
    new.volume.remove("scratch");
    new.target.clear();
    let plan = plan(&tree(), &new, &sessions());
    let refused = |allowed: &str| plan.refused(&allowed.parse().unwrap()).count();
    assert_eq!(plan.refused(&Allowed::default()).count(), 3);
    assert_eq!(refused("cuts"), 1);
    assert_eq!(refused("loses=scratch"), 2);
    assert_eq!(refused("cuts,loses=volume.scratch"), 0);
    assert_eq!(refused("cuts,loses=volume.db"), 1);
    assert_eq!(plan.way_out(), "--allow cuts --allow loses=volume.scratch");
    assert!("everything".parse::<Allowed>().is_err());
}

/// Who may do what is what the tree says, with the spelling that the standards allow.
#[test]
fn a_name_is_one_name_however_it_is_spelt() {
    let mut new = tree();
    let group = new.group.get_mut("cluster").unwrap();
    group.initiators[0] = "IQN.2026-11.org.example:NODE1".to_owned();
    assert_eq!(plan(&tree(), &new, &sessions()).worst(), Impact::Quiet);
}

/// What stays where it is is not lost, whatever is around it.
#[test]
fn a_wrapper_in_place_of_another_is_quiet() {
    let with = |address: &str| {
        let mut tree = tree();
        tree.volume.get_mut("db").unwrap().address = address.to_owned();
        tree
    };
    for (before, after, impact) in [
        ("file:/srv/db.img", "stats(file:/srv/db.img)", Impact::Quiet),
        (
            "stats(file:/srv/db.img)",
            "verify(file:/srv/db.img)",
            Impact::Quiet,
        ),
        (
            "stats(file:/srv/db.img)",
            "readonly(file:/srv/db.img)",
            Impact::Told,
        ),
        (
            "stats(file:/srv/db.img)",
            "stats(file:/srv/new.img)",
            Impact::Loses,
        ),
    ] {
        let plan = plan(&with(before), &with(after), &sessions());
        assert_eq!(plan.worst(), impact, "{before} to {after}");
    }
}

/// A group can be called as an initiator is. That does not let the initiator in.
#[test]
fn the_name_of_a_group_is_no_initiators() {
    let with = |members: &str| {
        let text = TEXT.replace("\"iqn.2026-11.org.example:guest\"", "\"iqn.2026-11.org\"");
        let group = format!("[group.\"iqn.2026-11.org\"]\ninitiators = [{members}]\n");
        parse(&format!("{text}{group}")).unwrap()
    };
    let session = SessionFact {
        initiator: "iqn.2026-11.org".to_owned(),
        ..session("", SAN, "192.0.2.1:3260")
    };
    let told = plan(
        &with("\"iqn.2026-11.org\""),
        &with(""),
        slice::from_ref(&session),
    );
    assert_eq!(told.worst(), Impact::Cuts);
    // Nor does it stay in when a group comes that is called as it is.
    let mut without = with("");
    without.group.remove("iqn.2026-11.org");
    let told = plan(&without, &with(""), &[session]);
    assert_eq!(told.worst(), Impact::Cuts);
}

proptest! {
    #[test]
    fn trees_that_are_equal_have_no_differences((old, new) in (any::tree(), any::tree())) {
        prop_assert!(plan(&old, &old, &sessions()).is_empty());
        prop_assert_eq!(plan(&old, &new, &sessions()).is_empty(), old == new);
    }

    /// Logins to the fabric of a switch are told of beside the plan.
    #[test]
    fn without_sessions_none_ends((old, new) in (any::tree(), any::tree())) {
        let plan = plan(&old, &new, &[]);
        let of_targets = |one: &Difference| !one.row.starts_with("switch.");
        for one in plan.differences.into_iter().filter(of_targets) {
            prop_assert!(one.hosts.is_empty());
            prop_assert!(matches!(one.impact, Impact::Quiet | Impact::Loses), "{one}");
        }
    }
}

/// Logins of Fibre Channel are not known to a plan, but one more name ends none of them.
#[test]
fn one_more_name_at_a_fibre_channel_port_ends_no_login() {
    let tree = |allow: &str| {
        let text = format!(
            "version = 1\n[volume.a]\naddress = \"ram:1M\"\n\
             [target.\"20:00:ac:de:48:23:45:67\"]\nportals = [\"fcoe:int0\"]\n\
             luns = {{ 0 = \"a\" }}\nallow = [{allow}]\n"
        );
        parse(&text).unwrap()
    };
    let [one, two] = ["\"20:00:00:00:5e:00:53:00\"", "\"20:01:00:00:5e:00:53:00\""];
    let both = format!("{one}, {two}");
    for (before, after, impact) in [
        ("", one, Impact::Quiet),
        (one, one, Impact::Quiet),
        (one, &both, Impact::Told),
        (&both, one, Impact::Cuts),
        (one, two, Impact::Cuts),
        (one, "", Impact::Cuts),
    ] {
        let plan = plan(&tree(before), &tree(after), &[]);
        assert_eq!(plan.worst(), impact, "{before} to {after}");
    }
}

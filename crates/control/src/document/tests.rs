//! Documents as they are written by hand: what they say, what is wrong with them, and what is left
//! of them when the tree changes.

use proptest::prelude::*;

use super::{parse, rewrite, set, set_all, unset, write};
use crate::any;
use crate::tree::{Access, LunNumber, LunRow, Tree, VolumeRow};

const TEXT: &str = r#"# The SAN of the lab.
version = 1

[volume.vm1] # the first machine
address = "file:/srv/vm1.img?size=100G&sparse"

# Ask Ann before you touch it.
[volume.db]
address = "block:/dev/disk/by-id/nvme-A"
limit = { iops = "20k", rate = "500M" } # by contract

[group.cluster]
initiators = [
  "iqn.2026-11.org.example:node1", # rack 1
  "iqn.2026-11.org.example:node2", # rack 2
]
chap = { user = "cluster", secret = "file:/etc/lunar/secrets/cluster" }

[target."iqn.2026-11.org.example:san"]
portals = ["192.0.2.1", "[2001:db8::1]:3260"]
luns = { 0 = "vm1", 1 = { volume = "db", access = "ro" } }
allow = ["cluster"]

[target."iqn.2026-11.org.example:san".view.cluster]
0 = "db" # its own number
"#;

fn tree() -> Tree {
    parse(TEXT).unwrap()
}

fn problem(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read() {
    let tree = tree();
    assert_eq!(tree.volume.len(), 2);
    let target = &tree.target["iqn.2026-11.org.example:san"];
    assert_eq!(target.luns[&LunNumber(1)].volume(), "db");
    assert_eq!(target.luns[&LunNumber(1)].access(), Access::ReadOnly);
    assert_eq!(
        target.view["cluster"][&LunNumber(0)],
        LunRow::Volume("db".to_owned())
    );
    let portals = target.portals.iter();
    let portals: Vec<_> = portals.map(|(tag, at)| (tag.0, &*at.address)).collect();
    assert_eq!(portals, [(1, "192.0.2.1"), (1, "[2001:db8::1]:3260")]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let said = [
        "version = 1\n[volume.a]\nadress = \"ram:1G\"\n",
        "version = 1\n[volume.a]\nsize = \"1G\"\n",
        "version = 1\n[volume.a]\naddress = \"ram:1G\"\nlimit = { iops = \"many\" }\n",
        "version = 1\n[volume.a]\naddress = \"ram:1G\"\nreadonly = \"yes\"\n",
        "version = 1\n[volumes.a]\naddress = \"ram:1G\"\n",
        "version = 1\n[target.\"iqn.x\"]\nluns = { 0 = \"a\", 0 = \"b\" }\n",
        "version = 1\n[target.\"iqn.x\"]\nluns = { one = \"a\" }\n",
        "version = 1\n[target.\"iqn.x\"]\nluns = { 0 = 7 }\n",
        "version = 1\n[target.\"iqn.x\"]\nportals = 3260\n",
        "version = 1\n[group.g]\nchap = { user = \"u\", secret = \"hunter2hunter2\" }\n",
        "version = 1\n[group.g]\nchap-min = \"md4\"\n",
        "version = 2\n",
        "[volume.a]\naddress = \"ram:1G\"\n",
        "version = 1\n[volume.a\n",
        "",
    ];
    insta::assert_snapshot!(said.map(problem).join("\n"));
}

#[test]
fn nothing_changes_where_nothing_has() {
    assert_eq!(rewrite(TEXT, &tree()), TEXT);
    let no_end = "version = 1";
    assert_eq!(rewrite(no_end, &parse(no_end).unwrap()), no_end);
}

#[test]
fn what_changes_is_all_that_changes() {
    let mut tree = tree();
    tree.volume
        .insert("new".to_owned(), VolumeRow::new("ram:1G"));
    tree.volume.get_mut("db").unwrap().readonly = true;
    let target = tree.target.get_mut("iqn.2026-11.org.example:san").unwrap();
    target
        .luns
        .insert(LunNumber(2), LunRow::Volume("new".to_owned()));
    target
        .allow
        .push("iqn.2026-11.org.example:guest".to_owned());
    let cluster = tree.group.get_mut("cluster").unwrap();
    cluster.initiators.remove(0);
    cluster.initiators.push("*".to_owned());
    let text = rewrite(TEXT, &tree);
    let diff: Vec<_> = similar::TextDiff::from_lines(TEXT, &text)
        .iter_all_changes()
        .filter(|change| change.tag() != similar::ChangeTag::Equal)
        .map(|change| format!("{}{change}", change.tag()))
        .collect();
    insta::assert_snapshot!(diff.concat());
    assert_eq!(parse(&text).unwrap(), tree);
}

#[test]
fn one_value_is_set_by_its_path() {
    let mut tree = tree();
    for (path, value) in [
        ("volume.db.limit.iops", "30k"),
        ("volume.db.readonly", "true"),
        ("volume.db.serial", "1234"),
        ("volume.\"new one\".address", "ram:1G"),
        ("target.iqn.2026-11.org.example:san.luns.7", "vm1"),
        ("target.iqn.2026-11.org.example:san.luns.0.access", "ro"),
        ("target.iqn.2026-11.org.example:san.allow", "[\"*\"]"),
        ("target.\"iqn.2026-11.org.example:two\".alias", "second"),
    ] {
        set(&mut tree, path, value).unwrap();
    }
    unset(&mut tree, "volume.vm1").unwrap();
    unset(&mut tree, "volume.db.limit.rate").unwrap();
    insta::assert_snapshot!(rewrite(TEXT, &tree));
}

/// In any order, also of what is wrong without the other.
#[test]
fn values_that_need_each_other_are_set_together() {
    let mut changed = tree();
    let values = [
        ("group.new.chap.user", "17"),
        ("target.iqn.2026-11.org.example:san.luns.9.access", "ro"),
        ("group.new.initiators", "[\"*\"]"),
        ("target.iqn.2026-11.org.example:san.luns.9.volume", "vm1"),
        ("group.new.chap.secret", "state:new"),
    ];
    let mut values = values.map(|(path, value)| (path.to_owned(), value.to_owned()));
    set_all(&mut changed, &values).unwrap();
    let chap = changed.group["new"].chap.as_ref().unwrap();
    assert_eq!(chap.user, "17");
    let lun = &changed.target["iqn.2026-11.org.example:san"].luns[&LunNumber(9)];
    assert_eq!((lun.volume(), lun.access()), ("vm1", Access::ReadOnly));
    let alone = set_all(&mut tree(), &values[4..]).unwrap_err();
    assert!(alone.to_string().contains("\"user\" is missing"), "{alone}");
    let mut wrong = values.clone();
    (wrong[0].1, wrong[4].1) = ("me".to_owned(), "plain".to_owned());
    let wrong = set_all(&mut tree(), &wrong).unwrap_err().to_string();
    assert!(
        wrong.contains("group.new: a secret is not written here"),
        "{wrong}"
    );
    let path = values[1].0.clone();
    values[3].0 = path;
    let twice = set_all(&mut tree(), &values).unwrap_err();
    assert!(twice.to_string().ends_with("is given twice"), "{twice}");
}

#[test]
fn what_cannot_be_set_is_refused() {
    let mut changed = tree();
    let said = [
        set(&mut changed, "volume.db.redonly", "true"),
        set(&mut changed, "volume.db.readonly", "maybe"),
        set(&mut changed, "volume.db.limit.iops", "0"),
        set(&mut changed, "", "1"),
        set(&mut changed, "volume..x", "1"),
        set(
            &mut changed,
            "target.iqn.2026-11.org.example:new.portals",
            "[]",
        ),
        set(
            &mut changed,
            "target.iqn.2026-11.org.example:view.luns.0",
            "a",
        ),
        set(
            &mut changed,
            "target.20:00:ac:de:48:23:45:67.view.lab.0",
            "a",
        ),
        set(&mut changed, "version", "2"),
        unset(&mut changed, "volume.db.serial"),
        unset(&mut changed, "volume.db.address"),
        unset(&mut changed, "target.iqn.2026-11.org.example:sanx"),
    ];
    let said = said.map(|result| result.unwrap_err().to_string());
    assert_eq!(changed, tree());
    insta::assert_snapshot!(said.join("\n"));
}

/// As editors of another system write them.
#[test]
fn lines_end_as_they_did() {
    let text = "version = 1\r\n# one\r\n[volume.a]\r\naddress = \"null:1G\"\r\n";
    let mut tree = parse(text).unwrap();
    assert_eq!(rewrite(text, &tree), text);
    tree.volume.insert("b".to_owned(), VolumeRow::new("ram:1G"));
    let more = format!("{text}\r\n[volume.b]\r\naddress = \"ram:1G\"\r\n");
    assert_eq!(rewrite(text, &tree), more);
}

/// A fuzzer found it to be read with other ends than it was set with.
#[test]
fn a_text_of_several_lines_is_read_as_it_was_set() {
    let text = "version = 1\r\n\r\n[volume.a]\r\naddress = \"ram:1M\"\r\n";
    let mut tree = parse(text).unwrap();
    set(&mut tree, "volume.a.vendor", "one\nanother\r\n\u{7f}").unwrap();
    let rewritten = rewrite(text, &tree);
    assert_eq!(parse(&rewritten).unwrap(), tree, "{rewritten}");
}

/// Lines of a document that are only comments.
fn comments(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .collect()
}

proptest! {
    #[test]
    fn a_tree_is_read_as_it_was_written(tree in any::tree()) {
        prop_assert_eq!(parse(&write(&tree)), Ok(tree));
    }

    #[test]
    fn a_text_says_what_the_tree_is_and_keeps_the_comments_of_rows_that_stay(
        (old, new) in (any::tree(), any::tree())
    ) {
        let text: String = write(&old)
            .lines()
            .map(|line| {
                if line.starts_with('[') {
                    format!("# about {line}\n{line}\n")
                } else {
                    format!("{line}\n")
                }
            })
            .collect();
        let changed = rewrite(&text, &new);
        prop_assert_eq!(parse(&changed), Ok(new.clone()));
        for comment in comments(&text) {
            let header = comment.trim_start_matches("# about ");
            if changed.lines().any(|line| line == header) {
                prop_assert!(changed.contains(comment), "{comment}\n{changed}");
            }
        }
        prop_assert_eq!(rewrite(&changed, &new), changed);
    }
}

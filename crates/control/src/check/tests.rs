//! Trees with something wrong in them, and what is said of it.

use proptest::prelude::*;

use super::check;
use crate::any;
use crate::document::parse;

const GOOD: &str = r#"
version = 1
[volume.vm1]
address = "file:/srv/vm1.img"
size = "100G"
[volume.base]
address = "ram:1G"
[volume.db]
address = "readonly(vol:base)"
naa = "60014051234567890abcdef012345678"
[group.cluster]
initiators = ["iqn.2026-11.org.example:node1", "20:00:52:54:00:78:41:00"]
chap = { user = "cluster", secret = "state:cluster" }
mutual = { user = "san", secret = "state:san" }
[target."iqn.2026-11.org.example:san"]
portals = { 1 = ["192.0.2.1", "[2001:db8::1]:3261"], 6 = ["2001:db8::2"] }
luns = { 0 = "vm1", 16383 = "db" }
allow = ["cluster", "iqn.2026-11.org.example:guest"]
view.cluster = { 0 = "db" }
[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:int0"]
luns = { 0 = "vm1" }
allow = ["20:00:00:00:5e:00:53:00"]
"#;

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(check(&parse(GOOD).unwrap()), super::Findings::default());
}

#[test]
fn an_address_beside_its_wildcard_is_told_with_the_other_target() {
    let with = |portal: &str| {
        let text = format!(
            "{GOOD}[target.\"iqn.2026-11.org.example:all\"]\nportals = [\"{portal}\"]\n\
             allow = [\"*\"]\n"
        );
        check(&parse(&text).unwrap()).warnings
    };
    for apart in ["0.0.0.0:3261", "[::]:3262", "192.0.2.1"] {
        assert_eq!(with(apart), [], "{apart}");
    }
    let told = |portal| {
        with(portal)
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    let [line] = &told("0.0.0.0")[..] else {
        panic!("one warning");
    };
    assert_eq!(
        line,
        "target.\"iqn.2026-11.org.example:san\".portals: 192.0.2.1:3260 is among the addresses of \
         0.0.0.0:3260, of target iqn.2026-11.org.example:all: write the same address in both, or \
         give one of them another port"
    );
    assert_eq!(told("[::]:3260").len(), 1);
    assert_eq!(told("[::]:3261").len(), 1);
}

#[test]
fn a_view_is_seen_by_those_who_get_in_by_whatever_name() {
    let with = |allow: &str, group: &str| {
        let text = format!(
            "version = 1\n[volume.a]\naddress = \"null:1G\"\n[group.g]\n{group}\n\
             [group.other]\ninitiators = [\"iqn.2026-11.org.example:h2\"]\n\
             [target.\"iqn.2026-11.org.example:san\"]\nportals = [\"192.0.2.1\"]\n\
             allow = {allow}\nview = {{ g = {{ 0 = \"a\" }} }}\n"
        );
        let warnings = check(&parse(&text).unwrap()).warnings;
        let told = warnings.iter().map(|one| one.what.clone());
        told.collect::<Vec<_>>()
    };
    const NEVER: &str = "g may not log in, so it never sees this";
    let h1 = "initiators = [\"iqn.2026-11.org.example:H1\", \"20:00:00:00:5e:00:53:00\"]";
    for allow in ["\"g\"", "\"*\"", "\"iqn.2026-11.org.example:h1\""] {
        assert_eq!(with(&format!("[{allow}]"), h1), [""; 0], "{allow}");
    }
    assert_eq!(with("[\"other\"]", h1), [NEVER]);
    // Only those of `allow` see the view of a group for being anybody, and no port logs in here.
    let nobodys = ["\"*\"", "\"20:00:00:00:5e:00:53:00\""];
    for group in nobodys.map(|name| format!("initiators = [{name}]")) {
        assert_eq!(with("[\"*\"]", &group), [NEVER]);
    }
    let chap = format!("{h1}\nchap = {{ user = \"g\", secret = \"state:g\" }}");
    assert_eq!(with("[\"g\", \"*\"]", &chap), [""; 0]);
    let told = with("[\"*\"]", &chap);
    assert_eq!(told, ["g is let in by another name, without its chap"]);
}

#[test]
fn a_memory_limit_below_what_locked_ram_disks_take_is_told_with_both() {
    let told = |limit: &str| {
        let text = format!(
            "version = 1\n[daemon]\nmemory-limit = \"{limit}\"\n[volume.one]\naddress = \
             \"concat(ram:1000?locked,null:1M)\"\n[volume.two]\naddress = \"ram:1M?locked\"\n\
             [volume.free]\naddress = \"ram:1G\"\n"
        );
        let problems = check(&parse(&text).unwrap()).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told("1028k"), [""; 0]);
    assert_eq!(
        told("1027k"),
        [
            "daemon.memory-limit: 1027k is less than the 1028k of locked RAM disks: one, two: give \
             at least 1028k, or make these smaller, or open them without ?locked"
        ]
    );
    assert_eq!(told("1").len(), 1);
}

#[test]
fn one_slip_is_told_by_one_line() {
    let told = |rows: &str| {
        let problems = check(&parse(&format!("version = 1\n{rows}")).unwrap()).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let upper_case = "[target.\"20:00:AC:de:48:23:45:67\"]\nportals = [\"fcoe:int0\"]\n";
    let [line] = &told(upper_case)[..] else {
        panic!("one line");
    };
    assert!(line.contains("this is not the name of a target"), "{line}");
    let itself = "[volume.a]\naddress = \"stripe:64k(vol:a,vol:a)\"\n\
                  [target.\"iqn.2026-11.org.example:san\"]\nluns = { 0 = \"a\" }\n";
    let [line] = &told(itself)[..] else {
        panic!("one line");
    };
    assert!(line.contains("this volume is made of itself"), "{line}");
}

#[test]
fn cpus_are_listed_one_for_each_thread() {
    let told = |row: &str| {
        let text = format!("version = 1\n[daemon]\n{row}\n");
        let problems = check(&parse(&text).unwrap()).problems;
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for right in [
        "pin = \"0,2-5\"",
        "pin = \"3\"\nthreads = 1",
        "busy-poll = \"50us\"",
    ] {
        assert_eq!(told(right), Vec::<String>::new(), "{right}");
    }
    for (wrong, says) in [
        ("pin = \"0-x\"", "daemon.pin: \"0-x\" is no list of CPUs"),
        ("pin = \"\"", "daemon.pin: \"\" is no list of CPUs"),
        (
            "pin = \"2-0\"",
            "daemon.pin: the range 2-0 of CPUs is empty",
        ),
        (
            "pin = \"0,2-5\"\nthreads = 4",
            "daemon.pin: \"0,2-5\" has 5 CPUs, and daemon.threads is 4: leave daemon.threads out",
        ),
        ("busy-poll = \"2s\"", "daemon.busy-poll: 2s is not a time"),
    ] {
        let [line] = &told(wrong)[..] else {
            panic!("{wrong}: one line");
        };
        assert!(line.starts_with(says), "{line}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = r#"
version = 1
[daemon]
threads = 0
memory-limit = 1
initiator-name = "server"
[discovery]
advertise = ["san.example:http", "0.0.0.0", "[2001:db8::1]:0", "san.example"]
[api]
listen = ["0.0.0.0:8443", "here"]
[volume.".hidden"]
address = "ram:1M"
[volume.odd]
address = "ram:lots"
[volume.sized]
address = "ram:1M"
size = "2M"
[volume.device]
address = "block:/dev/sdb"
size = "2M"
[volume.self]
address = "stripe:64k(vol:other,ram:1M)"
[volume.other]
address = "readonly(vol:self)"
[volume.astray]
address = "vol:othr"
serial = "twice"
naa = "7001"
vendor = "LONGER THAN 8"
block-size = 520
limit = {}
[volume.twice]
address = "stripe:64k(vol:sized,vol:sized)"
[volume.again]
address = "null:1M"
serial = "twice"
[group.g]
initiators = ["somebody", "iqn.2026-11.org.example:h1"]
chap = { user = "", secret = "state:one" }
mutual = { user = "san", secret = "state:one" }
[group.open]
initiators = ["iqn.2026-11.org.example:h1"]
mutual = { user = "san", secret = "state:one" }
[group.weak]
initiators = ["*"]
chap-min = "md5"
[target."IQN.2026-11.org.example:san"]
[target."iqn.2026-11.org.example:san"]
portals = { 0 = ["192.0.2.1:0", "fcoe:int0"], 1 = ["192.0.2.1", "192.0.2.1:3260", "224.0.0.1", ""] }
luns = { 16384 = "sized", 3 = "gone" }
allow = ["g", "open", "weka"]
view = { g = { 0 = "gone" }, weak = {}, nobody = {} }
[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:int0", "192.0.2.1", "fcoe:int1,wwpn=20:00:ac:de:48:23:45:68"]
"#;
    let findings = check(&parse(text).unwrap());
    let lines = |all: &[super::TreeProblem]| -> String {
        all.iter().map(|one| format!("{one}\n")).collect()
    };
    let (problems, warnings) = (lines(&findings.problems), lines(&findings.warnings));
    insta::assert_snapshot!(format!("{problems}\nwarnings:\n{warnings}"));
}

#[test]
fn a_further_port_is_a_target_that_is_reached_there_alone() {
    let row =
        |last: u8, rest: &str| format!("[target.\"20:00:ac:de:48:23:45:{last:02x}\"]\n{rest}\n");
    let portal = |npiv: &str| format!("portals = [\"fcoe:int0,mode=fabric,npiv={npiv}\"]");
    let name = |last: u8| format!("20:00:ac:de:48:23:45:{last:02x}");
    for (rows, problem) in [
        (row(1, &portal(&name(2))) + &row(2, ""), None),
        (
            row(1, &portal(&name(2))),
            Some("there is no target of this name"),
        ),
        (
            row(1, &portal(&name(1))),
            Some("another port has this name"),
        ),
        (
            row(1, &portal(&name(2))) + &row(2, "portals = [\"fcoe:int1\"]"),
            Some("this target has portals of its own"),
        ),
        (
            row(1, &portal(&name(3))) + &row(2, &portal(&name(4))) + &row(3, "") + &row(4, ""),
            Some("in a fabric name its WWPN by npiv= of that portal"),
        ),
        (
            row(1, &portal(&name(2)))
                + &row(2, "")
                + &row(3, &portal(&name(2)).replace("int0", "int1")),
            Some("another port has this name"),
        ),
    ] {
        let tree = parse(&format!("version = 1\n{rows}")).unwrap();
        let problems = check(&tree).problems;
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told.len(),
            usize::from(problem.is_some()),
            "{rows}: {told:?}"
        );
        assert!(
            problem.is_none_or(|problem| told[0].contains(problem)),
            "{told:?}"
        );
    }
}

proptest! {
    #[test]
    fn no_tree_is_too_odd_to_be_looked_at(tree in any::tree()) {
        let _ = check(&tree);
    }
}

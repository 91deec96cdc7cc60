//! Rows of switches with something wrong in them, and what is said of it.

use crate::check::{Findings, check};
use crate::document::parse;

const TARGET: &str = "[volume.vm1]\naddress = \"ram:1M\"\n\
                      [target.\"20:00:ac:de:48:23:45:67\"]\nportals = [\"fcoe:int0\"]\n\
                      luns = { 0 = \"vm1\" }\nallow = [\"20:00:00:00:5e:00:53:00\"]\n";

fn findings(rows: &str) -> Findings {
    check(&parse(&format!("version = 1\n{TARGET}{rows}")).unwrap())
}

/// What is wrong with a switch of one more key.
fn wrong(key: &str) -> Vec<String> {
    let rows = format!("[switch.a]\nplaces = [\"eth1\"]\nopen = true\n{key}\n");
    lines(&rows)
}

fn lines(rows: &str) -> Vec<String> {
    let problems = findings(rows).problems;
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let rows = r#"
[switch.blue]
places = ["eth1", "xdp:eth2", "cable:/run/a.sock"]
zones = ["zone a = 20:00:ac:de:48:23:45:67 port:eth1", "zoneset s = a", "active s"]
domain = 239
vlan = 152
priority = 0
fka = "500ms"
fc-map = "0e:fc:01"
fabric-name = "20:98:52:54:00:00:00:01"
switch-name = "10:00:52:54:00:00:00:01"
state = "/srv/blue"
[switch.red]
places = ["eth3"]
zone-file = "/etc/lunar/zones"
standby = true
fabric-name = "20:98:52:54:00:00:00:01"
switch-name = "10:00:52:54:00:00:00:01"
state = "/srv/red"
"#;
    assert_eq!(findings(rows), Findings::default());
}

#[test]
fn a_switch_without_zones_is_told_that_no_port_sees_another() {
    let findings = findings("[switch.a]\nplaces = [\"eth1\"]\n");
    assert_eq!(findings.problems, []);
    let [warning] = &findings.warnings[..] else {
        panic!("one warning");
    };
    assert_eq!(
        warning.to_string(),
        "switch.a.zones: there are no zones, so no port sees another: give zones or a zone-file, \
         or open = true to let every port see all others"
    );
}

#[test]
fn a_place_belongs_to_one_switch_or_target() {
    assert_eq!(
        lines("[switch.a]\nplaces = [\"eth1\", \"int0\"]\nopen = true\n"),
        [
            "switch.a.places: int0 is a port of target 20:00:ac:de:48:23:45:67 already: a port \
          belongs to one of them: connect both by a cable:PATH or a veth pair, or take it out of \
          one"
        ]
    );
    let rows = "[switch.a]\nplaces = [\"eth1\", \"eth1\"]\nopen = true\n\
                [switch.b]\nplaces = [\"xdp:eth1\"]\nopen = true\n";
    assert_eq!(
        lines(rows),
        [
            "switch.a.places: eth1 is there twice: omit one",
            "switch.b.places: xdp:eth1 is a port of switch a already: a port belongs to one of \
             them: connect both by a cable:PATH or a veth pair, or take it out of one"
        ]
    );
}

/// The other end is the target's.
#[test]
fn a_cable_connects_a_target_and_a_switch_of_one_daemon() {
    let target = "[target.\"20:00:ac:de:48:23:45:68\"]\nportals = [\"fcoe:cable:/run/a\"]\n\
                  allow = [\"*\"]\n";
    let switch = "[switch.a]\nplaces = [\"cable:/run/a\"]\nopen = true\n";
    assert_eq!(lines(&format!("{target}{switch}")), [""; 0]);
    let second = "[switch.b]\nplaces = [\"cable:/run/a\"]\nopen = true\n";
    assert_eq!(lines(&format!("{switch}{second}")).len(), 1);
}

#[test]
fn ports_are_interfaces_and_cables_up_to_64() {
    assert!(lines("[switch.a]\nopen = true\n")[0].starts_with("switch.a.places: a switch has"));
    let wrong = lines("[switch.a]\nplaces = [\"fcoe://eth1\", \"\"]\nopen = true\n");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("as in eth1"), "{wrong:?}");
    let wrong = lines("[switch.a]\nplaces = [\"fcoe:eth1\", \"eth1:0\"]\nopen = true\n");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("without fcoe:, as in eth1"), "{wrong:?}");
    let places: Vec<_> = (0..65).map(|number| format!("e{number}")).collect();
    let wrong = lines(&format!("[switch.a]\nplaces = {places:?}\nopen = true\n"));
    assert_eq!(
        wrong,
        [
            "switch.a.places: 65 ports are too many: a switch has at most 64: make a second one of \
          the others"
        ]
    );
}

#[test]
fn zones_are_told_by_line_and_column() {
    let rows = r#"
[switch.a]
places = ["eth1"]
zones = ["zone a = port:eth1", "zoneset s = b"]
"#;
    assert_eq!(
        lines(rows),
        ["switch.a.zones: line 2, column 13: there is no zone `b`: mend this line"]
    );
}

#[test]
fn who_sees_whom_is_said_once() {
    assert_eq!(
        wrong("zone-file = \"/etc/lunar/zones\""),
        ["switch.a.open: zone-file says who sees whom already: omit one of them"]
    );
}

#[test]
fn values_out_of_range_are_told_with_the_range() {
    for (key, told) in [
        ("domain = 0", "give 1 to 239"),
        ("vlan = 4095", "give 1 to 4094, or omit it"),
        ("threads = 17", "give 1 to 16, or leave it out"),
        ("fka = \"100ms\"", "below 250ms or over 90s"),
        ("fc-map = \"0f:fc:00\"", "those of groups"),
        ("fabric-name = \"00:00:00:00:00:00:00:00\"", "reserved"),
        ("switch-name = \"blue\"", "omit it to derive one"),
        ("state = \"state\"", "not a path from the root"),
    ] {
        let wrong = wrong(key);
        assert_eq!(wrong.len(), 1, "{key}: {wrong:?}");
        assert!(wrong[0].contains(told), "{wrong:?}");
        let name = key.split(' ').next().unwrap();
        assert!(
            wrong[0].starts_with(&format!("switch.a.{name}: ")),
            "{wrong:?}"
        );
    }
}

#[test]
fn a_standby_needs_the_names_of_its_switch() {
    let names = wrong("standby = true");
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].starts_with("switch.a.fabric-name: a standby takes over"),
        "{names:?}"
    );
}

#[test]
fn two_switches_share_neither_a_name_nor_a_directory() {
    let row = |name: &str, place: &str| {
        format!(
            "[switch.{name}]\nplaces = [\"{place}\"]\nopen = true\nstate = \"/srv/ids\"\n\
             switch-name = \"10:00:52:54:00:00:00:01\"\n"
        )
    };
    assert_eq!(
        lines(&(row("a", "eth1") + &row("b", "eth2"))),
        [
            "switch.b.state: switch a remembers its N_Port_IDs there: give each a directory of its \
             own",
            "switch.b.switch-name: switch a has this name: give it another one, or omit it"
        ]
    );
}

#[test]
fn the_name_of_a_row_becomes_part_of_paths() {
    let wrong = lines("[switch.\"a/b\"]\nplaces = [\"eth1\"]\nopen = true\n");
    assert!(wrong[0].contains("this is not a name"), "{wrong:?}");
}

#[test]
fn unknown_keys_and_wrong_kinds_have_a_place() {
    let text = "version = 1\n[switch.a]\nplaces = [\"eth1\"]\nzonefile = \"/z\"\n";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "line 4, column 1: switch.a.zonefile: there is no key \"zonefile\" here: did you mean \
         \"zone-file\"?"
    );
    let text = "version = 1\n[switch.a]\nplaces = [\"eth1\"]\ndomain = \"one\"\n";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        "line 4, column 10: switch.a.domain: a number from 0 to 255 is expected here"
    );
}

#[test]
fn a_standby_on_cables_alone_hears_no_other_switch() {
    let names = "fabric-name = \"20:98:52:54:00:00:00:01\"\n\
                 switch-name = \"10:00:52:54:00:00:00:01\"\n";
    let told = |places: &str| {
        let rows = format!("[switch.a]\nplaces = [{places}]\nopen = true\nstandby = true\n{names}");
        lines(&rows)
    };
    let cables = told("\"cable:/run/a.sock\", \"cable:/run/b.sock\"");
    let expected = "switch.a.standby: the other switch is heard at interfaces, and all ports here \
                    are cables: add an interface that both switches have a port on, or omit \
                    standby";
    assert_eq!(cables, [expected]);
    assert_eq!(told("\"cable:/run/a.sock\", \"xdp:eth2\""), [""; 0]);
    // No more than that is told of what is no place.
    assert_eq!(told("\"cable:/run/a.sock\", \"eth/2\"").len(), 1);
}

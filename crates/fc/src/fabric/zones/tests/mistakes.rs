use crate::fabric::zones::{TEXT_MAX, Zones};

/// What is said of a file that is wrong.
#[track_caller]
fn told(text: &str) -> String {
    Zones::parse(text).unwrap_err().to_string()
}

const A: &str = "20:00:00:00:00:00:00:0a";

#[test]
fn each_mistake_is_told_with_its_place() {
    let rows = [
        (
            "alias x",
            "1, column 7: it ends too early: `alias NAME = MEMBER …` is meant",
        ),
        (
            "alias",
            "1, column 1: it ends too early: `alias NAME = MEMBER …` is meant",
        ),
        (
            "\n  zone x =",
            "2, column 8: it ends too early: `zone NAME = MEMBER …` is meant",
        ),
        (
            "zoneset x=# none",
            "1, column 9: it ends too early: `zoneset NAME = ZONE …` is meant",
        ),
        (
            "zon x = A",
            "1, column 1: `zon` is none of `alias`, `zone`, `zoneset`, `active`, `default`",
        ),
        ("zone x A", "1, column 8: `=` is missing before `A`"),
        (
            "zone = A",
            "1, column 6: `=` is no name: a letter, then up to 63 letters, digits, `-`, `_`, \
          `$` or `^`; and not a WWPN",
        ),
        (
            "active",
            "1, column 1: it ends too early: `active NAME` is meant",
        ),
        (
            "active a b",
            "1, column 10: `b` is too much: there is one name here",
        ),
        ("active day", "1, column 8: there is no zone set `day`"),
        (
            "default deny\ndefault deny",
            "2, column 1: `default` is defined in line 1 already",
        ),
        (
            "default allow",
            "1, column 9: `allow` is neither `deny` nor `permit`",
        ),
        ("zone z = A A", "1, column 12: `A` is listed twice"),
        (
            "zone z = id:010118 id:0x010118",
            "1, column 20: `id:0x010118` is listed twice",
        ),
        (
            "zone ü = A\u{a0}B",
            "1, column 6: `ü` is no name: a letter, then up to 63 letters, digits, \
          `-`, `_`, `$` or `^`; and not a WWPN",
        ),
        ("zoneset s = z", "1, column 13: there is no zone `z`"),
    ];
    for (text, expected) in rows {
        assert_eq!(told(text), format!("line {expected}"), "{text}");
    }
}

#[test]
fn members_that_identify_nothing() {
    for member in [
        "b",
        "node:b",
        "id:0101",
        "id:fffffc",
        "id:000000",
        "id:+10100",
        "port:",
        "20:00",
    ] {
        let error = told(&format!("# ü\nzone z = {A} {member}"));
        let expected = format!(
            "line 2, column 34: `{member}` is neither an alias nor a WWPN, `node:WWNN`, \
             `id:DDAAPP` or `port:PLACE`"
        );
        assert_eq!(error, expected);
        let error = told(&format!("alias x = {member}"));
        assert!(error.contains("is neither a WWPN"), "{error}");
    }
    let error = told(&format!("alias y = x\nalias x = {A}"));
    let expected = "line 1, column 11: `x` is an alias itself: list its members here, or both \
                    aliases in the zone";
    assert_eq!(error, expected);
}

#[test]
fn names_are_given_once() {
    for kind in ["alias", "zone"] {
        let error = told(&format!("{kind} x = {A}\n\n{kind} x = {A}"));
        assert_eq!(
            error,
            format!(
                "line 3, column {}: `x` is defined in line 1 already",
                kind.len() + 2
            )
        );
    }
    // An alias and a zone of one name are not taken for each other.
    let text = format!("alias x = {A}\nzone x = x\nzoneset x = x\nactive x");
    assert_eq!(Zones::parse(&text).unwrap().members().count(), 1);
    // What reads as a WWPN is never a name.
    assert!(told(&format!("alias abcdefabcdefabcd = {A}")).contains("is no name"));
    let long = "x".repeat(65);
    assert!(told(&format!("zone {long} = {A}")).contains("is no name"));
    assert!(Zones::parse(&format!("zone {} = {A}", &long[1..])).is_ok());
}

#[test]
fn a_file_has_a_limit_and_so_has_what_it_asks_for() {
    let mut text = "#".repeat(TEXT_MAX);
    assert_eq!(Zones::parse(&text), Ok(Zones::closed()));
    text.push('#');
    assert_eq!(
        told(&text),
        "line 1, column 1: a zone file has at most 1 MiB"
    );

    // 1,000 members in each of 300 zones: 30 KB that mean 300,000 entries.
    let members = (0..1000).map(|id| format!(" id:{:06x}", id + 0x01_0100));
    let mut text = format!("alias many ={}\n", members.collect::<String>());
    let names = (0..300).map(|zone| format!(" z{zone}")).collect::<String>();
    text.extend((0..300).map(|zone| format!("zone z{zone} = many\n")));
    text += &format!("zoneset all ={names}\nactive all");
    let error = told(&text);
    assert!(
        error.ends_with(
            "the active zones have more than 262,144 members: identify nodes or ports of the switch"
        ),
        "{error}"
    );
}

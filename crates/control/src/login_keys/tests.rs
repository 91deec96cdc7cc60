use super::*;
use crate::check::check;
use crate::document::parse;

/// The login keys of a target with these lines.
fn login(lines: &str) -> LoginRow {
    let text = format!("version = 1\n[target.\"iqn.2026-11.org.example:a\".login]\n{lines}");
    let tree = parse(&text).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"));
    let mut rows = tree.target.into_values();
    rows.next().and_then(|row| row.login).unwrap_or_default()
}

/// A value that each key can have, as a document and as the RFC writes it.
fn sample(row: &TargetKey) -> (String, String) {
    match &row.value {
        KeyPlace::Digest(_) => ("\"crc32c\"".to_owned(), "CRC32C".to_owned()),
        KeyPlace::Flag(_) => ("true".to_owned(), "Yes".to_owned()),
        KeyPlace::Bytes(_, (range, _)) => {
            let most = range.end().to_string();
            (format!("\"{most}\""), most)
        }
        KeyPlace::Number(_, (range, _)) => (range.end().to_string(), range.end().to_string()),
    }
}

#[test]
fn every_key_has_a_place_in_a_document() {
    for row in all() {
        let (document, written) = sample(row);
        let login = login(&format!("{} = {document}", row.key));
        assert_eq!(row.get(&login), Some(written.clone()), "{}", row.name);
        let mut again = LoginRow::default();
        assert!(row.set(&mut again, &written).is_ok(), "{}", row.name);
        assert_eq!(again, login, "{}", row.name);
        assert!(row.misfit(&login).is_none(), "{}", row.name);
        assert!(row.set(&mut again, "").is_ok());
        assert_eq!(again, LoginRow::default(), "{}", row.name);
    }
}

/// RFC 7143 §13 has wider bounds where this program has narrower ones, and never the other way.
#[test]
fn bounds_are_within_those_of_the_rfc() {
    for row in all() {
        let (KeyPlace::Bytes(_, bounds) | KeyPlace::Number(_, bounds)) = &row.value else {
            continue;
        };
        if let Some(known) = iscsi::keys::find(row.name) {
            for number in [bounds.0.start(), bounds.0.end()] {
                assert!(known.number(&number.to_string()).is_some(), "{}", row.name);
            }
        }
    }
}

#[test]
fn keys_of_one_value_are_those_of_sessions_that_are_not_recovered() {
    let fixed: Vec<_> = all().filter(|row| row.is_fixed()).collect();
    let names: Vec<_> = fixed.iter().map(|row| row.name).collect();
    let expected = ["DefaultTime2Retain", "MaxConnections", "ErrorRecoveryLevel"];
    assert_eq!(names, expected);
    for row in fixed {
        assert!(
            row.set(&mut LoginRow::default(), &default(row.name))
                .is_ok()
        );
    }
}

#[test]
fn digests_are_lists_of_what_is_acceptable() {
    let row = find("headerdigest").unwrap();
    for (text, expected) in [
        ("CRC32C", Some(DigestUse::Crc32c)),
        ("none", Some(DigestUse::None)),
        ("None,CRC32C", None),
        ("CRC32C, None", None),
    ] {
        let mut login = LoginRow::default();
        assert!(row.set(&mut login, text).is_ok(), "{text}");
        assert_eq!(login.header_digest, expected, "{text}");
    }
    assert!(row.set(&mut LoginRow::default(), "CRC64").is_err());
}

#[test]
fn what_cannot_be_offered_is_refused_with_the_reason() {
    let text = r#"
version = 1
[target."iqn.2026-11.org.example:a"]
portals = ["192.0.2.1"]
allow = ["*"]
[target."iqn.2026-11.org.example:a".login]
max-recv-data-segment-length = "2M"
first-burst-length = "2M"
max-burst-length = "1M"
max-outstanding-r2t = 0
default-time2wait = 3601
default-time2retain = 20
max-connections = 4
error-recovery-level = 2
max-sessions = 0
initial-r2t = true
immediate-data = false
[target."20:00:ac:de:48:23:45:67"]
portals = ["fcoe:int0"]
allow = ["20:00:00:00:5e:00:53:00"]
login = { header-digest = "none" }
"#;
    let findings = check(&parse(text).unwrap());
    let all = findings.problems.iter().chain(&findings.warnings);
    let all: Vec<_> = all.map(ToString::to_string).collect();
    insta::assert_snapshot!(all.join("\n"));
}

//! What is wrong with `iser` in a tree, and what its writer may not have meant.

use crate::check::{Findings, check};
use crate::document::parse;

/// Findings of a tree with targets that have these portals.
fn looked_at(head: &str, portals: &[&str]) -> Findings {
    let mut text = format!("version = 1\n{head}\n");
    for (number, portals) in portals.iter().enumerate() {
        text += &format!(
            "[target.\"iqn.2026-11.org.example:t{number}\"]\nportals = {portals}\nallow = [\"*\"]\n"
        );
    }
    check(&parse(&text).unwrap())
}

const ISER: &str = r#"[{ address = "192.0.2.1", iser = true }]"#;

#[test]
fn a_portal_that_one_row_alone_lets_take_iser_is_told_by_both_names() {
    let plain = r#"["192.0.2.1:3260", "192.0.2.2"]"#;
    let findings = looked_at("", &[ISER, plain, plain]);
    assert_eq!(findings.problems, []);
    let [warning] = &findings.warnings[..] else {
        panic!("one a portal: {findings:?}");
    };
    insta::assert_snapshot!(warning);
}

#[test]
fn rows_that_say_the_same_are_not_told() {
    let other_port = r#"["192.0.2.1:3261"]"#;
    let findings = looked_at("", &[ISER, ISER, other_port]);
    assert_eq!(findings, Findings::default());
}

#[test]
fn a_port_of_fibre_channel_takes_no_iser() {
    let text = "version = 1\n[target.\"20:00:ac:de:48:23:45:67\"]\nallow = [\"*\"]\n\
                portals = [{ address = \"fcoe:int0\", iser = true }]\n";
    let findings = check(&parse(text).unwrap());
    insta::assert_snapshot!(findings.problems[0]);
    assert_eq!(findings.problems.len(), 1);
}

#[test]
fn crcs_of_no_portal_are_told() {
    let head = "[daemon]\niser-crc = false\n";
    insta::assert_snapshot!(looked_at(head, &[r#"["192.0.2.1"]"#]).warnings[0]);
    assert_eq!(looked_at(head, &[ISER]), Findings::default());
}

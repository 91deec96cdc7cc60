//! Portals as addresses and as tables, in TOML and in JSON.

use crate::document;
use crate::tree::{PortalIser, PortalRow, Portals, TargetRow, Tree};

use PortalIser::{Both, Device, None, Soft};

const TARGET: &str = "iqn.2026-11.org.example:san";

fn parsed(portals: &str) -> Result<Tree, String> {
    let text = format!("version = 1\n\n[target.\"{TARGET}\"]\nportals = {portals}\n");
    document::parse(&text).map_err(|problem| problem.to_string())
}

fn rows(portals: &Portals) -> Vec<(u16, &str, PortalIser)> {
    let rows = portals.iter();
    rows.map(|(tag, row)| (tag.0, &*row.address, row.iser))
        .collect()
}

#[test]
fn a_portal_is_an_address_or_a_table() {
    for (text, meant) in [
        (
            r#"["a", { address = "b", iser = true }]"#,
            &[(1, "a", None), (1, "b", Soft)][..],
        ),
        (r#"[{ iser = true, address = "b" }]"#, &[(1, "b", Soft)]),
        (r#"[{ address = "b" }]"#, &[(1, "b", None)]),
        (r#"[{ address = "b", iser = false }]"#, &[(1, "b", None)]),
        (
            r#"["a", { address = "b", iser = "soft" }]"#,
            &[(1, "a", None), (1, "b", Soft)],
        ),
        (
            r#"[{ address = "b", iser = "device" }, { address = "c", iser = "both" }]"#,
            &[(1, "b", Device), (1, "c", Both)],
        ),
        (
            r#"{ 1 = ["a"], 6 = [{ address = "b", iser = true }] }"#,
            &[(1, "a", None), (6, "b", Soft)],
        ),
    ] {
        let tree = parsed(text).unwrap();
        assert_eq!(rows(&tree.target[TARGET].portals), meant, "{text}");
        let written = document::write(&tree);
        assert_eq!(document::parse(&written), Ok(tree), "{written}");
    }
}

#[test]
fn what_is_no_portal_is_told_with_the_way_out() {
    let said = [
        "7",
        "\"192.0.2.1\"",
        "[7]",
        "[[\"192.0.2.1\", true]]",
        r#"[{ iser = true }]"#,
        r#"[{ address = "192.0.2.1", isr = true }]"#,
        r#"[{ address = "192.0.2.1", iser = "yes" }]"#,
        r#"[{ address = "192.0.2.1", iser = 1 }]"#,
        r#"{ 1 = "192.0.2.1" }"#,
        r#"{ one = ["192.0.2.1"] }"#,
    ];
    let said = said.map(|text| format!("{text}\n  {}", parsed(text).unwrap_err()));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn json_has_the_same_forms() {
    let text = r#"{"portals":["a",{"address":"b","iser":true}]}"#;
    let row: TargetRow = serde_json::from_str(text).unwrap();
    assert_eq!(rows(&row.portals), [(1, "a", None), (1, "b", Soft)]);
    assert_eq!(serde_json::to_string(&row).unwrap(), text);
    let by_tag = r#"{"portals":{"1":["a"],"6":[{"address":"b","iser":true}]}}"#;
    let row: TargetRow = serde_json::from_str(by_tag).unwrap();
    assert_eq!(serde_json::to_string(&row).unwrap(), by_tag);
    for wrong in [
        r#"{"portals":["a",["b",true]]}"#,
        r#"{"portals":[{"address":"b","iser":1}]}"#,
        r#"{"portals":[{"address":"b","unknown":true}]}"#,
        r#"{"portals":[null]}"#,
    ] {
        let _refusal = serde_json::from_str::<TargetRow>(wrong).unwrap_err();
    }
}

#[test]
fn a_default_is_not_written() {
    let row = PortalRow::from("192.0.2.1");
    assert_eq!(serde_json::to_string(&row).unwrap(), "\"192.0.2.1\"");
}

#[test]
fn portals_are_set_by_their_path() {
    let mut tree = parsed("[\"192.0.2.1\"]").unwrap();
    let path = format!("target.{TARGET}.portals");
    let value = r#"["192.0.2.1", { address = "192.0.2.2", iser = true }]"#;
    document::set(&mut tree, &path, value).unwrap();
    let meant = [(1, "192.0.2.1", None), (1, "192.0.2.2", Soft)];
    assert_eq!(rows(&tree.target[TARGET].portals), meant);
    let group = format!("target.{TARGET}.portals.6");
    let other = r#"[{ address = "192.0.2.3", iser = true }]"#;
    // A list is group 1 as soon as there is another one.
    document::set(&mut tree, &group, other).unwrap();
    let [one, two] = meant;
    let all = [one, two, (6, "192.0.2.3", Soft)];
    assert_eq!(rows(&tree.target[TARGET].portals), all);
    document::unset(&mut tree, &group).unwrap();
    document::set(&mut tree, "daemon.iser-crc", "false").unwrap();
    assert_eq!(tree.daemon.iser_crc, Some(false));
    for wrong in ["off", "0", "[]"] {
        let refused = document::set(&mut tree, "daemon.iser-crc", wrong).unwrap_err();
        assert!(
            refused.to_string().contains("true or false is expected"),
            "{refused}"
        );
    }
}

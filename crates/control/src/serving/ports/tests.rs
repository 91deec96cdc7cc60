//! Identifiers that stay.

use super::{FIRST, given};
use crate::document::parse;

#[test]
fn a_portal_group_keeps_its_identifier_whoever_comes_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let ids = |targets: &[&str]| {
        let rows = targets.iter().map(|name| {
            let portals = "portals = { 1 = [\"::1\"], 6 = [\"::2\"] }";
            format!("[target.\"iqn.2026-11.org.example:{name}\"]\n{portals}\n")
        });
        let tree = parse(&format!("version = 1\n{}", rows.collect::<String>())).unwrap();
        given(folder.path(), &tree).unwrap()
    };
    let key = |name: &str, tag| (format!("iqn.2026-11.org.example:{name}"), tag);
    let first = ids(&["b"]);
    assert_eq!(
        [first[&key("b", 1)], first[&key("b", 6)]],
        [FIRST, FIRST + 1]
    );
    let second = ids(&["a"]);
    assert_eq!(second[&key("a", 1)], FIRST + 2);
    assert_eq!(ids(&["a", "b"])[&key("b", 6)], FIRST + 1);
    std::fs::write(folder.path().join("ports.json"), "[[").unwrap();
    let tree = parse("version = 1").unwrap();
    assert!(
        given(folder.path(), &tree)
            .unwrap_err()
            .contains("ports.json")
    );
}

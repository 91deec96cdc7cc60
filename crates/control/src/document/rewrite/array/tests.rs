//! Lists of portals that change, and what of their text stays.

use crate::document::{parse, rewrite};
use crate::tree::{PortalIser, PortalRow, Portals, TargetRow};

const TARGET: &str = "iqn.2026-11.org.example:san";

/// The text of the portals after `change`, which is read as what was meant.
fn edited(portals: &str, change: impl FnOnce(&mut Vec<PortalRow>)) -> String {
    let head = format!("version = 1\n\n# ours\n[target.\"{TARGET}\"]\n");
    let text = format!("{head}portals = {portals}\nalias = \"a\" # last\n");
    let mut tree = parse(&text).unwrap();
    let row: &mut TargetRow = tree.target.get_mut(TARGET).unwrap();
    let Portals::One(all) = &mut row.portals else {
        panic!("{portals}");
    };
    change(all);
    let said = rewrite(&text, &tree);
    assert_eq!(parse(&said).as_ref(), Ok(&tree), "{said}");
    let said = said.strip_prefix(&format!("{head}portals = ")).unwrap();
    said.strip_suffix("\nalias = \"a\" # last\n")
        .unwrap()
        .to_owned()
}

const LINES: &str = "[ # two\n  \"192.0.2.1\", # uplink\n  # spare\n  \"192.0.2.2\",\n]";

#[test]
fn a_portal_that_takes_iser_keeps_its_comments() {
    let said = edited(LINES, |all| all[0].iser = PortalIser::Soft);
    let table = "{ address = \"192.0.2.1\", iser = true }";
    assert_eq!(said, LINES.replacen("\"192.0.2.1\"", table, 1));
    let back = edited(&said, |all| all[0].iser = PortalIser::None);
    assert_eq!(back, LINES);
}

#[test]
fn a_portal_stays_as_it_was_written() {
    let odd = "{ iser = true,address = '192.0.2.1' }";
    for (text, more) in [
        (format!("[{odd}]"), format!("[{odd}, \"192.0.2.9\"]")),
        (
            format!("[\n  {odd}, # uplink\n]"),
            format!("[\n  {odd}, # uplink\n  \"192.0.2.9\",\n]"),
        ),
    ] {
        let said = edited(&text, |all| all.push("192.0.2.9".into()));
        assert_eq!(said, more);
        assert_eq!(edited(&said, |all| drop(all.pop())), text);
    }
}

#[test]
fn a_default_that_was_written_is_no_difference() {
    let text = "[{ address = \"192.0.2.1\", iser = false }, \"192.0.2.2\"]";
    assert_eq!(edited(text, |_| ()), text);
    let said = edited(text, |all| drop(all.pop()));
    assert_eq!(said, "[{ address = \"192.0.2.1\", iser = false }]");
}

#[test]
fn one_that_goes_takes_its_comment_along() {
    let said = edited(LINES, |all| drop(all.remove(0)));
    assert_eq!(said, "[ # two\n  # spare\n  \"192.0.2.2\",\n]");
}

#[test]
fn tables_with_headers_of_their_own_are_read_and_replaced() {
    let text = format!(
        "version = 1\n[target.\"{TARGET}\"]\nalias = \"a\"\n\
         [[target.\"{TARGET}\".portals]]\naddress = \"192.0.2.1\"\niser = true\n"
    );
    let mut tree = parse(&text).unwrap();
    let row = tree.target.get_mut(TARGET).unwrap();
    row.alias = Some("b".to_owned());
    assert_eq!(parse(&rewrite(&text, &tree)).as_ref(), Ok(&tree));
    tree.target.get_mut(TARGET).unwrap().portals = Portals::One(vec!["192.0.2.2".into()]);
    assert_eq!(parse(&rewrite(&text, &tree)).as_ref(), Ok(&tree));
}

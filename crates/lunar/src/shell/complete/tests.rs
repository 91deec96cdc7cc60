//! What Tab offers.

use control::document::parse;
use control::shell::Node;

use super::Completer;

const TEXT: &str = "version = 1\n[volume.rd1]\naddress = \"ram:1G\"\n\
    [target.\"iqn.2026-11.org.example:san\"]\nportals = [\"127.0.0.1\"]\nallow = [\"*\"]\n";

fn offered(line: &str) -> Vec<String> {
    let tree = parse(TEXT).unwrap();
    let completer = Completer {
        tree,
        here: Node::Root,
    };
    completer.candidates(line).1
}

#[test]
fn nodes_commands_and_parameters_are_offered() {
    assert!(offered("").contains(&"iscsi".to_owned()));
    assert_eq!(offered("/isc"), ["/iscsi"]);
    assert_eq!(
        offered("/iscsi/iqn"),
        ["/iscsi/iqn.2026-11.org.example:san"]
    );
    assert!(offered("/backstores/ramdisk ").contains(&"create".to_owned()));
    assert_eq!(offered("/backstores/ramdisk create si"), ["size="]);
    assert!(offered("/no/such ").contains(&"cd".to_owned()));
}

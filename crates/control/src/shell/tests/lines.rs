//! Random lines: none panics, and every candidate round-trips through a document.

use proptest::collection::vec;
use proptest::prelude::*;

use super::Session;
use crate::any;

const WORDS: &[&str] = &[
    "/",
    "..",
    ".",
    "@last",
    "@b",
    "<",
    ">",
    "/backstores/rd_mcp",
    "/backstores/ramdisk",
    "/backstores/iblock",
    "/backstores/fileio",
    "/backstores/null",
    "/backstores/address",
    "/backstores/pscsi",
    "/iscsi",
    "/tcm_fc",
    "/loopback",
    "iscsi",
    "luns/",
    "acls/",
    "portals/",
    "luns",
    "acls",
    "/iscsi/iqn.2026-11.org.example:t0",
    "/iscsi/iqn.2026-11.org.example:t0/tpgt1",
    "/iscsi/iqn.2026-11.org.example:t0/tpgt1/luns",
    "/iscsi/iqn.2026-11.org.example:t0/tpgt1/acls",
    "/iscsi/iqn.2026-11.org.example:t1/tpg1/acls/iqn.2026-11.org.example:h1",
    "/iscsi/iqn.2026-11.org.example:t1/tpg1/acls/cluster",
    "create",
    "delete",
    "ls",
    "cd",
    "get",
    "set",
    "help",
    "info",
    "status",
    "bookmarks",
    "add",
    "go",
    "tag",
    "untag",
    "enable",
    "disable",
    "iser_enable",
    "enable_iser",
    "iser_disable",
    "true",
    "/iscsi/iqn.2026-11.org.example:t0/tpgt1/portals/127.0.0.1:1",
    "saveconfig",
    "clearconfig",
    "sessions",
    "version",
    "attribute",
    "parameter",
    "auth",
    "global",
    "name=a",
    "name=x",
    "size=1G",
    "size=x",
    "dev=/dev/sda",
    "a",
    "b",
    "vm1",
    "x",
    "50G",
    "0",
    "1",
    "2",
    "lun0",
    "lun1",
    "write_protect=1",
    "add_mapped_luns=false",
    "iqn.2026-11.org.example:h1",
    "iqn.2026-11.org.example:h2",
    "20:00:ac:de:48:23:45:67",
    "10.10.1.3",
    "::",
    "3260",
    "cluster",
    "everybody",
    "acl-h1",
    "authentication=0",
    "authentication=1",
    "generate_node_acls=1",
    "generate_node_acls=0",
    "demo_mode_write_protect=0",
    "demo_mode_write_protect=1",
    "userid=u",
    "userid=",
    "password=abcdefghijkl",
    "password=",
    "mutual_userid=v",
    "mutual_password=mnopqrstuvwx",
    "TargetAlias=me",
    "MaxBurstLength=1M",
    "auto_cd_after_create=true",
    "confirm=true",
    "\"",
    "'a b'",
    "=",
    "k=v",
    "é",
    "\u{0}",
    "",
];

fn line() -> impl Strategy<Value = String> {
    let word = prop::sample::select(WORDS);
    prop_oneof![
        8 => vec(word, 0..6).prop_map(|words| words.join(" ")),
        1 => ".{0,40}",
    ]
}

proptest! {
    #[test]
    fn no_line_panics_and_every_candidate_is_a_document(
        tree in any::tree(),
        lines in vec(line(), 1..12),
    ) {
        let mut session = Session::new(tree);
        session.is_checked = false;
        for line in lines {
            session.shown(&line);
            session.shown("ls");
        }
    }

    #[test]
    fn a_path_leads_to_the_node_that_it_is_of(tree in any::tree()) {
        let mut nodes = vec![crate::shell::Node::Root];
        while let Some(node) = nodes.pop() {
            let mut session = Session::new(tree.clone());
            let path = node.path();
            if !path.contains(' ') {
                session.run(&format!("cd {path}")).unwrap();
                prop_assert_eq!(session.shell.here(&tree).path(), path);
            }
            nodes.extend(node.children(&tree));
        }
    }
}

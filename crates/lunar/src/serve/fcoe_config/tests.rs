//! Folders of fcoemon's files, and what comes of them.

use std::fs;

use super::*;

/// A folder with these files.
fn dir(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn refused(files: &[(&str, &str)]) -> String {
    ports(dir(files).path()).unwrap_err().line
}

#[test]
fn each_enabled_file_is_a_port() {
    let dir = dir(&[
        ("cfg-eth0", "FCOE_ENABLE=\"yes\"\n"),
        ("cfg-eth1", "FCOE_ENABLE=\"yes\"\nAUTO_VLAN=\"yes\"\n"),
        ("cfg-eth2", "FCOE_ENABLE=\"yes\"\nMODE=\"vn2vn\"\n"),
        ("cfg-eth3", "FCOE_ENABLE=\"no\"\nDCB_REQUIRED=\"yes\"\n"),
        ("cfg-eth4", "FCOE_ENABLE=\"yes\"\nDCB_REQUIRED=\"yes\"\n"),
        (
            "cfg-eth5",
            "FCOE_ENABLE=\"yes\"\nMODE=\"vn2vn\"\nFIP_RESP=\"yes\"\n",
        ),
        ("cfg-eth6", "FCOE_ENABLE=\"yes\"\nFIP_RESP=\"yes\"\n"),
        ("cfg-ethx", "FCOE_ENABLE=\"yes\"\n"),
    ]);
    let expected = [
        "eth0,mode=fabric",
        "eth1,mode=fabric,vlan=auto",
        "eth2",
        "eth4,mode=fabric,dcb=required",
        "eth5,fip-resp=yes",
        "eth6,mode=fabric",
    ];
    let expected = expected.map(|words| words.parse::<FcoePort>().unwrap());
    assert_eq!(ports(dir.path()).unwrap(), expected);
}

#[test]
fn what_is_wrong_is_told_with_its_file() {
    let yes = "FCOE_ENABLE=\"yes\"\n";
    for (lines, told) in [
        ("MODE=\"vn2vn\"\nDCB_REQUIRED=\"yes\"", "lunar dcb"),
        ("MODE=\"vn2vn\"\nAUTO_VLAN=\"yes\"", "interface of the VLAN"),
        (
            "MODE=\"switch\"",
            "line 2, column 7: MODE is fabric or vn2vn",
        ),
        ("MODE=fabric", "line 2, column 6"),
    ] {
        let line = refused(&[("cfg-eth0", &format!("{yes}{lines}\n"))]);
        assert!(line.contains("cfg-eth0") && line.contains(told), "{line}");
    }
}

#[test]
fn a_folder_without_ports_is_refused() {
    assert!(refused(&[("cfg-eth0", "\n")]).contains("FCOE_ENABLE"));
    let line = ports(Path::new("/no/such/folder")).unwrap_err().line;
    assert!(line.contains("/no/such/folder"), "{line}");
}

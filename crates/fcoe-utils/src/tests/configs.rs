//! Files of fcoemon: what they mean, and where they are wrong.

use std::fs;

use tempfile::TempDir;

use crate::change::FcoeMode;
use crate::config::folder::{FolderError, read};
use crate::config::{ConfigError, PortConfig};

/// All settings, with comments.
const WHOLE: &str = "## Type: yes/no
# Normally set to \"yes\"
FCOE_ENABLE=\"yes\"

  DCB_REQUIRED='no'   # lossy
AUTO_VLAN=\"YES\"\t
MODE=\"vn2vn\"
FIP_RESP=\"yes\"
";

fn wrong(text: &str) -> String {
    PortConfig::parse(text).unwrap_err().to_string()
}

#[test]
fn settings_are_read_in_either_quotes_and_case() {
    let expected = PortConfig {
        enabled: true,
        dcb_required: false,
        auto_vlan: true,
        mode: FcoeMode::Vn2vn,
        fip_resp: true,
        unknown: vec![],
    };
    assert_eq!(PortConfig::parse(WHOLE), Ok(expected));
}

#[test]
fn what_is_not_set_is_as_fcoemon_has_it() {
    let config = PortConfig::parse("\n#FCOE_ENABLE=\"yes\"\n").unwrap();
    assert_eq!(config, PortConfig::default());
    assert!(!config.enabled);
    assert_eq!(config.mode, FcoeMode::Fabric);
}

#[test]
fn names_of_others_are_passed_over_and_reported() {
    let config = PortConfig::parse("NETWORK=yes\nFCOE_ENABEL=\"yes\"\n").unwrap();
    let unknown = [(1, "NETWORK".to_owned()), (2, "FCOE_ENABEL".to_owned())];
    assert_eq!(config.unknown, unknown);
}

#[test]
fn each_fault_has_its_line_and_column() {
    for (text, told) in [
        ("FCOE_ENABLE", "line 1, column 12: a line is NAME="),
        (
            "\n  FCOE_ENABLE =\"yes\"",
            "line 2, column 14: a line is NAME=",
        ),
        ("=\"yes\"", "line 1, column 1: a line is NAME="),
        (
            "MODE=vn2vn",
            "line 1, column 6: a value is in quotes, as in MODE=\"vn2vn\"",
        ),
        ("MODE=", "line 1, column 6: a value is in quotes"),
        (
            "MODE=\"vn2vn",
            "line 1, column 6: the quotes are not closed",
        ),
        (
            "MODE=\"vn2vn'",
            "line 1, column 6: the quotes are not closed",
        ),
        ("MODE=\"vn2vn\" x", "line 1, column 14: only a comment"),
        (
            "\tMODE=\"VN2\"",
            "line 1, column 8: MODE is fabric or vn2vn, not \"VN2\"",
        ),
        (
            "AUTO_VLAN=\"\"",
            "line 1, column 12: AUTO_VLAN is no or yes, not \"\"",
        ),
        (
            "AUTO_VLAN=\"no\"\n AUTO_VLAN=\"yes\"",
            "line 2, column 2: AUTO_VLAN has a value from line 1",
        ),
        (
            "# \u{e9}\nMODE=\"\u{e9}\"",
            "line 2, column 7: MODE is fabric or vn2vn",
        ),
    ] {
        assert!(wrong(text).starts_with(told), "{text:?}: {}", wrong(text));
    }
}

#[test]
fn a_folder_has_a_file_an_interface() {
    let folder = TempDir::new().unwrap();
    let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    put("cfg-eth1", WHOLE);
    put("cfg-eth0.152-fcoe", "");
    // The example, and what is of another program.
    put("cfg-ethx", "nonsense");
    put("config", "nonsense");
    put("cfg-", "nonsense");
    let ports = read(folder.path()).unwrap();
    let names: Vec<_> = ports
        .iter()
        .map(|(name, config)| (&**name, config.enabled))
        .collect();
    assert_eq!(names, [("eth0.152-fcoe", false), ("eth1", true)]);
}

#[test]
fn what_is_wrong_names_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cfg-eth0");
    let told = || read(folder.path()).unwrap_err();
    fs::write(&path, "MODE=x").unwrap();
    let expected = format!("{}: line 1, column 6: ", path.display());
    assert!(told().to_string().starts_with(&expected), "{}", told());
    fs::write(&path, "#".repeat((64 << 10) + 1)).unwrap();
    assert!(matches!(told(), FolderError::TooLong(long) if long == path));
    fs::write(&path, [0xff]).unwrap();
    assert!(matches!(told(), FolderError::Unreadable(of, _) if of == path));
    let missing = read(&folder.path().join("none"));
    assert!(matches!(missing, Err(FolderError::Unreadable(..))));
}

/// No text makes it panic, however it is cut.
#[test]
fn any_end_of_a_file_is_answered() {
    let text = format!("{WHOLE}MODE=\"\u{e9}\u{1f512}\" \u{e9}");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _: Result<_, ConfigError> = PortConfig::parse(&text[..end]);
    }
}

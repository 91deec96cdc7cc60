use super::*;

fn lun() -> ReadyLun {
    ReadyLun {
        address: "iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0".into(),
        portals: vec!["127.0.0.1:3260".into(), "[::1]:3260".into()],
        target: "iqn.2026-11.org.lunar:host".into(),
        lun: 0,
        size_bytes: 1 << 30,
        block_size: 512,
        volume: "ram:1G".into(),
    }
}

#[test]
fn a_line_a_portal_for_people() {
    let expected = "iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0  1.0 GiB  ram:1G\n\
                    iscsi://[::1]:3260/iqn.2026-11.org.lunar:host/0  1.0 GiB  ram:1G";
    assert_eq!(line(&lun(), false), expected);
    let fcoe = ReadyLun {
        address: "fcoe://eth0/20:00:52:54:00:78:41:00/0".into(),
        portals: vec!["eth0".into()],
        ..lun()
    };
    let expected = "fcoe://eth0/20:00:52:54:00:78:41:00/0  1.0 GiB  ram:1G";
    assert_eq!(line(&fcoe, false), expected);
}

#[test]
fn a_name_of_a_file_is_no_line_of_its_own() {
    let forged = ReadyLun {
        volume: "file:x\niscsi://\u{1b}[2J".into(),
        portals: vec!["127.0.0.1:3260".into()],
        ..lun()
    };
    let line = line(&forged, false);
    assert!(line.ends_with("  file:x%0Aiscsi://%1B[2J"), "{line}");
}

#[test]
fn an_object_for_programs() {
    let expected = concat!(
        r#"{"address":"iscsi://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0","#,
        r#""portals":["127.0.0.1:3260","[::1]:3260"],"target":"iqn.2026-11.org.lunar:host","#,
        r#""lun":0,"size_bytes":1073741824,"block_size":512,"volume":"ram:1G"}"#
    );
    assert_eq!(line(&lun(), true), expected);
}

//! Portals as they are typed, and what is said when everything is ready.

use std::net::SocketAddr;

use super::portal::{addresses, advertised, parse};
use super::*;

fn listen(text: &str) -> Result<Vec<String>, String> {
    let addresses = addresses(&parse(text)?)?;
    Ok(addresses.iter().map(SocketAddr::to_string).collect())
}

#[test]
fn addresses_of_both_families() {
    let forms = [
        ("127.0.0.1:0", "127.0.0.1:0"),
        ("192.0.2.1", "192.0.2.1:3260"),
        ("[::1]:860", "[::1]:860"),
        ("[::]", "[::]:3260"),
    ];
    for (text, address) in forms {
        assert_eq!(listen(text), Ok(vec![address.to_owned()]), "{text}");
    }
}

#[test]
fn a_name_stands_for_its_addresses() {
    let addresses = listen("localhost:3261").unwrap();
    assert!(!addresses.is_empty());
    assert!(addresses.iter().all(|address| address.ends_with(":3261")));
}

#[test]
fn an_interface_follows_a_link_local_address() {
    let addresses = listen("[fe80::1%25lo]:3260").unwrap();
    assert_eq!(addresses, ["[fe80::1%1]:3260"]);
}

#[test]
fn what_is_no_portal_is_refused() {
    for text in [
        "",
        ":3260",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:65536",
        "[::1",
        "::1",
        "iscsi://127.0.0.1:3260",
        "*:3260",
    ] {
        assert!(listen(text).is_err(), "{text}");
    }
}

#[test]
fn advertised_portals_are_left_unresolved() {
    assert_eq!(advertised("san.example"), Ok("san.example:3260".to_owned()));
    assert_eq!(
        advertised("[2001:db8::1]:1"),
        Ok("[2001:db8::1]:1".to_owned())
    );
}

#[test]
fn what_nobody_can_connect_to_is_not_advertised() {
    for text in [
        "san.example:0",
        "192.0.2.1:0",
        "0.0.0.0:3260",
        "[::]",
        "224.0.0.1",
        "255.255.255.255",
        "[ff02::1]",
    ] {
        assert!(advertised(text).is_err(), "{text}");
    }
}

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
    let iser = ReadyLun {
        address: "iser://127.0.0.1:3260/iqn.2026-11.org.lunar:host/0".into(),
        ..lun()
    };
    assert_eq!(line(&iser, false), expected.replace("iscsi:", "iser:"));
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

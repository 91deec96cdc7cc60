use super::*;

#[test]
fn names_of_the_rfc_are_names() {
    for name in [
        "iqn.2001-04.com.example:storage:diskarrays-sn-a8675309",
        "iqn.2001-04.com.example",
        "iqn.1993-08.org.debian:01:6f1df2e8ed",
        "iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test",
        "iqn.1998-01.com.vmware:esx_01-4f2a",
        "iqn.2001-04.com.example:überströmer",
        "eui.02004567a425678d",
        "naa.52004567ba64678d",
        "naa.62004567ba64678d0123456789abcdef",
    ] {
        assert_eq!(normalise(name).as_deref(), Ok(name));
    }
}

#[test]
fn names_are_compared_in_lower_case() {
    let lower = |name| normalise(name).unwrap();
    assert_eq!(
        lower("IQN.2001-04.COM.Example:Disk"),
        "iqn.2001-04.com.example:disk"
    );
    assert_eq!(lower("eui.02004567A425678D"), "eui.02004567a425678d");
    assert_eq!(
        lower("iqn.2001-04.com.example:ÜBER"),
        "iqn.2001-04.com.example:über"
    );
}

#[test]
fn other_strings_are_none() {
    use NameError::{Authority, Character, Digits, TooLong, Type};
    for (name, error) in [
        ("", Type),
        ("iqn", Type),
        ("disk1", Type),
        ("öäü.x", Type),
        ("iqn.", Authority),
        ("iqn.2001-04", Authority),
        ("iqn.2001-04.", Authority),
        ("iqn.2001-04.:disk", Authority),
        ("iqn.2001-13.com.example", Authority),
        ("iqn.2001-00.com.example", Authority),
        ("iqn.201-04.com.example", Authority),
        ("iqn.2001-4.com.example", Authority),
        ("iqn.com.example:disk", Authority),
        ("iqn.2001-04.com.example:a b", Character),
        ("iqn.2001-04.com.example:a,t,0x1", Character),
        ("iqn.2001-04.com.example:a/../b", Character),
        ("iqn.2001-04.com.example:a\u{200b}b", Character),
        ("iqn.2001-04.com.example:a\nb", Character),
        ("eui.02004567A425678", Digits),
        ("eui.02004567A425678D0", Digits),
        ("eui.02004567A425678G", Digits),
        ("naa.5200", Digits),
        ("naa.62004567BA64678D0123456789ABCDE", Digits),
    ] {
        assert_eq!(normalise(name), Err(error), "{name:?}");
    }
    let long = |length: usize| format!("iqn.2001-04.com.example:{}", "x".repeat(length - 24));
    assert!(normalise(&long(223)).is_ok());
    assert_eq!(normalise(&long(224)), Err(TooLong));
}

#[test]
fn a_name_that_grows_in_lower_case_is_measured_again() {
    let name = format!("iqn.2001-04.com.example:{}", "İ".repeat(99));
    assert_eq!(name.len(), 222);
    assert_eq!(normalise(&name), Err(NameError::TooLong));
}

#[test]
fn transport_id_of_an_initiator_port() {
    let port = InitiatorPort {
        name: "iqn.1993-08.org.debian:01:ab".into(),
        isid: [0x00, 0x02, 0x3d, 0, 0, 0xaf],
    };
    let id = transport_id(&port);
    assert_eq!(id[..4], [0x45, 0, 0, 48]);
    assert_eq!(
        &id[4..],
        b"iqn.1993-08.org.debian:01:ab,i,0x00023d0000af\0\0\0"
    );
    assert_eq!(id.len() % 4, 0);
}

#[test]
fn designators_of_a_target() {
    let device = target_device(
        "iqn.2026-11.org.lunar:a",
        &[PortalGroup::everywhere()],
        vec![],
        2,
    );
    assert_eq!(device.designators[..4], [0x53, 0xa8, 0, 24]);
    assert_eq!(&device.designators[4..], b"iqn.2026-11.org.lunar:a\0");
    let port = &device.ports[0];
    assert_eq!(
        (port.relative_id, &port.designators[..4]),
        (1, &[0x53, 0x98, 0, 36][..])
    );
    assert_eq!(
        &port.designators[4..],
        b"iqn.2026-11.org.lunar:a,t,0x0001\0\0\0\0"
    );
    assert_eq!((device.protocol, device.versions), (5, vec![0x0962]));
}

#[test]
fn the_longest_name_still_fits_its_descriptor() {
    let name = format!("iqn.2001-04.com.example:{}", "x".repeat(199));
    let device = target_device(
        &normalise(&name).unwrap(),
        &[PortalGroup::everywhere()],
        vec![],
        1,
    );
    let port = &device.ports[0].designators;
    assert_eq!(usize::from(port[3]) + 4, port.len());
}

#[test]
fn each_portal_group_is_a_port() {
    let group = |tag, port| PortalGroup {
        tag,
        port,
        portals: Vec::new(),
    };
    let device = target_device(
        "iqn.2026-11.org.lunar:a",
        &[group(1, 1), group(6, 300)],
        vec![],
        2,
    );
    let ids: Vec<_> = device.ports.iter().map(|port| port.relative_id).collect();
    assert_eq!(ids, [1, 300]);
    let second = &device.ports[1].designators;
    assert!(second[4..].starts_with(b"iqn.2026-11.org.lunar:a,t,0x0006"));
}

use super::*;

fn listen(text: &str) -> Result<Vec<String>, String> {
    let place: ListenAddress = text.parse()?;
    let addresses = place.addresses()?;
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

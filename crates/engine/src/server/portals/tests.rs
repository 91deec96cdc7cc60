use super::*;

fn expanded(bound: &[&str], own: &[&str]) -> Vec<String> {
    let bound: Vec<_> = bound.iter().map(|text| text.parse().unwrap()).collect();
    let own: Vec<_> = own.iter().map(|text| text.parse().unwrap()).collect();
    let portals = expand(&bound, &own).into_iter();
    portals.map(|portal| portal.to_string()).collect()
}

const OWN: [&str; 6] = [
    "127.0.0.1",
    "::1",
    "192.0.2.7",
    "169.254.3.4",
    "fe80::7",
    "2001:db8::7",
];

#[test]
fn a_wildcard_stands_for_the_addresses_of_its_family() {
    assert_eq!(expanded(&["0.0.0.0:3260"], &OWN), ["192.0.2.7:3260"]);
    assert_eq!(expanded(&["[::]:3261"], &OWN), ["[2001:db8::7]:3261"]);
    let both = ["192.0.2.7:3260", "0.0.0.0:3260"];
    assert_eq!(expanded(&both, &OWN), ["192.0.2.7:3260"], "none twice");
}

#[test]
fn a_wildcard_overlaps_the_addresses_of_its_family_and_port() {
    let both = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|text| text.parse().unwrap());
        assert_eq!(overlap(one, other), overlap(other, one));
        overlap(one, other)
    };
    assert!(both("0.0.0.0:3260", "192.0.2.7:3260"));
    assert!(both("[::]:3260", "[2001:db8::7]:3260"));
    assert!(!both("0.0.0.0:3260", "192.0.2.7:3261"));
    assert!(!both("[::]:3260", "192.0.2.7:3260"));
    assert!(!both("192.0.2.7:3260", "192.0.2.8:3260"));
}

#[test]
fn a_machine_without_a_network_shows_loopback() {
    assert_eq!(expanded(&["0.0.0.0:3260"], &OWN[..2]), ["127.0.0.1:3260"]);
    assert_eq!(expanded(&["[::]:3260"], &["127.0.0.1"]), ["[::]:3260"]);
}

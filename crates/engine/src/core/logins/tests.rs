use super::*;

fn peer(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn key(slot: u32) -> SlotKey {
    SlotKey {
        slot,
        generation: 1,
    }
}

fn held(by: &[u8]) -> Logins {
    let mut logins = Logins::default();
    for (slot, last) in by.iter().enumerate() {
        logins.insert(peer(*last), key(slot as u32));
    }
    logins
}

#[test]
fn a_place_that_is_free_is_for_anybody() {
    assert_eq!(held(&[1, 1]).admission(peer(1), 3), Admission::Free);
}

#[test]
fn the_oldest_of_the_address_with_the_most_makes_room() {
    let logins = held(&[2, 1, 1, 2, 1]);
    let made = Admission::InPlaceOf(peer(1), key(1));
    assert_eq!(logins.admission(peer(3), 5), made);
}

#[test]
fn an_address_that_has_as_many_makes_no_room_for_itself() {
    assert_eq!(held(&[1, 1, 1]).admission(peer(1), 3), Admission::Full);
    assert_eq!(held(&[1, 1, 2]).admission(peer(2), 3), Admission::Full);
    assert_eq!(held(&[1, 2, 3]).admission(peer(4), 3), Admission::Full);
}

#[test]
fn one_that_logged_in_gives_its_place_back() {
    let mut logins = held(&[1, 1]);
    logins.remove(key(0));
    assert_eq!(logins.len(), 1);
    assert_eq!(logins.admission(peer(1), 2), Admission::Free);
}

fn held_by(peers: &[&str]) -> Logins {
    let mut logins = Logins::default();
    for (slot, peer) in (0..).zip(peers) {
        logins.insert(peer.parse().unwrap(), key(slot));
    }
    logins
}

#[test]
fn all_addresses_of_a_host_count_as_one() {
    let logins = held_by(&["2001:db8:1::1", "2001:db8:1::a:2", "2001:db8:1::3"]);
    let stranger = "2001:db8:2::1".parse().unwrap();
    let made = Admission::InPlaceOf("2001:db8:1::1".parse().unwrap(), key(0));
    assert_eq!(logins.admission(stranger, 3), made);
    let another = "2001:db8:1::4".parse().unwrap();
    assert_eq!(logins.admission(another, 3), Admission::Full);
}

#[test]
fn an_ipv4_address_is_the_same_by_a_socket_of_ipv6() {
    let logins = held_by(&["::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.2"]);
    assert_eq!(logins.admission(peer(1), 3), Admission::Full);
    let made = Admission::InPlaceOf("::ffff:10.0.0.1".parse().unwrap(), key(0));
    assert_eq!(logins.admission(peer(3), 3), made);
}

#[test]
fn neighbours_on_a_link_are_hosts_of_their_own() {
    let logins = held_by(&["fe80::1", "fe80::1", "fe80::1"]);
    let neighbour = "fe80::2".parse().unwrap();
    let made = Admission::InPlaceOf("fe80::1".parse().unwrap(), key(0));
    assert_eq!(logins.admission(neighbour, 3), made);
}

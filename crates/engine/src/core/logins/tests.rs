use super::*;

fn peer(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn key(slot: u32) -> Key {
    Key {
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

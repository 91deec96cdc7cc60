//! Names that nobody else has.

use super::*;

#[test]
fn each_port_of_an_interface_has_an_address_of_its_own() {
    let own = [0x52, 0x54, 0, 0x78, 0x41, 0x7f];
    let mut all: Vec<Mac> = (0..PORTS_MAX).map(|number| numbered(own, number)).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), usize::from(PORTS_MAX));
    assert_eq!(numbered(own, 0), own);
}

#[test]
fn a_number_is_taken_until_its_owner_ends() {
    let (first, claim) = free("lunar-test").unwrap();
    let (second, _other) = free("lunar-test").unwrap();
    assert_ne!(first, second);
    drop(claim);
    assert_eq!(free("lunar-test").unwrap().0, first);
}

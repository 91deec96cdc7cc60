//! Features of the loopback interface, which is there on every machine.

use super::*;

#[test]
fn the_features_that_are_on_are_told_by_name() {
    assert!(has_feature("lo", b"loopback").unwrap());
    assert!(!has_feature("lo", b"loop").unwrap());
    assert_eq!(filters_vlans("lo").unwrap(), Some(false));
    let missing = filters_vlans("no-such-if").unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
}

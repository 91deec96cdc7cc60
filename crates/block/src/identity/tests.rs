use super::{digest, machine_in, serial};

#[test]
fn parts_are_kept_apart() {
    assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
}

#[test]
fn a_serial_number_follows_from_the_identity_alone() {
    assert_eq!(serial("file 1"), serial("file 1"));
    assert_ne!(serial("file 1"), serial("file 2"));
    assert_eq!(serial("file 1").len(), 16);
}

#[test]
fn a_machine_that_was_not_booted_has_no_name() {
    let id = "0123456789abcdef0123456789abcdef";
    assert_eq!(machine_in(&format!("{id}\n")).as_deref(), Some(id));
    for none in ["", "\n", "uninitialized\n", &"0".repeat(32)] {
        assert_eq!(machine_in(none), None, "{none:?}");
    }
}

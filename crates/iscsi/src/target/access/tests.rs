//! Which group of a node an initiator is in.

use super::{AccessGroup, Initiators, NodeAccess};

fn group(names: &[&str]) -> AccessGroup {
    let names = names.iter().map(|&name| name.to_owned());
    AccessGroup {
        initiators: Initiators::Named(names.collect()),
        chap: None,
    }
}

#[test]
fn a_group_that_names_an_initiator_comes_before_everybody() {
    let everybody = AccessGroup::default();
    let access = NodeAccess::new(vec![everybody, group(&["a"]), group(&["a", "b"])]);
    let found = ["a", "b", "c"].map(|name| access.group_of(name));
    assert_eq!(found, [Some(1), Some(2), Some(0)]);
}

#[test]
fn access_is_for_nobody_without_a_group() {
    assert!(!NodeAccess::new(Vec::new()).admits("a"));
    assert!(NodeAccess::default().admits("a"));
    let only = NodeAccess::only(["a".to_owned()].into());
    assert!(only.admits("a") && !only.admits("b"));
}

//! Where the kernel hands frames.

use super::*;

const A: FcId = FcId(0x01_0100);
/// Of another domain, with the same low bits.
const B: FcId = FcId(0x02_0100);
const C: FcId = FcId(0x02_0200);

#[test]
fn frames_go_to_the_branch_of_the_nexus() {
    let mut steered = SteeredPorts::default();
    assert_eq!(steered.note(A, Some(1)), 1);
    assert_eq!(steered.note(C, Some(2)), 2);
    assert_eq!(steered.note(A, None), 0);
    assert_eq!(steered.note(A, Some(2)), 2);
}

#[test]
fn ports_that_the_kernel_cannot_tell_apart_are_not_steered() {
    let mut steered = SteeredPorts::default();
    assert_eq!(steered.note(A, Some(1)), 1);
    assert_eq!(steered.note(B, Some(0)), 0);
    assert_eq!(steered.note(B, None), 1);
    assert_eq!(steered.note(A, None), 0);
    assert!(steered.0.is_empty());
}

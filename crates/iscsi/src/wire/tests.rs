//! Formats round-trip, and a stream is cut in the same way wherever it is split.

mod framing;
mod iser;
mod pdus;

use crate::wire::serial::CmdSn;

#[test]
fn numbers_are_ordered_across_the_wrap() {
    let last = CmdSn(u32::MAX);
    assert_eq!(last.next(), CmdSn(0));
    assert!(last.is_before(CmdSn(0)));
    assert!(!CmdSn(0).is_before(last));
    assert_eq!(CmdSn(3).since(CmdSn(u32::MAX - 1)), 5);
    assert_eq!(CmdSn(1).minus(2), last);
}

#[test]
fn a_number_is_not_before_itself() {
    assert!(!CmdSn(7).is_before(CmdSn(7)));
}

#[test]
fn half_the_circle_away_still_has_one_order() {
    assert!(CmdSn(0).is_before(CmdSn(0x8000_0000)));
    assert!(!CmdSn(0).is_before(CmdSn(0x8000_0001)));
}

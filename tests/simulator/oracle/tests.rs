//! The oracle finds what is wrong, and nothing else.

use scsi::medium::Extent;
use sim::{Disk, DiskKind};

use super::{Oracle, Pattern, Stamp};

const ONE: Extent = Extent::new(3, 1);

fn oracle() -> Oracle {
    Oracle::new(&[Disk::new(DiskKind::Apart, 512, 16)])
}

fn write(oracle: &mut Oracle) -> (Stamp, Vec<u8>) {
    let stamp = oracle.begin(0, ONE, Pattern::Each);
    (stamp, oracle.data(stamp))
}

/// What a block can be read as, of some contents.
fn readable(oracle: &mut Oracle, contents: &[&Vec<u8>]) -> Vec<bool> {
    let now = oracle.now();
    let mut read = |content: &&Vec<u8>| oracle.read(now, 0, ONE, content).is_ok();
    contents.iter().map(&mut read).collect()
}

#[test]
fn an_acknowledged_write_is_all_that_can_be_read() {
    let mut oracle = oracle();
    let (first, one) = write(&mut oracle);
    oracle.good(first).unwrap();
    let (second, two) = write(&mut oracle);
    let zeros = vec![0; 512];
    assert_eq!(
        readable(&mut oracle, &[&zeros, &one, &two]),
        [false, true, true]
    );
    oracle.good(second).unwrap();
    assert_eq!(
        readable(&mut oracle, &[&zeros, &one, &two]),
        [false, false, true]
    );
}

#[test]
fn writes_at_the_same_time_come_in_any_order() {
    let mut oracle = oracle();
    let (first, one) = write(&mut oracle);
    let (second, two) = write(&mut oracle);
    oracle.good(second).unwrap();
    oracle.good(first).unwrap();
    assert_eq!(readable(&mut oracle, &[&one, &two]), [true, true]);
}

#[test]
fn a_read_that_began_earlier_may_return_what_was_overwritten_since() {
    let mut oracle = oracle();
    let begun = oracle.now();
    let (first, one) = write(&mut oracle);
    oracle.good(first).unwrap();
    assert!(oracle.read(begun, 0, ONE, &vec![0; 512]).is_ok());
    assert!(oracle.read(begun, 0, ONE, &one).is_ok());
}

#[test]
fn a_write_that_failed_may_be_there_until_the_next() {
    let mut oracle = oracle();
    let (first, one) = write(&mut oracle);
    oracle.over(first);
    let zeros = vec![0; 512];
    assert_eq!(readable(&mut oracle, &[&zeros, &one]), [true, true]);
    let (second, _) = write(&mut oracle);
    oracle.good(second).unwrap();
    assert_eq!(readable(&mut oracle, &[&zeros, &one]), [false, false]);
}

#[test]
fn a_write_without_an_end_may_come_at_any_time() {
    let mut oracle = oracle();
    let (_, one) = write(&mut oracle);
    let (second, _) = write(&mut oracle);
    oracle.good(second).unwrap();
    assert_eq!(readable(&mut oracle, &[&one]), [true]);
}

#[test]
fn nothing_lands_after_its_end() {
    let mut oracle = oracle();
    let zeros = vec![0; 512];
    let (first, one) = write(&mut oracle);
    oracle.landed(0, 3, &zeros, &one).unwrap();
    oracle.over(first);
    oracle.landed(0, 3, &zeros, &one).unwrap_err();
}

#[test]
fn nothing_lands_beside_its_place_or_torn_within_a_block() {
    let mut oracle = oracle();
    let zeros = vec![0; 512];
    let (_, one) = write(&mut oracle);
    oracle.landed(0, 4, &zeros, &one).unwrap_err();
    let mut torn = one.clone();
    torn[256..].fill(0);
    oracle.landed(0, 3, &zeros, &torn).unwrap_err();
    oracle.landed(0, 3, &zeros, &one).unwrap();
}

#[test]
fn memory_takes_part_of_a_block_of_what_is_under_way_only() {
    let mut oracle = Oracle::new(&[Disk::new(DiskKind::Memory, 512, 16)]);
    let zeros = vec![0; 512];
    let (first, one) = write(&mut oracle);
    let mut torn = one.clone();
    torn[256..].fill(0);
    oracle.landed(0, 3, &zeros, &torn).unwrap();
    oracle.over(first);
    let mut more = one.clone();
    more[300..].fill(0);
    oracle.landed(0, 3, &torn, &more).unwrap_err();
}

#[test]
fn what_was_refused_is_not_there() {
    let mut oracle = oracle();
    let zeros = vec![0; 512];
    let (first, one) = write(&mut oracle);
    oracle.refused(first).unwrap();
    oracle.landed(0, 3, &zeros, &one).unwrap_err();
    oracle.good(first).unwrap_err();
    let (second, two) = write(&mut oracle);
    oracle.landed(0, 3, &zeros, &two).unwrap();
    oracle.refused(second).unwrap_err();
}

#[test]
fn zeros_come_from_unmapping_only() {
    let mut oracle = oracle();
    let zeros = vec![0; 512];
    let (first, one) = write(&mut oracle);
    oracle.good(first).unwrap();
    oracle.landed(0, 3, &one, &zeros).unwrap_err();
    let unmapped = oracle.begin(0, Extent::new(0, 16), Pattern::Zeros);
    oracle.landed(0, 3, &one, &zeros).unwrap();
    oracle.good(unmapped).unwrap();
    assert_eq!(readable(&mut oracle, &[&zeros, &one]), [true, false]);
}

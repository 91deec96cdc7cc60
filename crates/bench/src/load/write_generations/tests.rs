//! Blocks as a job that verifies finds them.

use block::lease::BlockLease;
use scsi::medium::{Extent, Lease as _};

use super::WriteGenerations;

const BLOCK: usize = 512;
const EXTENT: Extent = Extent::new(16, 8);

/// A book in whose second place something was written once, and what that was.
fn written(seed: u64, run: u64) -> (WriteGenerations, BlockLease) {
    let mut book = WriteGenerations::new(seed, run, BLOCK as u32, false, 4);
    let mut data = BlockLease::from_bytes(vec![0; 8 * BLOCK]);
    assert!(book.take(1) && !book.take(1));
    book.stamp(1, EXTENT, &mut data);
    book.written(1, true);
    (book, data)
}

#[test]
fn what_was_written_is_right() {
    let (book, data) = written(1, 7);
    assert!(book.is_written(1) && !book.is_written(0));
    assert_eq!(book.check(1, EXTENT, &data), None);
}

#[test]
fn one_byte_is_told_with_its_offset() {
    let (book, mut data) = written(1, 7);
    let at = 3 * BLOCK + 100;
    let mut byte = [0];
    data.copy_out(at, &mut byte);
    data.copy_in(at, &[byte[0] ^ 1]);
    let told = book.check(1, EXTENT, &data).unwrap();
    let offset = format!("offset {} (block 19)", 16 * BLOCK + at);
    assert!(told.contains(&offset), "{told}");
    let found = format!("found {:02x}", byte[0] ^ 1);
    assert!(told.contains(&found), "{told}");
    assert!(told.ends_with("damaged"), "{told}");
}

#[test]
fn data_in_the_wrong_place_is_known() {
    let (book, data) = written(1, 7);
    let told = book.check(1, Extent::new(24, 8), &data).unwrap();
    assert!(told.contains("the data of block 16"), "{told}");
}

#[test]
fn an_older_write_is_known() {
    let (mut book, data) = written(1, 7);
    book.take(1);
    book.written(1, true);
    let told = book.check(1, EXTENT, &data).unwrap();
    assert!(told.contains("write 1 of this block"), "{told}");
    assert!(told.ends_with("not write 2"), "{told}");
}

#[test]
fn what_other_runs_and_seeds_left_is_known() {
    let (book, _) = written(1, 7);
    let (_, earlier) = written(1, 6);
    let told = book.check(1, EXTENT, &earlier).unwrap();
    assert!(told.contains("earlier run"), "{told}");
    let (_, other) = written(2, 7);
    let told = book.check(1, EXTENT, &other).unwrap();
    assert!(told.contains("--randseed 2"), "{told}");
}

#[test]
fn after_a_failed_write_nobody_knows() {
    let (mut book, data) = written(1, 7);
    book.take(1);
    book.written(1, false);
    assert_eq!(book.check(1, EXTENT, &data), None);
    let zeros = BlockLease::from_bytes(vec![0; 8 * BLOCK]);
    assert_eq!(book.check(1, EXTENT, &zeros), None);
}

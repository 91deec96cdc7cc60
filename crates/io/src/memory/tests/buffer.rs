use super::super::{Buffer, ZEROS_MAX};

fn bytes_of(buffer: &Buffer) -> Vec<u8> {
    let mut bytes = Vec::new();
    buffer.append_to(&mut bytes);
    bytes
}

#[test]
fn slices_and_clones_share_the_memory() {
    let buffer = Buffer::from_vec(vec![0; 8]);
    let slice = buffer.clone().slice(2, 4).slice(1, 3);
    slice.copy_in(0, &[1, 2, 3]);
    assert_eq!(bytes_of(&buffer), [0, 0, 0, 1, 2, 3, 0, 0]);
    drop(buffer);
    let mut end = [0; 2];
    slice.copy_out(1, &mut end);
    assert_eq!(end, [2, 3]);
}

#[test]
fn copy_from_and_zero_stay_within_their_range() {
    let buffer = Buffer::from_vec(vec![7; 6]);
    buffer.copy_from(1, &Buffer::from_vec(vec![1, 2, 3]));
    buffer.zero(2, 1);
    assert_eq!(bytes_of(&buffer), [7, 1, 0, 3, 7, 7]);
}

#[test]
fn difference_finds_the_first_byte_in_every_place() {
    let len = 5000;
    let a = Buffer::from_vec(vec![9; len]);
    assert_eq!(a.difference(&Buffer::from_vec(vec![9; len])), None);
    for at in [0, 1, 2047, 2048, 2049, 4096, len - 1] {
        let b = Buffer::from_vec(vec![9; len]);
        b.copy_in(at, &[8]);
        b.copy_in(len - 1, &[8]);
        assert_eq!(a.difference(&b), Some(at));
    }
}

#[test]
fn or_with_combines_all_bytes() {
    let a = Buffer::from_vec((0..5000).map(|at| at as u8).collect());
    let b = Buffer::from_vec(vec![0x80; 5000]);
    a.or_with(&b);
    let expected: Vec<u8> = (0..5000).map(|at| at as u8 | 0x80).collect();
    assert_eq!(bytes_of(&a), expected);
}

#[test]
fn zeros_read_as_zeros() {
    let zeros = Buffer::zeros(ZEROS_MAX);
    assert!(bytes_of(&zeros).iter().all(|byte| *byte == 0));
    let other = Buffer::from_vec(vec![0; ZEROS_MAX]);
    assert_eq!(zeros.difference(&other), None);
}

#[test]
#[should_panic(expected = "only lent for reading")]
fn zeros_are_not_written() {
    Buffer::zeros(512).copy_in(0, &[1]);
}

#[test]
#[should_panic(expected = "3 bytes at 6 of 8")]
fn a_range_past_the_end_is_refused() {
    Buffer::from_vec(vec![0; 8]).copy_out(6, &mut [0; 3]);
}

#[test]
#[should_panic(expected = "bytes at 4 of 8")]
fn a_range_that_overflows_is_refused() {
    let _ = Buffer::from_vec(vec![0; 8]).slice(4, usize::MAX);
}

#[test]
fn an_empty_buffer_is_harmless() {
    let empty = Buffer::from_vec(Vec::new());
    empty.copy_in(0, &[]);
    empty.zero(0, 0);
    assert_eq!(empty.difference(&Buffer::zeros(0)), None);
    assert!(empty.is_empty() && empty.slice(0, 0).is_empty());
}

#[test]
fn same_memory_is_the_same_place_and_length() {
    let whole = Buffer::from_vec(vec![0; 16]);
    assert!(whole.is_same_memory(&whole.clone()));
    assert!(
        whole
            .slice(4, 8)
            .is_same_memory(&whole.slice(2, 14).slice(2, 8))
    );
    assert!(!whole.slice(4, 8).is_same_memory(&whole.slice(4, 7)));
    assert!(!whole.is_same_memory(&Buffer::from_vec(vec![0; 16])));
}

#[test]
fn alignment_is_that_of_the_first_byte() {
    let zeros = Buffer::zeros(4096);
    assert!(zeros.is_aligned(4096));
    assert!(!zeros.slice(8, 8).is_aligned(16));
}

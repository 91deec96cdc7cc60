//! Sizes that round, and sizes that must not.

use super::*;

#[test]
fn sizes_are_read_with_one_decimal() {
    let sizes = [
        (512, "512 B"),
        (1024, "1.0 KiB"),
        (1 << 30, "1.0 GiB"),
        (3 << 29, "1.5 GiB"),
        (50 << 30, "50.0 GiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (u64::MAX, "16.0 EiB"),
    ];
    for (bytes, text) in sizes {
        assert_eq!(human_size(bytes), text);
    }
}

#[test]
fn sizes_that_differ_are_told_apart() {
    let sizes = [
        (0, "0 bytes"),
        (512, "512 bytes"),
        (1025, "1025 bytes"),
        (65 << 20, "65 MiB"),
        ((1 << 30) + 512, "1073742336 bytes"),
        (2 << 50, "2 PiB"),
    ];
    for (bytes, text) in sizes {
        assert_eq!(exact_size(bytes), text);
    }
}

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
    for (octets, text) in sizes {
        assert_eq!(human_size(octets), text);
    }
}

#[test]
fn errors_lose_their_number_and_nothing_else() {
    let pairs = [
        (
            "a: Connection refused (os error 111)",
            "a: Connection refused",
        ),
        ("(os error 2): b (os error 3)\n", "(os error 2): b\n"),
        ("a (os error x) b", "a (os error x) b"),
        ("a (os error ) b", "a (os error ) b"),
        ("a (os error 5", "a (os error 5"),
        ("", ""),
    ];
    for (error, plain) in pairs {
        assert_eq!(without_codes(error), plain);
    }
}

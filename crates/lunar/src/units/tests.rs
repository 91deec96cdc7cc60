use super::*;

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

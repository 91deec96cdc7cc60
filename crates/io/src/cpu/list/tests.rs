use super::*;

fn numbers(text: &str) -> Vec<usize> {
    text.parse::<CpuList>().unwrap().numbers().to_vec()
}

#[test]
fn numbers_and_ranges_keep_their_order() {
    assert_eq!(numbers("3"), [3]);
    assert_eq!(numbers("0,2-5"), [0, 2, 3, 4, 5]);
    assert_eq!(numbers("7,0-1"), [7, 0, 1]);
    assert_eq!(numbers("0-6:2,1"), [0, 2, 4, 6, 1]);
    assert_eq!(numbers("4-4"), [4]);
    assert_eq!(numbers("1023"), [1023]);
}

#[test]
fn a_list_is_shown_as_it_can_be_typed() {
    for list in ["0", "0-1", "0,2-5", "7,0-1", "5,4"] {
        assert_eq!(list.parse::<CpuList>().unwrap().to_string(), list);
    }
    assert_eq!("0-4:2".parse::<CpuList>().unwrap().to_string(), "0,2,4");
}

#[test]
fn what_is_no_list_says_what_is_wrong_with_it() {
    for (list, told) in [
        ("", "\"\" is no list"),
        ("0,,1", "\"\" is no list"),
        ("0,", "\"\" is no list"),
        ("all", "\"all\" is no list"),
        ("-1", "\"-1\" is no list"),
        ("1-", "\"1-\" is no list"),
        ("0 1", "\"0 1\" is no list"),
        ("0x3", "\"0x3\" is no list"),
        ("3:2", "\"3:2\" is no list"),
        ("0-3:0", "\"0-3:0\" is no list"),
        ("99999999999999999999", "is no list"),
        ("5-2", "the range 5-2 of CPUs is empty"),
        ("1024", "CPU 1024 is too high: at most 1023"),
        (
            "0-18446744073709551615",
            "CPU 18446744073709551615 is too high",
        ),
        ("0-3,2", "CPU 2 is listed twice"),
    ] {
        let error = list.parse::<CpuList>().unwrap_err().to_string();
        assert!(error.contains(told), "{list}: {error}");
    }
}

use super::*;

#[test]
fn block_sizes_are_in_fios_words() {
    let words = [512, 4_096, 65_536, 1 << 20, 4_104, 0].map(block_size);
    assert_eq!(words, ["512", "4k", "64k", "1m", "4104", "0"]);
}

#[test]
fn times_change_their_unit_where_they_round_to_1000() {
    let words = [0.0, 850.0, 999.4, 999.6, 12_345.0, 1.234e6, 3.6e12].map(time);
    let told = [
        "0 ns", "850 ns", "999 ns", "1.00 us", "12.3 us", "1.23 ms", "3600 s",
    ];
    assert_eq!(words, told);
}

#[test]
fn thousands_are_grouped() {
    let words = [0.0, 999.0, 1_000.0, 2_893_351.4].map(whole);
    assert_eq!(words, ["0", "999", "1,000", "2,893,351"]);
    assert_eq!([83.46, 4_460.6].map(mb_per_s), ["83.5", "4,461"]);
}

#[test]
fn dates_know_leap_years() {
    let dates = [0, 951_782_399, 951_782_400, 1_709_251_199, 1_795_309_471].map(date);
    let told = [
        "1970-01-01 00:00 UTC",
        "2000-02-28 23:59 UTC",
        "2000-02-29 00:00 UTC",
        "2024-02-29 23:59 UTC",
        "2026-11-22 01:04 UTC",
    ];
    assert_eq!(dates, told);
}

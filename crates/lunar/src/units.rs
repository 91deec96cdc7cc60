//! Sizes and times as people write and read them: sizes k M G T in powers of 1024, times us, ms,
//! s and m.

use std::time::Duration;

const SIZE_LETTERS: [(char, u32); 4] = [('k', 10), ('M', 20), ('G', 30), ('T', 40)];

const TIME_SUFFIXES: [(&str, u64); 4] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
];

/// A size in octets: `512`, `64k`, `1G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = SIZE_LETTERS
        .iter()
        .find_map(|&(letter, shift)| Some((strip_letter(text, letter)?, shift)))
        .unwrap_or((text, 0));
    let number: u64 = digits
        .parse()
        .map_err(|_| "a size is a number and k, M, G or T, such as 64k or 1G".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "a size of 16 EiB and more is too large".to_owned())
}

fn strip_letter(text: &str, letter: char) -> Option<&str> {
    text.strip_suffix(letter)
        .or_else(|| text.strip_suffix(letter.to_ascii_uppercase()))
}

/// A time: `500ms`, `30s`, `2m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let bad = || "a time is a number and us, ms, s or m, such as 30s".to_owned();
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
    let (digits, suffix) = text.split_at(at);
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let (_, micros) = TIME_SUFFIXES
        .iter()
        .find(|(known, _)| *known == suffix)
        .ok_or_else(bad)?;
    let micros = number.checked_mul(*micros).ok_or_else(bad)?;
    Ok(Duration::from_micros(micros))
}

/// A size for people: `1.0 GiB`, `512 B`.
pub(crate) fn human_size(octets: u64) -> String {
    const NAMES: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if octets < 1024 {
        return format!("{octets} B");
    }
    // A size that rounds to 1024.0 of one unit is 1.0 of the next.
    let mut value = octets as f64 / 1024.0;
    let mut names = NAMES.iter();
    let mut name = names.next();
    while value >= 1023.95 {
        let Some(next) = names.next() else { break };
        value /= 1024.0;
        name = Some(next);
    }
    format!("{value:.1} {}", name.unwrap_or(&NAMES[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        let sizes = [
            ("0", 0),
            ("512", 512),
            ("64k", 65_536),
            ("64K", 65_536),
            ("1G", 1 << 30),
        ];
        for (text, octets) in sizes {
            assert_eq!(parse_size(text), Ok(octets), "{text}");
        }
        assert_eq!(parse_size("16383T"), Ok(16_383 << 40));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "G",
            "-1",
            "1.5G",
            "1GiB",
            "1m",
            "1 G",
            "99999999T",
            "0x10",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_need_a_unit() {
        let times = [
            ("250us", 250),
            ("500ms", 500_000),
            ("30s", 30_000_000),
            ("2m", 120_000_000),
        ];
        for (text, micros) in times {
            assert_eq!(
                parse_time(text),
                Ok(Duration::from_micros(micros)),
                "{text}"
            );
        }
        for text in ["", "30", "s", "-1s", "1h", "1.5s", "99999999999999999999s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

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
}

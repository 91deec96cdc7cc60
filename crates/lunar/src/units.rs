//! Sizes, times and errors as people write and read them.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub(crate) use address::human_size;
use address::{ParseError, Size, Time};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use comfy_table::{Table, TableStyle};

/// Parses a number within `range`. The error gives the range, which that of clap does not where the
/// text is not a number.
pub(crate) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("give a number from {} to {}", range.start(), range.end()))
    }
}

/// The words of an option, each with what `--help` says of it, if anything, and what it stands for.
pub(crate) type Choices<T> = [(&'static str, Option<&'static str>, T)];

/// Parses one of several words.
pub(crate) fn choice<T>(choices: &'static Choices<T>) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let known = choices
        .iter()
        .map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(known).map(|typed| {
        let meant = choices.iter().find(|(word, ..)| *word == typed);
        meant.expect("one of the words that are known").2
    })
}

/// A table without frames.
pub(crate) fn bare_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_header(header);
    table
}

/// Its lines, without the blanks at their ends.
pub(crate) fn lines(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim().to_owned() + "\n");
    lines.collect()
}

/// Text of others, with percent codes for its control characters but those to `keep`, which a
/// terminal would obey and a program take for the end of a line.
pub(crate) fn printable(text: &str, keep: &[char]) -> String {
    let mut printable = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() && !keep.contains(&char) {
            printable.push_str(&format!("%{:02X}", u32::from(char)));
        } else {
            printable.push(char);
        }
    }
    printable
}

/// A size in bytes: `512`, `64k`, `1G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let parsed = text.parse().map(|Size(bytes)| bytes);
    parsed.map_err(|error: ParseError| error.one_line())
}

/// A time: `500ms`, `30s`, `2m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().map(|Time(time)| time);
    parsed.map_err(|error: ParseError| error.one_line())
}

/// A time that is not 0.
pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    match parse_time(text)? {
        Duration::ZERO => Err("the time cannot be 0".to_owned()),
        time => Ok(time),
    }
}

/// A number of things: `1 range`, `7 ranges`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// The text without the numbers that Rust adds to errors of the operating system, as in
/// `Connection refused (os error 111)`: the words before them say the same.
pub(crate) fn without_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
        match after.strip_prefix(')') {
            Some(rest) if after.len() < part.len() => plain.push_str(rest),
            _ => plain.extend([" (os error ", part]),
        }
    }
    plain
}

/// A rate.
pub(crate) fn per_second(bytes: u64, time: Duration) -> u64 {
    (bytes as f64 / time.as_secs_f64().max(1e-6)) as u64
}

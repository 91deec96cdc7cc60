//! Sizes, times and errors as people write and read them.

use std::time::Duration;

use engine::address::{ParseError, Size, Time};

/// A size in bytes: `512`, `64k`, `1G`.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(Size(octets)) => Ok(octets),
        Err(error) => Err(ParseError::one_line(&error)),
    }
}

/// A time: `500ms`, `30s`, `2m`.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(Time(time)) => Ok(time),
        Err(error) => Err(ParseError::one_line(&error)),
    }
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

/// A number of things: `1 range`, `7 ranges`.
pub(crate) fn counted(number: usize, what: &str) -> String {
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
pub(crate) fn per_second(octets: u64, time: Duration) -> u64 {
    (octets as f64 / time.as_secs_f64().max(1e-6)) as u64
}

#[cfg(test)]
mod tests;

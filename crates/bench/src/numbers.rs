//! Numbers as people read them, the same in tables, plots and pages.

#[cfg(test)]
mod tests;

/// A block size in fio's way: `512`, `4k`, `1m`.
#[must_use]
pub fn block_size(bytes: u32) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

/// A time with three digits: `850 ns`, `12.3 us`, `1.23 ms`, `3600 s`.
#[must_use]
pub fn time(ns: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")];
    // What rounds to 1000 of a unit is 1.00 of the next one.
    let fits = |(one, _): &&(f64, &str)| ns < one * 999.5;
    let (one, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
    format!("{} {unit}", digits(ns / one))
}

/// Three digits, and no fewer than the whole ones: `1.23`, `12.3`, `1234`.
#[must_use]
pub fn digits(value: f64) -> String {
    match value {
        _ if value == 0.0 || value >= 99.95 => format!("{value:.0}"),
        _ if value >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A number without its fraction, in groups of three: `1,234,567`.
#[must_use]
pub fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Megabytes a second, whole where the fraction says nothing any more: `4,460`, `83.5`.
#[must_use]
pub fn mb_per_s(value: f64) -> String {
    if value >= 999.95 {
        whole(value)
    } else {
        format!("{value:.1}")
    }
}

/// A share of 1 as percent: `97 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What is there, or a dash.
#[must_use]
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// `2026-11-22 01:04 UTC`.
#[must_use]
pub fn date(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The Gregorian date of a day since 1970-01-01. Years are counted from March, so that the day
/// that leap years add is their last; 719,468 days lie between 0000-03-01 and 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

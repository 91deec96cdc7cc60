//! Sizes as people read them, the same in every line of the log and of every verb.

/// A size with one decimal: `1.0 GiB`, `512 B`.
#[must_use]
pub fn human(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // A size that rounds to 1024.0 of one unit is 1.0 of the next.
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A size in the largest unit that tells it exactly: `65 MiB`, `1221 bytes`. For sizes that differ
/// by less than [`human`] shows.
#[must_use]
pub fn exact(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes, "bytes");
    for next in UNITS {
        if value < 1024 || !value.is_multiple_of(1024) {
            break;
        }
        (value, unit) = (value / 1024, next);
    }
    format!("{value} {unit}")
}

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

#[cfg(test)]
mod tests;

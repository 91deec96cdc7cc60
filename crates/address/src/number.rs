//! Numbers with a letter behind them, and sizes as people read them, the same in every line of the
//! log and of every verb.

mod serialized;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{ParseError, SyntaxProblem};
use super::text_piece::{Parsed, TextPiece};

/// A number of bytes: `4096`, `64k`, `1.5G`, `10GiB`. The letters are powers of 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// Bytes a second: `100M`. The letters are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRate(pub u64);

/// A number of things: `10k`. The letters are powers of 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemCount(pub u64);

/// A time in whole microseconds: `5ms`, `30s`, and `30` for seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

impl Size {
    pub(super) fn parse(piece: TextPiece<'_>) -> Parsed<Self> {
        scaled(piece, 1024, "a size", SIZE_HINT).map(Self)
    }

    /// The same, where there must be something.
    pub(super) fn parse_positive(piece: TextPiece<'_>, of: &'static str) -> Parsed<Self> {
        match Self::parse(piece)? {
            Self(0) => Err(piece.fault(SyntaxProblem::Zero(of))),
            size => Ok(size),
        }
    }
}

impl ByteRate {
    pub(super) fn parse(piece: TextPiece<'_>) -> Parsed<Self> {
        match scaled(piece, 1024, "a rate", RATE_HINT)? {
            0 => Err(piece.fault(SyntaxProblem::Zero("a rate"))),
            rate => Ok(Self(rate)),
        }
    }
}

impl ItemCount {
    pub(super) fn parse(piece: TextPiece<'_>) -> Parsed<Self> {
        match scaled(piece, 1000, "a count", COUNT_HINT)? {
            0 => Err(piece.fault(SyntaxProblem::Zero("a count"))),
            count => Ok(Self(count)),
        }
    }
}

impl Time {
    pub(super) fn parse(piece: TextPiece<'_>) -> Parsed<Self> {
        let (number, unit) = digits(piece);
        let number = whole(number, piece, "a time", TIME_HINT)?;
        let name = match unit.text {
            "" => "s",
            name => name,
        };
        let known = UNITS.iter().find(|(unit, _)| *unit == name);
        let Some((_, micros)) = known else {
            return Err(unit.fault(SyntaxProblem::Number {
                expected: "us, ms, s or m",
                hint: TIME_HINT,
            }));
        };
        number
            .checked_mul(*micros)
            .map(|micros| Self(Duration::from_micros(micros)))
            .ok_or_else(|| piece.fault(SyntaxProblem::TooLarge))
    }
}

impl FromStr for Size {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl FromStr for ByteRate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl FromStr for ItemCount {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl FromStr for Time {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(TextPiece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1024)
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1024)
    }
}

impl fmt::Display for ItemCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1000)
    }
}

impl fmt::Display for Time {
    /// In the largest unit that leaves it whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        let (name, unit) = UNITS
            .iter()
            .rfind(|(_, unit)| micros >= *unit && micros % unit == 0)
            .unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", micros / unit)
    }
}

fn scaled(
    piece: TextPiece<'_>,
    base: u64,
    expected: &'static str,
    hint: &'static str,
) -> Parsed<u64> {
    let (number, rest) = digits(piece);
    let number = whole(number, piece, expected, hint)?;
    let (decimals, unit) = match rest.strip_prefix(".") {
        Some(rest) => digits(rest),
        None => rest.split_at(0),
    };
    let has_decimals = unit.text.len() < rest.text.len();
    let Some(power) = power(unit.text, base) else {
        return Err(match unit.text.chars().next() {
            Some(found @ (',' | ')')) => unit.first().fault(SyntaxProblem::Behind(found)),
            _ => unit.fault(SyntaxProblem::Number {
                expected: "k, M, G, T, P or the end of the number",
                hint,
            }),
        });
    };
    let factor = base.pow(power);
    let part = if has_decimals {
        part(decimals.text, factor)
    } else {
        Some(0)
    };
    let part = part.ok_or_else(|| {
        rest.fault(SyntaxProblem::Number {
            expected: "a fraction that gives a whole number",
            hint,
        })
    })?;
    number
        .checked_mul(factor)
        .and_then(|whole| whole.checked_add(part))
        .ok_or_else(|| piece.fault(SyntaxProblem::TooLarge))
}

/// How often the base is multiplied: `G` is 3. For powers of 1024 `GiB` is the same. `GB` is not
/// taken, as it stands for a power of 1000 with some programs and of 1024 with others.
fn power(unit: &str, base: u64) -> Option<u32> {
    let letter = match unit {
        "" => return Some(0),
        "B" if base == 1024 => return Some(0),
        unit if base == 1024 => unit.strip_suffix("iB").unwrap_or(unit),
        unit => unit,
    };
    let at = LETTERS.iter().position(|l| l.eq_ignore_ascii_case(letter));
    at.and_then(|at| u32::try_from(at + 1).ok())
}

/// The decimals of a number, times a factor, where that is a whole number.
fn part(decimals: &str, factor: u64) -> Option<u64> {
    let scale = 10_u128.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let product = decimals.parse::<u128>().ok()?.checked_mul(factor.into())?;
    match product % scale {
        0 => u64::try_from(product / scale).ok(),
        _ => None,
    }
}

/// The digits that a piece begins with, and the rest.
fn digits(piece: TextPiece<'_>) -> (TextPiece<'_>, TextPiece<'_>) {
    let end = piece.text.find(|c: char| !c.is_ascii_digit());
    piece.split_at(end.unwrap_or(piece.text.len()))
}

fn whole(
    number: TextPiece<'_>,
    piece: TextPiece<'_>,
    expected: &'static str,
    hint: &'static str,
) -> Parsed<u64> {
    if number.is_empty() {
        return Err(piece.fault(SyntaxProblem::Number { expected, hint }));
    }
    number
        .text
        .parse()
        .map_err(|_| piece.fault(SyntaxProblem::TooLarge))
}

fn write_scaled(f: &mut fmt::Formatter<'_>, number: u64, base: u64) -> fmt::Result {
    let (mut number, mut letter) = (number, "");
    for next in LETTERS {
        if number == 0 || number % base != 0 {
            break;
        }
        (number, letter) = (number / base, next);
    }
    write!(f, "{number}{letter}")
}

const LETTERS: [&str; 5] = ["k", "M", "G", "T", "P"];
const UNITS: [(&str, u64); 4] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
];
const SIZE_HINT: &str = "write bytes, or k, M, G, T, P for powers of 1024, as in 1.5G or 1536MiB";
const RATE_HINT: &str = "write bytes a second, or k, M, G, T, P for powers of 1024, as in 100M";
const COUNT_HINT: &str = "write a number, or k, M, G, T, P for powers of 1000, as in 10k";
const TIME_HINT: &str = "write a whole number of seconds, or one with us, ms, s or m, as in 5ms";

/// A size with one decimal: `1.0 GiB`, `512 B`.
#[must_use]
pub fn human_size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    // A size that rounds to 1024.0 of one unit is 1.0 of the next.
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < SIZE_UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", SIZE_UNITS[unit])
}

/// A size in the largest unit that tells it exactly: `65 MiB`, `1221 bytes`. For sizes that differ
/// by less than [`human_size`] shows.
#[must_use]
pub fn exact_size(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes, "bytes");
    for next in SIZE_UNITS {
        if value < 1024 || !value.is_multiple_of(1024) {
            break;
        }
        (value, unit) = (value / 1024, next);
    }
    format!("{value} {unit}")
}

const SIZE_UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

#[cfg(test)]
mod tests;

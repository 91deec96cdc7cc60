//! Numbers with a letter behind them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::{ParseError, Problem};
use super::parse::first;
use super::piece::{Parsed, Piece};

/// A number of octets: `4096`, `64k`, `10G`. The letters are powers of 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// Octets a second: `100M`. The letters are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

/// A number of things: `10k`. The letters are powers of 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

/// A time in whole microseconds: `5ms`, `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

impl Size {
    pub(super) fn parse(piece: Piece<'_>) -> Parsed<Self> {
        scaled(piece, 1024, "a size", SIZE_HINT).map(Self)
    }

    /// The same, where there must be something.
    pub(super) fn parse_positive(piece: Piece<'_>, of: &'static str) -> Parsed<Self> {
        match Self::parse(piece)? {
            Self(0) => Err(piece.fault(Problem::Zero(of))),
            size => Ok(size),
        }
    }
}

impl Rate {
    pub(super) fn parse(piece: Piece<'_>) -> Parsed<Self> {
        match scaled(piece, 1024, "a rate", RATE_HINT)? {
            0 => Err(piece.fault(Problem::Zero("a rate"))),
            rate => Ok(Self(rate)),
        }
    }
}

impl Count {
    pub(super) fn parse(piece: Piece<'_>) -> Parsed<Self> {
        match scaled(piece, 1000, "a count", COUNT_HINT)? {
            0 => Err(piece.fault(Problem::Zero("a count"))),
            count => Ok(Self(count)),
        }
    }
}

impl Time {
    pub(super) fn parse(piece: Piece<'_>) -> Parsed<Self> {
        let (number, unit) = digits(piece);
        let number = whole(number, piece, "a time", TIME_HINT)?;
        let micros = UNITS
            .iter()
            .find(|(name, _)| *name == unit.text)
            .map(|(_, micros)| *micros)
            .ok_or_else(|| {
                unit.fault(Problem::Number {
                    expected: "us, ms, s or m",
                    hint: TIME_HINT,
                })
            })?;
        number
            .checked_mul(micros)
            .map(|micros| Self(Duration::from_micros(micros)))
            .ok_or_else(|| piece.fault(Problem::TooLarge))
    }
}

impl FromStr for Size {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(Piece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl FromStr for Time {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(Piece::new(text)).map_err(|fault| ParseError::new(text, fault))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1024)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, 1024)
    }
}

impl fmt::Display for Count {
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

fn scaled(piece: Piece<'_>, base: u64, expected: &'static str, hint: &'static str) -> Parsed<u64> {
    let (number, letter) = digits(piece);
    let number = whole(number, piece, expected, hint)?;
    let wrong_letter = || match letter.text.chars().next() {
        Some(found @ (',' | ')')) => first(letter).fault(Problem::Behind(found)),
        _ => letter.fault(Problem::Number {
            expected: "k, M, G, T or the end of the number",
            hint,
        }),
    };
    let power = match letter.text {
        "" => 0,
        one => {
            1 + LETTERS
                .iter()
                .position(|l| l.eq_ignore_ascii_case(one))
                .ok_or_else(wrong_letter)?
        }
    };
    u32::try_from(power)
        .ok()
        .and_then(|power| base.checked_pow(power))
        .and_then(|factor| number.checked_mul(factor))
        .ok_or_else(|| piece.fault(Problem::TooLarge))
}

/// The digits that a piece begins with, and the rest.
fn digits(piece: Piece<'_>) -> (Piece<'_>, Piece<'_>) {
    let end = piece.text.find(|c: char| !c.is_ascii_digit());
    piece.split_at(end.unwrap_or(piece.text.len()))
}

fn whole(
    number: Piece<'_>,
    piece: Piece<'_>,
    expected: &'static str,
    hint: &'static str,
) -> Parsed<u64> {
    if number.is_empty() {
        return Err(piece.fault(Problem::Number { expected, hint }));
    }
    number
        .text
        .parse()
        .map_err(|_| piece.fault(Problem::TooLarge))
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

const LETTERS: [&str; 4] = ["k", "M", "G", "T"];
const UNITS: [(&str, u64); 4] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
];
const SIZE_HINT: &str = "write whole octets, or k, M, G, T for powers of 1024, as in 1536M";
const RATE_HINT: &str = "write octets a second, or k, M, G, T for powers of 1024, as in 100M";
const COUNT_HINT: &str = "write a whole number, or k, M, G, T for powers of 1000, as in 10k";
const TIME_HINT: &str = "write a whole number and us, ms, s or m, as in 5ms";

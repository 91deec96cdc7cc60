//! Text of login and text PDUs: key=value pairs and the forms of their values (RFC 7143 §6.1).

#[cfg(test)]
mod tests;

/// The longest key-name, in bytes.
pub const MAX_KEY: usize = 63;

/// The longest simple value, in bytes.
pub const MAX_VALUE: usize = 255;

/// The most text that one side may send before the other answers. §6.1 asks for at least 8,192
/// bytes, and for 65,536 only with authentication methods that are not offered here.
pub const MAX_TEXT: usize = 16_384;

/// What makes a text unusable. None of these can be answered by key, as the key is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedText {
    /// More bytes than [`MAX_TEXT`].
    #[error("text that does not end")]
    TooLong,
    /// The last pair has no null delimiter.
    #[error("a key=value pair without its terminating null")]
    Unterminated,
    /// A pair without `=`.
    #[error("a key without a value")]
    NoValue,
    /// Not a key-name: empty, over [`MAX_KEY`] bytes, or of other characters.
    #[error("an invalid key name")]
    BadKey,
    /// The value is not UTF-8.
    #[error("a value that is not UTF-8")]
    NotUtf8,
}

/// One key=value pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// A key-name: 1 to [`MAX_KEY`] ASCII characters.
    pub key: &'a str,
    /// Everything after the first `=`; any UTF-8 without null.
    pub value: &'a str,
}

/// Splits a whole logical text data segment into its pairs. Superfluous nulls are passed over,
/// as some initiators count their padding as data.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Vec<KeyValue<'_>>, MalformedText> {
    let Some((last, terminated)) = bytes.split_last() else {
        return Ok(Vec::new());
    };
    if *last != 0 {
        return Err(MalformedText::Unterminated);
    }
    terminated
        .split(|byte| *byte == 0)
        .filter(|pair| !pair.is_empty())
        .map(pair)
        .collect()
}

/// A key ends at the first byte that cannot be of one, which has to be the `=`.
fn pair(bytes: &[u8]) -> Result<KeyValue<'_>, MalformedText> {
    let end = bytes.iter().position(|byte| !is_of_key(*byte));
    let (key, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
    let [b'=', value @ ..] = rest else {
        let has_value = rest.contains(&b'=');
        return Err(if has_value {
            MalformedText::BadKey
        } else {
            MalformedText::NoValue
        });
    };
    Ok(KeyValue {
        key: key_name(key).ok_or(MalformedText::BadKey)?,
        value: std::str::from_utf8(value).map_err(|_| MalformedText::NotUtf8)?,
    })
}

/// §6.1 knows no `#`, which `X#NodeArchitecture` (§13.26) has.
const fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+' | b'@' | b'_' | b'#')
}

/// §6.1 wants a capital letter first, which `iSCSIProtocolLevel` (RFC 7144) has not.
fn key_name(bytes: &[u8]) -> Option<&str> {
    let first = bytes.first()?;
    if bytes.len() > MAX_KEY || !first.is_ascii_alphabetic() {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Text that comes in several PDUs, the C bit set in all but the last.
#[derive(Debug, Default)]
pub struct Assembly {
    bytes: Vec<u8>,
}

impl Assembly {
    /// Takes the data segment of one PDU.
    ///
    /// # Errors
    /// [`MalformedText::TooLong`]; what was held is dropped.
    pub fn push(&mut self, data: &[u8]) -> Result<(), MalformedText> {
        if self.bytes.len() + data.len() > MAX_TEXT {
            self.bytes = Vec::new();
            return Err(MalformedText::TooLong);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// The whole, after the PDU whose C bit is 0; the next text starts empty.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Text on its way out, written pair by pair and sent in as many PDUs as it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    bytes: Vec<u8>,
    sent: usize,
}

impl Text {
    /// Appends a pair. `value` must hold no null; ours never do, and those of peers cannot.
    pub fn put(&mut self, key: &str, value: &str) {
        if self.is_empty() {
            // A negotiation may go on for as long as its initiator likes.
            self.bytes.clear();
            self.sent = 0;
        }
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.push(b'=');
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
    }

    /// Whether nothing is left to be sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// What the next PDU carries, at most `limit` bytes, and whether more follows (the C bit).
    pub fn next_segment(&mut self, limit: u32) -> (&[u8], bool) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let end = self.bytes.len().min(self.sent.saturating_add(limit));
        let segment = self.bytes.get(self.sent..end).unwrap_or_default();
        self.sent = end;
        (segment, end < self.bytes.len())
    }
}

/// A boolean-value.
#[must_use]
pub fn boolean(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

/// How a boolean-value is written.
#[must_use]
pub const fn yes_no(value: bool) -> &'static str {
    if value { "Yes" } else { "No" }
}

/// A numerical-value: a decimal-constant (no leading zeros) or a hex-constant, below 2^64.
#[must_use]
pub fn number(value: &str) -> Option<u64> {
    if let Some(digits) = hex_digits(value) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (value.starts_with('0') && value != "0") {
        return None;
    }
    value.parse().ok()
}

/// A binary-value of at most `limit` bytes, as a hex-constant or a base64-constant. (A
/// decimal-constant has no implicit length, and no key here gives it one.)
#[must_use]
pub fn binary(value: &str, limit: usize) -> Option<Vec<u8>> {
    let bytes = match hex_digits(value) {
        Some(digits) => from_hex(digits)?,
        None => from_base64(prefixed(value, 'b')?)?,
    };
    (bytes.len() <= limit).then_some(bytes)
}

/// A hex-constant.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 + 2 * bytes.len());
    out.push_str("0x");
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
    }
    out
}

/// The hexadecimal digits of a hex-constant: one or more.
fn hex_digits(value: &str) -> Option<&str> {
    let digits = prefixed(value, 'x')?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then_some(digits)
}

fn prefixed(value: &str, letter: char) -> Option<&str> {
    let rest = value.strip_prefix('0')?;
    let digits = rest.strip_prefix([letter, letter.to_ascii_uppercase()])?;
    (!digits.is_empty()).then_some(digits)
}

/// An odd number of digits stands for (n + 1) / 2 bytes, the first with one digit.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| {
        char::from(digit)
            .to_digit(16)
            .and_then(|v| u8::try_from(v).ok())
    };
    let (first, pairs) = digits.as_bytes().split_at(digits.len() % 2);
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
    if let [digit] = first {
        bytes.push(value(*digit)?);
    }
    for pair in pairs.chunks_exact(2) {
        let [high, low] = pair else { return None };
        bytes.push(value(*high)? << 4 | value(*low)?);
    }
    Some(bytes)
}

/// RFC 4648 §4, with padding and without stray bits.
fn from_base64(digits: &str) -> Option<Vec<u8>> {
    let body = digits.trim_end_matches('=');
    let padding = digits.len() - body.len();
    if !digits.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    for group in body.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            bits = bits << 6 | base64_digit(*digit)?;
        }
        let spare = 6 * (4 - u32::try_from(group.len()).ok()?);
        let [_, decoded @ ..] = (bits << spare).to_be_bytes();
        let (kept, rest) = decoded.split_at_checked(group.len() * 6 / 8)?;
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn base64_digit(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

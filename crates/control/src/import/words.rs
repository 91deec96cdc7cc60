//! Lines and words, which four of the formats are made of.

use zeroize::Zeroizing;

/// A line without its comment; lines that end with a backslash are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The number of its first line, from 1.
    pub(super) number: usize,
    /// Its text, without spaces around it; never empty.
    pub(super) text: String,
}

/// Where a `#` begins a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comments {
    /// At the beginning of a line.
    WholeLines,
    /// Behind white space too, outside of quotes.
    Anywhere,
}

/// The lines of a text that say something.
pub(super) fn lines(text: &str, comments: Comments) -> Vec<Line> {
    let mut all = Vec::new();
    let mut open: Option<Line> = None;
    for (line, number) in text.lines().zip(1..) {
        let line = without_comment(line, comments).trim();
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line.trim_end(), true),
            None => (line, false),
        };
        let mut joined = open.take().unwrap_or(Line {
            number,
            text: String::new(),
        });
        if !joined.text.is_empty() && !line.is_empty() {
            joined.text.push(' ');
        }
        joined.text.push_str(line);
        if goes_on {
            open = Some(joined);
        } else if !joined.text.is_empty() {
            all.push(joined);
        }
    }
    all.extend(open.filter(|line| !line.text.is_empty()));
    all
}

fn without_comment(line: &str, comments: Comments) -> &str {
    if line.trim_start().starts_with('#') {
        return "";
    }
    if comments == Comments::WholeLines {
        return line;
    }
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = c;
    }
    line
}

/// The words of a line; quotes hold one together, and are not part of it.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, behind) = match first {
            '"' | '\'' => match rest[1..].split_once(first) {
                Some((word, behind)) => (word, behind),
                None => (&rest[1..], ""),
            },
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        all.push(word.to_owned());
        rest = behind.trim_start();
    }
    all
}

/// The first word of a line, and what follows it.
pub(super) fn key_and_rest(text: &str) -> (&str, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    (key, rest.trim())
}

/// A line as the list of what is left out shows it: what follows a word behind which a secret may
/// stand is not shown. Such a word may have been broken in two.
pub(super) fn shown(text: &str) -> String {
    let is_inner = |c: char| "\"':".contains(c);
    let (mut from, mut before) = (0, "");
    for word in text.split_inclusive(|c: char| c.is_whitespace() || c == '=') {
        let mut parts = word
            .split(is_inner)
            .map(|part| part.trim_end_matches([' ', '\t', '=']));
        let first = parts
            .clone()
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        let is_last = text.len() == from + word.len() && first == word;
        let is_broken = || has_secret(&format!("{before}{first}"));
        if !is_last && (has_secret(word.trim()) || parts.any(has_secret) || is_broken()) {
            return format!("{}{first} ***", &text[..from]);
        }
        before = first;
        from += word.len();
    }
    text.to_owned()
}

/// Whether a key may have a secret behind it; one that is misspelt has.
pub(super) fn has_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let contains = ["user", "chap", "secret", "password"]
        .iter()
        .any(|word| key.contains(word));
    let is_short = key.len() <= SECRET_KEY_BYTES;
    contains || (is_short && address::nearest(&key, SECRET_KEYS.iter().copied()).is_some())
}

/// The longest word that is compared with all keys.
const SECRET_KEY_BYTES: usize = 32;

const SECRET_KEYS: &[&str] = &[
    "auth_chap_initiator",
    "auth_chap_target",
    "chap",
    "chap-mutual",
    "chap_mutual_password",
    "chap_password",
    "disc_auth_chap_initiator",
    "disc_auth_chap_target",
    "discovery_mutual_password",
    "discovery_password",
    "incomingdiscoveryuser",
    "incominguser",
    "mutual-secret",
    "outgoingdiscoveryuser",
    "outgoinguser",
    "secret",
];

/// A user and a secret, as `IncomingUser` and its like have them.
pub(super) fn user_and_secret(text: &str) -> Option<(String, Zeroizing<String>)> {
    let mut words = words(text).into_iter();
    match (words.next(), words.next(), words.next()) {
        (Some(user), Some(secret), None) => Some((user, Zeroizing::new(secret))),
        _ => None,
    }
}

/// A number of bytes with a letter for a power of 1024: `128MB`, `4G`, `4GiB`, `1024`.
pub(super) fn size(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim().to_ascii_lowercase();
    let letter = unit
        .strip_suffix("ib")
        .or_else(|| unit.strip_suffix('b'))
        .unwrap_or(&unit);
    let power = match letter {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

/// What the formats write for yes and no.
pub(super) fn flag(text: &str) -> Option<bool> {
    let word = text.to_ascii_lowercase();
    match &*word {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

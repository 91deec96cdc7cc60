//! Words of others inside markup.

#[cfg(test)]
mod tests;

/// Text as markup, good for content and for attributes in double quotes. Characters that XML
/// cannot hold become U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            '\'' => markup.push_str("&#39;"),
            '\n' | '\t' => markup.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => markup.push('\u{fffd}'),
            c => markup.push(c),
        }
    }
    markup
}

/// A file's name as a relative reference: RFC 3986 §3.3 with all but unreserved characters encoded.
/// The leading `./` keeps a colon from naming a scheme.
pub(super) fn reference(name: &str) -> String {
    let mut reference = "./".to_owned();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            reference.push(char::from(byte));
        } else {
            reference.push_str(&format!("%{byte:02X}"));
        }
    }
    reference
}

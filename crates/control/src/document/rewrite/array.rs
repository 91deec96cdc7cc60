//! A list with other elements, in which those that stay keep their lines and comments.

use toml_edit::{Array, Decor, RawString, Value};

use super::{plain, text_of};

/// An element with the text around it.
struct Element {
    value: Value,
    /// What it says, in the words of this program.
    says: Value,
    /// From the start of its line, or from the comma before it.
    lead: String,
    /// The rest of its line behind the comma: its comment.
    comment: String,
}

/// Makes `written` have the elements of `new`, in their order. It says what `old` does, whose
/// elements are as this program writes them.
pub(super) fn merge(written: &mut Array, old: Option<&Array>, new: &Array) {
    if written.to_string().contains('\n') {
        merge_lines(written, old, new);
    } else {
        let (decor, old) = (written.decor().clone(), taken_apart(written, old).1);
        *written = new.iter().map(|value| as_written(&old, value)).collect();
        *written.decor_mut() = decor;
    }
}

/// A value as it was written, if it was there.
fn as_written(old: &[Element], value: &Value) -> Value {
    let known = old.iter().find(|one| one.is(value));
    let mut value = known.map_or_else(|| plain(value), |one| one.value.clone());
    value.decor_mut().clear();
    value
}

fn merge_lines(written: &mut Array, old: Option<&Array>, new: &Array) {
    let (opening, mut old, closing) = taken_apart(written, old);
    let indent = old.first().map_or("\n  ", |first| &first.lead).to_owned();
    let mut left_over = opening;
    let has_comma = written.trailing_comma();
    written.clear();
    for value in new {
        let element = match old.iter().position(|one| one.is(value)) {
            Some(at) => old.remove(at),
            None => changed(&mut old, value, new).unwrap_or_else(|| Element {
                value: plain(value),
                says: value.clone(),
                lead: own_line(&indent),
                comment: String::new(),
            }),
        };
        let mut value = element.value;
        let suffix = value.decor().suffix().cloned().unwrap_or_default();
        *value.decor_mut() = Decor::new(left_over + &element.lead, suffix);
        written.push_formatted(value);
        left_over = element.comment;
    }
    written.set_trailing(left_over + &closing);
    written.set_trailing_comma(has_comma || !written.is_empty());
}

/// The element that is about the same as a new one, which takes its line with the comments.
fn changed(old: &mut Vec<Element>, value: &Value, new: &Array) -> Option<Element> {
    let is_about = |one: &Element| {
        subject(&one.says) == subject(value) && !new.iter().any(|other| one.is(other))
    };
    let at = old.iter().position(is_about)?;
    let value = plain(value);
    Some(Element {
        value,
        ..old.remove(at)
    })
}

/// What an element is about: a text itself, a table by the address in it.
fn subject(value: &Value) -> Option<&str> {
    let table = value.as_inline_table();
    let address = table.and_then(|table| table.get("address"));
    address.unwrap_or(value).as_str()
}

impl Element {
    fn is(&self, value: &Value) -> bool {
        text_of(&self.says) == text_of(value)
    }
}

/// What follows the bracket on its line, the elements, and what is before the closing bracket.
fn taken_apart(written: &Array, old: Option<&Array>) -> (String, Vec<Element>, String) {
    let old = old.filter(|old| old.len() == written.len());
    let text = |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or("").to_owned();
    let (mut opening, mut elements): (_, Vec<Element>) = (String::new(), Vec::new());
    for (at, value) in written.iter().enumerate() {
        let prefix = text(value.decor().prefix());
        let (comment, lead) = split(&prefix);
        match elements.last_mut() {
            Some(last) => last.comment = comment,
            None => opening = comment,
        }
        elements.push(Element {
            value: value.clone(),
            says: old.and_then(|old| old.get(at)).unwrap_or(value).clone(),
            lead,
            comment: String::new(),
        });
    }
    let (comment, closing) = split(&text(Some(written.trailing())));
    match elements.last_mut() {
        Some(last) => last.comment = comment,
        None => opening = comment,
    }
    (opening, elements, closing)
}

/// A text between two elements: what belongs to the line of the first, and what to the second.
fn split(between: &str) -> (String, String) {
    match between.find('\n') {
        Some(at) => (between[..at].to_owned(), between[at..].to_owned()),
        None => (String::new(), between.to_owned()),
    }
}

/// The indentation without the comments that stand above the element it was taken from.
fn own_line(lead: &str) -> String {
    let last = lead.rfind('\n').map_or(lead, |at| &lead[at..]);
    last.to_owned()
}

#[cfg(test)]
mod tests;

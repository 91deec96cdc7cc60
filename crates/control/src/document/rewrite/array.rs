//! A list with other elements, in which those that stay keep their lines and comments.

use toml_edit::{Array, Decor, RawString, Value};

use super::{plain, text_of};

/// An element with the text around it.
struct Element {
    value: Value,
    /// From the start of its line, or from the comma before it.
    lead: String,
    /// The rest of its line behind the comma: its comment.
    comment: String,
}

/// Makes `written` have the elements of `new`, in their order.
pub(super) fn merge(written: &mut Array, new: &Array) {
    if written.to_string().contains('\n') {
        merge_lines(written, new);
    } else {
        let decor = written.decor().clone();
        *written = new.iter().map(plain).collect();
        *written.decor_mut() = decor;
    }
}

fn merge_lines(written: &mut Array, new: &Array) {
    let (opening, mut old, closing) = taken_apart(written);
    let indent = old.first().map_or("\n  ", |first| &first.lead).to_owned();
    let mut left_over = opening;
    let has_comma = written.trailing_comma();
    written.clear();
    for value in new {
        let at = old
            .iter()
            .position(|one| text_of(&one.value) == text_of(value));
        let element = at.map_or_else(
            || Element {
                value: plain(value),
                lead: own_line(&indent),
                comment: String::new(),
            },
            |at| old.remove(at),
        );
        let mut value = element.value;
        let suffix = value.decor().suffix().cloned().unwrap_or_default();
        *value.decor_mut() = Decor::new(left_over + &element.lead, suffix);
        written.push_formatted(value);
        left_over = element.comment;
    }
    written.set_trailing(left_over + &closing);
    written.set_trailing_comma(has_comma || !written.is_empty());
}

/// What follows the bracket on its line, the elements, and what is before the closing bracket.
fn taken_apart(written: &Array) -> (String, Vec<Element>, String) {
    let text = |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or("").to_owned();
    let (mut opening, mut elements): (_, Vec<Element>) = (String::new(), Vec::new());
    for value in written {
        let prefix = text(value.decor().prefix());
        let (comment, lead) = split(&prefix);
        match elements.last_mut() {
            Some(last) => last.comment = comment,
            None => opening = comment,
        }
        elements.push(Element {
            value: value.clone(),
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

//! The parser and serde_json read the same texts the same.

use proptest::prelude::*;
use serde_json::Value;

use super::{Json, Kind, parse};

fn plain(json: &Json) -> Value {
    match &json.kind {
        Kind::Null => Value::Null,
        Kind::Bool(flag) => Value::Bool(*flag),
        Kind::Number(text) => serde_json::from_str(text).unwrap(),
        Kind::Text(text) => Value::String(text.clone()),
        Kind::Array(items) => items.iter().map(plain).collect(),
        Kind::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.clone(), plain(value)));
            Value::Object(fields.collect())
        }
    }
}

#[test]
fn values_know_their_lines() {
    let json = parse("{\n\"a\": [\n1,\n\n\"\\u00e9\\ud83d\\ude00\\n\"\n]}").unwrap();
    let (_, list) = &json.fields().unwrap()[0];
    let lines: Vec<_> = list.items().unwrap().iter().map(|item| item.line).collect();
    assert_eq!((json.line, list.line, lines), (1, 2, vec![3, 5]));
    assert_eq!(list.items().unwrap()[1].text().as_deref(), Some("é😀\n"));
}

#[test]
fn what_is_no_json_is_refused() {
    let said = [
        "{",
        "[1,]",
        "{\"a\":}",
        "{a: 1}",
        "\"\\x\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "nul",
        "1e",
        "-",
        "01x",
        "\"a\nb\"",
        "[1 2]",
        "{} {}",
        "1.",
    ];
    let said = said.map(|text| format!("{text:?}: {}", parse(text).unwrap_err()));
    insta::assert_snapshot!(said.join("\n"));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_writes_is_read(value in any_value(), pretty: bool) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(plain(&parse(&text).unwrap()), value);
    }

    #[test]
    fn what_serde_refuses_is_refused(text in "[\\[\\]{}\",:0-9a-z\\\\ .e-]{0,12}") {
        if serde_json::from_str::<Value>(&text).is_err() {
            // Numbers may have zeros in front, and signs where Rust has them.
            let lenient = text.contains(|c: char| c.is_ascii_digit());
            prop_assert!(lenient || parse(&text).is_err(), "{}", text);
        }
    }
}

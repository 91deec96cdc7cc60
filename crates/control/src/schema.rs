//! Schemas of values whose text is not that of their type, for the description of the API.

use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A number with a letter behind it or without.
pub(crate) struct Quantity;

/// A time: a number with a unit behind it, or one of seconds.
pub(crate) struct TimeSpan;

/// A number that is the key of an object.
pub(crate) struct NumberKey;

/// A text of this form, or a number without a unit.
fn text_or_number(form: &str) -> RefOr<Schema> {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(form));
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0));
    AnyOfBuilder::new().item(text).item(number).into()
}

impl PartialSchema for Quantity {
    fn schema() -> RefOr<Schema> {
        text_or_number("A number and a letter: `4096`, `64k`, `1.5G`")
    }
}

impl ToSchema for Quantity {}

impl PartialSchema for TimeSpan {
    fn schema() -> RefOr<Schema> {
        text_or_number("A number and a unit, us, ms, s or m: `250ms`")
    }
}

impl ToSchema for TimeSpan {}

impl PartialSchema for NumberKey {
    fn schema() -> RefOr<Schema> {
        let key = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(0|[1-9][0-9]{0,4})$"));
        key.into()
    }
}

impl ToSchema for NumberKey {}

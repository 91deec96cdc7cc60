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

impl PartialSchema for Quantity {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A number and a letter: `4096`, `64k`, `1.5G`"));
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0));
        AnyOfBuilder::new().item(text).item(number).into()
    }
}

impl ToSchema for Quantity {}

impl PartialSchema for TimeSpan {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A number and a unit, us, ms, s or m: `250ms`"));
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0));
        AnyOfBuilder::new().item(text).item(seconds).into()
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

//! Tables of a document, and objects of JSON, as rows. A list in their place is refused: serde
//! would take it for the values of a row, in the order in which this program declares them.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A row.
pub(super) fn row<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Table::deserialize(from).map(|Table(row)| row)
}

/// A row that may be missing.
pub(super) fn optional<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let row = Option::<Table<T>>::deserialize(from)?;
    Ok(row.map(|Table(row)| row))
}

/// Rows by their names.
pub(super) fn by_name<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let rows = BTreeMap::<String, Table<T>>::deserialize(from)?;
    Ok(rows
        .into_iter()
        .map(|(name, Table(row))| (name, row))
        .collect())
}

struct Table<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Table<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TableVisitor(PhantomData))
    }
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
    type Value = Table<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Table<T>, M::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Table)
    }
}

#[cfg(test)]
mod tests;

//! Rows are tables of a document, and objects of JSON. A list in their place is refused: serde
//! would take it for the values of a row, in the order in which this program declares them.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use super::{
    ApiRow, ChapRow, DaemonRow, DiscoveryRow, GroupRow, LimitRow, LoginRow, SwitchRow, TargetRow,
    TlsRow, Tree, VolumeRow,
};

/// What serde has derived for a row stands beside its traits (`remote = "Self"`), and is called by
/// them.
macro_rules! tables {
    ($($row:ident),+) => {
        $(impl<'de> Deserialize<'de> for $row {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Row;

                impl<'de> Visitor<'de> for Row {
                    type Value = $row;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a table")
                    }

                    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<$row, M::Error> {
                        $row::deserialize(MapAccessDeserializer::new(map))
                    }
                }

                from.deserialize_map(Row)
            }
        }

        impl Serialize for $row {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, to)
            }
        })+
    };
}

tables!(
    Tree,
    DaemonRow,
    ApiRow,
    TlsRow,
    DiscoveryRow,
    VolumeRow,
    LimitRow,
    GroupRow,
    ChapRow,
    TargetRow,
    LoginRow,
    SwitchRow
);

#[cfg(test)]
mod tests;

//! Where a target is reached, as it is written: portals in portal groups.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::portal_iser::PortalIser;
use super::{PortalGroupTag, is_default};
use crate::schema::NumberKey;

/// The portals of a target, in portal groups.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Portals {
    /// Portal group 1.
    One(Vec<PortalRow>),
    /// Portal groups by their tags.
    #[schema(value_type = BTreeMap<NumberKey, Vec<PortalRow>>)]
    Groups(BTreeMap<PortalGroupTag, Vec<PortalRow>>),
}

/// A portal. One that is only an address is written as that.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "WrittenPortal")]
pub struct PortalRow {
    /// `HOST[:PORT]`, or `fcoe:IFACE`.
    pub address: String,
    /// What carries iSER there, beside iSCSI.
    pub iser: PortalIser,
}

/// A portal: its address, or a table.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum WrittenPortal {
    /// `HOST[:PORT]`, or `fcoe:IFACE`.
    Address(String),
    /// An address, and what is taken there.
    Table(PortalTable),
}

/// A portal with what is taken there.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct PortalTable {
    /// `HOST[:PORT]`.
    address: String,
    /// What carries iSER there, beside iSCSI.
    #[serde(default, skip_serializing_if = "is_default")]
    iser: PortalIser,
}

impl Default for Portals {
    fn default() -> Self {
        Self::One(Vec::new())
    }
}

impl Portals {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Each portal with the tag of its group.
    pub fn iter(&self) -> impl Iterator<Item = (PortalGroupTag, &PortalRow)> {
        let (one, groups) = match self {
            Self::One(portals) => (Some((PortalGroupTag(1), portals)), None),
            Self::Groups(groups) => (None, Some(groups)),
        };
        let groups = groups.into_iter().flatten().map(|(tag, all)| (*tag, all));
        one.into_iter()
            .chain(groups)
            .flat_map(|(tag, portals)| portals.iter().map(move |one| (tag, one)))
    }
}

impl From<&str> for PortalRow {
    fn from(address: &str) -> Self {
        address.to_owned().into()
    }
}

impl From<String> for PortalRow {
    fn from(address: String) -> Self {
        Self {
            address,
            iser: PortalIser::None,
        }
    }
}

impl From<PortalRow> for WrittenPortal {
    fn from(PortalRow { address, iser }: PortalRow) -> Self {
        if iser.is_taken() {
            Self::Table(PortalTable { address, iser })
        } else {
            Self::Address(address)
        }
    }
}

/// By hand, so that what is wrong within a portal is told with its place.
impl<'de> Deserialize<'de> for Portals {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = Portals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_LIST)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Portals, A::Error> {
                let mut all = Vec::new();
                while let Some(portal) = list.next_element()? {
                    all.push(portal);
                }
                Ok(Portals::One(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, groups: A) -> Result<Portals, A::Error> {
                BTreeMap::deserialize(MapAccessDeserializer::new(groups)).map(Portals::Groups)
            }
        }

        from.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for PortalRow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl<'de> Visitor<'de> for Any {
            type Value = PortalRow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(A_PORTAL)
            }

            fn visit_str<E: Error>(self, address: &str) -> Result<PortalRow, E> {
                Ok(address.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<PortalRow, A::Error> {
                let table = PortalTable::deserialize(MapAccessDeserializer::new(table))?;
                let PortalTable { address, iser } = table;
                Ok(PortalRow { address, iser })
            }
        }

        from.deserialize_any(Any)
    }
}

impl utoipa::PartialSchema for PortalRow {
    fn schema() -> RefOr<Schema> {
        <WrittenPortal as utoipa::PartialSchema>::schema()
    }
}

impl ToSchema for PortalRow {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        WrittenPortal::schemas(schemas);
    }
}

/// What is expected in place of [`Portals`]; [`crate::document`] knows the words.
pub(crate) const A_LIST: &str = "a list of portals";

/// What is expected in place of a [`PortalRow`].
pub(crate) const A_PORTAL: &str = "a portal";

#[cfg(test)]
mod tests;

//! What carries iSER at a portal, as it is written: `true` or `false`, or the name of what does.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// What carries iSER at a portal, beside iSCSI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "WrittenIser")]
pub enum PortalIser {
    /// Nothing.
    #[default]
    None,
    /// Software iWARP, over the portal's TCP connections.
    Soft,
    /// The RDMA devices that have the portal's address.
    Device,
    /// Either of these.
    Both,
}

/// What carries iSER: `true` is software iWARP.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum WrittenIser {
    /// Software iWARP, or nothing.
    Whether(bool),
    /// By what is named.
    By(IserCarrier),
}

/// What carries iSER.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum IserCarrier {
    /// Software iWARP.
    Soft,
    /// RoCE and InfiniBand devices.
    Device,
    /// Either.
    Both,
}

impl PortalIser {
    /// Whether anything carries it.
    #[must_use]
    pub const fn is_taken(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether software iWARP does.
    #[must_use]
    pub const fn is_soft(self) -> bool {
        matches!(self, Self::Soft | Self::Both)
    }

    /// Whether devices do.
    #[must_use]
    pub const fn is_device(self) -> bool {
        matches!(self, Self::Device | Self::Both)
    }
}

impl From<bool> for PortalIser {
    fn from(is_taken: bool) -> Self {
        if is_taken { Self::Soft } else { Self::None }
    }
}

impl From<IserCarrier> for PortalIser {
    fn from(carrier: IserCarrier) -> Self {
        match carrier {
            IserCarrier::Soft => Self::Soft,
            IserCarrier::Device => Self::Device,
            IserCarrier::Both => Self::Both,
        }
    }
}

impl From<PortalIser> for WrittenIser {
    fn from(iser: PortalIser) -> Self {
        match iser {
            PortalIser::None => Self::Whether(false),
            PortalIser::Soft => Self::Whether(true),
            PortalIser::Device => Self::By(IserCarrier::Device),
            PortalIser::Both => Self::By(IserCarrier::Both),
        }
    }
}

/// By hand, so that what is wrong is told with all that is right.
impl<'de> Deserialize<'de> for PortalIser {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;

        impl Visitor<'_> for Any {
            type Value = PortalIser;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false, \"soft\", \"device\" or \"both\"")
            }

            fn visit_bool<E: Error>(self, is_taken: bool) -> Result<PortalIser, E> {
                Ok(is_taken.into())
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<PortalIser, E> {
                let carrier = match name {
                    "soft" => IserCarrier::Soft,
                    "device" => IserCarrier::Device,
                    "both" => IserCarrier::Both,
                    _ => return Err(E::invalid_value(Unexpected::Str(name), &self)),
                };
                Ok(carrier.into())
            }
        }

        from.deserialize_any(Any)
    }
}

impl utoipa::PartialSchema for PortalIser {
    fn schema() -> RefOr<Schema> {
        <WrittenIser as utoipa::PartialSchema>::schema()
    }
}

impl ToSchema for PortalIser {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        WrittenIser::schemas(schemas);
    }
}

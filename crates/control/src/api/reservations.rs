//! `/v1/reservations`: which hosts have registered at volumes, and reserved them.

use axum::extract::State;
use axum::response::Json;
use engine::server::{NexusReport, RegistrationReport, ReservationKind, ReservationReport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Answer, Shared, blocking};

/// The reservations of a volume that has any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeReservations {
    /// The name of its row.
    pub volume: String,
    /// PRGENERATION: counts registrations and their removal.
    pub generation: u32,
    /// Whether all of it outlives a power loss (APTPL).
    pub aptpl: bool,
    /// What the volume is reserved by, if it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reservation: Option<VolumeReservation>,
    /// The I_T nexuses that are registered.
    pub registrations: Vec<NexusRegistration>,
}

/// A reservation of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeReservation {
    /// `write-exclusive`, `exclusive-access`, either with `-registrants-only` or
    /// `-all-registrants` behind it (SPC-5 §6.16.3.4); `spc-2` by RESERVE(6) or (10).
    #[serde(rename = "type")]
    pub kind: String,
    /// The I_T nexuses that hold it.
    pub holders: Vec<NexusPorts>,
}

/// A registered I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NexusRegistration {
    /// Which one.
    #[serde(flatten)]
    pub nexus: NexusPorts,
    /// Its reservation key, 16 hexadecimal digits behind `0x`.
    pub key: String,
}

/// An I_T nexus, by its two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NexusPorts {
    /// The initiator; by Fibre Channel its port name.
    pub initiator: String,
    /// The initiator's ISID, in hexadecimal digits; none by Fibre Channel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub isid: Option<String>,
    /// The target; none where it has gone.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The tag of the target's portal group; none by Fibre Channel.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub portal_group: Option<u16>,
    /// RELATIVE TARGET PORT IDENTIFIER of the target's port.
    pub port: u16,
}

pub(super) async fn reservations(State(plane): Shared) -> Answer<Json<Vec<VolumeReservations>>> {
    let told = blocking(move || plane.reservations()).await?;
    Ok(Json(told?.into_iter().map(Into::into).collect()))
}

impl From<ReservationReport> for VolumeReservations {
    fn from(unit: ReservationReport) -> Self {
        let holders = unit.registrations.iter().filter(|one| one.is_holder);
        let holders = holders.map(|one| one.nexus.clone().into()).collect();
        let reservation = unit.kind.map(|kind| match kind {
            ReservationKind::Persistent(kind) => VolumeReservation {
                kind: kind.to_owned(),
                holders,
            },
            ReservationKind::Spc2(nexus) => VolumeReservation {
                kind: "spc-2".to_owned(),
                holders: vec![nexus.into()],
            },
        });
        Self {
            volume: unit.unit,
            generation: unit.generation,
            aptpl: unit.aptpl,
            reservation,
            registrations: unit.registrations.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<RegistrationReport> for NexusRegistration {
    fn from(registration: RegistrationReport) -> Self {
        Self {
            nexus: registration.nexus.into(),
            key: format!("{:#018x}", registration.key),
        }
    }
}

impl From<NexusReport> for NexusPorts {
    fn from(nexus: NexusReport) -> Self {
        Self {
            initiator: nexus.initiator,
            isid: nexus.isid,
            target: nexus.target,
            portal_group: nexus.portal_group,
            port: nexus.port,
        }
    }
}

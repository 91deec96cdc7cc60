//! Commands that conflict with a reservation (SPC-5 table 62, SBC-4 table 13, SPC-2 table 10).

use super::{Holding, ReservationType, Reservations};
use crate::commands::{Access, CommandRow};
use crate::nexus::NexusIdentity;
use crate::task::CommandFailure;
use crate::unit::UnitState;
use crate::wire::sense::Status;

/// Whether a nexus may carry out a command now.
///
/// The commands about reservations themselves have [`Access::Any`]: their rules depend
/// on service action and key, and are the owner's to judge.
///
/// # Errors
/// RESERVATION CONFLICT.
pub fn check(
    state: &UnitState,
    identity: &NexusIdentity,
    row: &CommandRow,
    cdb: &[u8],
) -> Result<(), CommandFailure> {
    match &state.reservations.hold {
        Holding::Free => Ok(()),
        _ if allowed(&state.reservations, identity, row, cdb) => Ok(()),
        _ => Err(CommandFailure::Status(Status::ReservationConflict)),
    }
}

fn allowed(
    reservations: &Reservations,
    nexus: &NexusIdentity,
    row: &CommandRow,
    cdb: &[u8],
) -> bool {
    match &reservations.hold {
        Holding::Free => true,
        Holding::Reserved(holder) => **holder == *nexus || allowed_while_reserved(row, cdb),
        Holding::Persistent(reservation) => {
            passes(reservation.kind, row.access_for(cdb))
                || reservations.is_holder(nexus)
                || (reservation.kind.admits_registrants() && reservations.is_registered(nexus))
        }
    }
}

/// What everybody may do under a persistent reservation.
fn passes(kind: ReservationType, access: Access) -> bool {
    match access {
        Access::Any => true,
        Access::Read => kind.admits_readers(),
        Access::Write => false,
    }
}

fn allowed_while_reserved(row: &CommandRow, cdb: &[u8]) -> bool {
    row.access_for(cdb) == Access::Any
        && ALLOWED_WHILE_RESERVED.iter().any(|(opcode, action)| {
            *opcode == row.opcode && (action.is_none() || *action == row.service_action)
        })
}

/// What others may do while RESERVE is in force, by opcode and service action (`None`: every one).
/// All the rest conflicts, TEST UNIT READY and MODE SENSE too. PERSISTENT RESERVE IN and OUT,
/// RESERVE and RELEASE are let through to their own rules.
const ALLOWED_WHILE_RESERVED: &[(u8, Option<u16>)] = &[
    (0x03, None),       // REQUEST SENSE
    (0x12, None),       // INQUIRY
    (0x16, None),       // RESERVE(6)
    (0x17, None),       // RELEASE(6)
    (0x1b, None),       // START STOP UNIT, where it is harmless
    (0x1e, None),       // PREVENT ALLOW MEDIUM REMOVAL, likewise
    (0x25, None),       // READ CAPACITY(10)
    (0x4d, None),       // LOG SENSE
    (0x56, None),       // RESERVE(10)
    (0x57, None),       // RELEASE(10)
    (0x5e, None),       // PERSISTENT RESERVE IN
    (0x5f, None),       // PERSISTENT RESERVE OUT
    (0x9e, Some(0x10)), // READ CAPACITY(16)
    (0xa0, None),       // REPORT LUNS
    (0xa3, Some(0x0a)), // REPORT TARGET PORT GROUPS
];

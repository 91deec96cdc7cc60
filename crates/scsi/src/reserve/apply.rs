//! What changes of reservations do to the state of a unit, and to its nexuses.

use std::sync::Arc;

use super::{Action, ActionOutcome, Holding, ReservationNotice, ReservationRefusal, Reservations};
use crate::nexus::NexusIdentity;
use crate::owner::Effect;
use crate::task::CommandFailure;
use crate::unit::{EffectScope, UnitState};
use crate::wire::asc;
use crate::wire::sense::{Sense, SenseKey, Status};

const CONFLICT: CommandFailure = CommandFailure::Status(Status::ReservationConflict);

/// PERSISTENT RESERVE OUT.
pub(crate) fn persistent(
    state: &mut UnitState,
    nexus: &Arc<NexusIdentity>,
    action: &Action,
) -> Result<Vec<Effect>, CommandFailure> {
    if wants_persistence(action) && !state.persistence {
        return Err(CommandFailure::Check(Sense::parameter_field(
            aptpl_byte(action),
            Some(0),
        )));
    }
    let mut reservations = Reservations::clone(&state.reservations);
    let outcome = reservations.act(nexus, action).map_err(failure)?;
    state.reservations = Arc::new(reservations);
    Ok(effects(outcome))
}

/// RESERVE(6) and (10), with the exceptions that CRH tells of (SPC-3 §5.6.3): from a nexus that a
/// persistent reservation gives access to it is good, and does nothing.
pub(crate) fn reserve(
    state: &mut UnitState,
    nexus: &Arc<NexusIdentity>,
) -> Result<(), CommandFailure> {
    if spared(&state.reservations, nexus)? {
        return Ok(());
    }
    match &state.reservations.hold {
        Holding::Reserved(holder) if holder == nexus => Ok(()),
        Holding::Reserved(_) | Holding::Persistent(_) => Err(CONFLICT),
        Holding::Free => {
            hold(state, Holding::Reserved(nexus.clone()));
            Ok(())
        }
    }
}

/// RELEASE(6) and (10); from anybody but the holder it does nothing.
pub(crate) fn release(
    state: &mut UnitState,
    nexus: &Arc<NexusIdentity>,
) -> Result<(), CommandFailure> {
    if !spared(&state.reservations, nexus)? {
        end(state, |holder| holder == nexus);
    }
    Ok(())
}

/// A reset ends what RESERVE made; persistent reservations outlast it.
pub(crate) fn reset(state: &mut UnitState) {
    end(state, |_| true);
}

/// The loss of its nexus ends what RESERVE made.
pub(crate) fn nexus_loss(state: &mut UnitState, nexus: &Arc<NexusIdentity>) {
    end(state, |holder| holder == nexus);
}

/// Whether RESERVE and RELEASE of this nexus are to be good without an effect.
fn spared(reservations: &Reservations, nexus: &NexusIdentity) -> Result<bool, CommandFailure> {
    if reservations.registrations.is_empty() {
        return Ok(false);
    }
    let shared = |one: &super::Reservation| one.kind.admits_registrants();
    let admitted =
        reservations.is_registered(nexus) && reservations.reservation().is_some_and(shared);
    if admitted || reservations.is_holder(nexus) {
        Ok(true)
    } else {
        Err(CONFLICT)
    }
}

fn end(state: &mut UnitState, whose: impl Fn(&Arc<NexusIdentity>) -> bool) {
    if matches!(&state.reservations.hold, Holding::Reserved(holder) if whose(holder)) {
        hold(state, Holding::Free);
    }
}

fn hold(state: &mut UnitState, hold: Holding) {
    Arc::make_mut(&mut state.reservations).hold = hold;
}

fn wants_persistence(action: &Action) -> bool {
    match action {
        Action::Register(register) => register.aptpl,
        Action::Move(r#move) => r#move.aptpl,
        _ => false,
    }
}

/// Where APTPL stands in the parameter list (SPC-5 §6.17.3, §6.17.4).
fn aptpl_byte(action: &Action) -> u16 {
    match action {
        Action::Move(_) => 17,
        _ => 20,
    }
}

fn effects(outcome: ActionOutcome) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !outcome.abort.is_empty() {
        effects.push(Effect::Abort(EffectScope::Only(outcome.abort)));
    }
    for (notice, whom) in outcome.notices {
        effects.push(Effect::Attention(EffectScope::Only(whom), code(notice)));
    }
    effects
}

fn code(notice: ReservationNotice) -> u16 {
    match notice {
        ReservationNotice::ReservationsPreempted => asc::RESERVATIONS_PREEMPTED,
        ReservationNotice::ReservationsReleased => asc::RESERVATIONS_RELEASED,
        ReservationNotice::RegistrationsPreempted => asc::REGISTRATIONS_PREEMPTED,
    }
}

/// How SCSI tells of a refusal. The bytes are those of the parameter list.
fn failure(refusal: ReservationRefusal) -> CommandFailure {
    CommandFailure::Check(match refusal {
        ReservationRefusal::Conflict => return CONFLICT,
        ReservationRefusal::InvalidRelease => Sense::new(
            SenseKey::IllegalRequest,
            asc::INVALID_RELEASE_OF_PERSISTENT_RESERVATION,
        ),
        ReservationRefusal::NoResources => Sense::new(
            SenseKey::IllegalRequest,
            asc::INSUFFICIENT_REGISTRATION_RESOURCES,
        ),
        ReservationRefusal::ZeroKey => Sense::parameter_field(8, None),
        ReservationRefusal::NoType => Sense::cdb_field(2, Some(3)),
        ReservationRefusal::SpecifiedByRegistrant => Sense::parameter_field(20, Some(3)),
        ReservationRefusal::MovedToItself => Sense::parameter_field(24, None),
    })
}

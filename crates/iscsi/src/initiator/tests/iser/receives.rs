//! How much a target has to receive at once (RFC 7145 §8.1.1).

use crate::initiator::tests::rig::{IserRig as Rig, LUN, config};
use crate::initiator::{IscsiRefusal, Tmf};
use crate::wire::bhs::Itt;

/// A session whose window and whose configuration let a thousand commands be under way.
fn wide() -> Rig {
    let mut config = config();
    config.limits.tasks = 1000;
    let mut rig = Rig::logged_in(config, Rig::AGREED);
    rig.window = 1000;
    rig.ping(Itt::NONE, u32::MAX);
    rig.sends_nothing();
    rig
}

/// As many commands as are taken, all of which leave.
fn filled(rig: &mut Rig) -> u64 {
    let mut commands = 0;
    while rig.initiator.room() > 0 {
        rig.test_unit(commands);
        commands += 1;
    }
    assert_eq!(rig.refused(commands), IscsiRefusal::Full);
    assert_eq!(rig.sent().len() as u64, commands);
    commands
}

/// LIO has 128 (`ISERT_QP_MAX_RECV_DTOS`), whatever its window is.
#[test]
fn no_more_is_under_way_than_lio_has_receives_for() {
    let mut rig = wide();
    let commands = filled(&mut rig);
    for id in 0..4 {
        let abort = Tmf::AbortTask(id);
        assert_eq!(rig.initiator.manage(rig.now, id, LUN, abort), Ok(()));
    }
    let one_more = rig.initiator.manage(rig.now, 4, LUN, Tmf::AbortTask(4));
    assert_eq!(one_more, Err(IscsiRefusal::Full));
    rig.ping(Itt::NONE, 7);
    // It is silent for so long that it is pinged, too.
    rig.wait(6);
    let beside = rig.sent();
    assert_eq!(beside.len(), 4 + 1 + 1, "{beside:?}");
    assert!(commands > 64, "an ordinary window of LIO is used");
    assert!(commands + (beside.len() as u64) < 128, "{commands}");
}

#[test]
fn an_answer_makes_room_for_a_command() {
    let mut rig = wide();
    let commands = filled(&mut rig);
    rig.respond(0x10000, 0);
    assert_eq!(rig.done().id, 0);
    assert_eq!(rig.initiator.room(), 1);
    rig.test_unit(commands);
    assert_eq!(rig.sent().len(), 1);
    assert_eq!(rig.initiator.room(), 0);
}

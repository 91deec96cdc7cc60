//! Task management in every state of a command.

use super::rig::{End, Rig, cdb10, cdb16, pattern, traits};
use crate::medium::{MediumError, Traits};
use crate::nexus::NexusId;
use crate::owner::UnitChange;
use crate::task::{Attribute, Function, FunctionResult, Tag};
use crate::unit::UnitId;
use crate::wire::lun::Lun;
use crate::wire::sense::Status;

const NEXUS: NexusId = NexusId(0);
const OTHER: NexusId = NexusId(1);

#[test]
fn abort_task_waits_for_the_medium() {
    let mut rig = Rig::new().holding();
    let read = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    let id = rig.manage(NEXUS, Function::AbortTask(read));
    assert_eq!(rig.answer_to(id), None);
    rig.answer(0);
    assert_eq!(rig.ended[&(NEXUS, read)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert!(rig.data(read).is_empty());
}

#[test]
fn abort_task_has_given_up_what_waits_before_the_medium() {
    let mut rig = Rig::new().holding();
    let write = rig.send(&cdb10(0x2a, 0, 0, 1), pattern(1, 1));
    rig.answer(0);
    let waiting = rig.held[0].0.0;
    rig.send(&cdb10(0x28, 0, 0, 1), 512);
    let other = rig.held[1].0.0;
    let id = rig.manage(NEXUS, Function::AbortTask(write));
    let (unit, ids) = rig.cancelled.pop().unwrap();
    assert_eq!(unit, UnitId::first(0));
    assert_eq!([waiting, other].map(|id| ids.contains(&id)), [true, false]);
    assert_eq!(rig.answer_to(id), None);
    let (op, ..) = rig.held.pop_front().unwrap();
    rig.server.medium_done(op, Err(MediumError::Cancelled));
    rig.run();
    assert_eq!(rig.ended[&(NEXUS, write)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
}

#[test]
fn abort_task_does_not_wait_for_data_out() {
    let mut rig = Rig::new();
    rig.hold_data = true;
    let write = rig.send(&cdb10(0x2a, 0, 0, 1), pattern(1, 1));
    let id = rig.manage(NEXUS, Function::AbortTask(write));
    assert_eq!(rig.ended[&(NEXUS, write)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    rig.send_data();
    assert_eq!(
        rig.disks[0][..512],
        [0; 512],
        "data that comes late is dropped"
    );
}

#[test]
fn abort_task_ends_a_dormant_command_at_once() {
    let mut rig = Rig::new().holding();
    rig.send(&cdb10(0x28, 0, 0, 1), 512);
    let ordered = Attribute::Ordered;
    let dormant = rig.send_to(NEXUS, 0, &cdb10(0x28, 0, 0, 1), ordered, 512);
    rig.manages(NEXUS, Function::AbortTask(dormant));
    rig.answer(0);
    assert!(rig.held.is_empty());
}

#[test]
fn abort_task_knows_no_other_task() {
    let mut rig = Rig::new();
    let id = rig.manage(NEXUS, Function::AbortTask(Tag(999)));
    assert_eq!(rig.answer_to(id), Some(FunctionResult::NoTask));
}

#[test]
fn abort_task_set_ends_all_of_the_nexus() {
    let mut rig = Rig::new().holding();
    let long = rig.send(&cdb16(0x88, 0, 0, 4096), 4096 * 512);
    let short = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    let id = rig.manage(NEXUS, Function::AbortTaskSet);
    while !rig.held.is_empty() {
        assert_eq!(rig.answer_to(id), None);
        rig.answer(0);
    }
    assert_eq!(rig.ended[&(NEXUS, long)], End::Aborted);
    assert_eq!(rig.ended[&(NEXUS, short)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
}

#[test]
fn query_task_finds_what_has_not_ended() {
    let mut rig = Rig::new().holding();
    let read = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    let found = rig.manage(NEXUS, Function::QueryTask(read));
    let set = rig.manage(NEXUS, Function::QueryTaskSet);
    rig.answer(0);
    let gone = rig.manage(NEXUS, Function::QueryTask(read));
    assert_eq!(
        rig.answer_to(found),
        Some(FunctionResult::Succeeded([0; 3]))
    );
    assert_eq!(rig.answer_to(set), Some(FunctionResult::Succeeded([0; 3])));
    assert_eq!(rig.answer_to(gone), Some(FunctionResult::Complete));
}

#[test]
fn logical_unit_reset_ends_everybodys_commands_and_tells_them() {
    let mut rig = Rig::hosts(2).holding();
    let read = cdb10(0x28, 0, 0, 1);
    let own = rig.send(&read, 512);
    let others = rig.send_by(OTHER, &read, 512);
    let id = rig.manage(NEXUS, Function::LogicalUnitReset);
    rig.answer(0);
    assert_eq!(rig.answer_to(id), None, "one is still at the medium");
    rig.answer(0);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert_eq!(rig.ended[&(NEXUS, own)], End::Aborted);
    assert_eq!(rig.completed(OTHER, others).status, Status::TaskAborted);
    for nexus in [NEXUS, OTHER] {
        assert!(rig.attentions.contains(&(nexus, 0x2903)));
        rig.refuses_by(nexus, &[0; 6], (), (0x6, 0x2903));
        let tag = rig.send_by(nexus, &[0; 6], ());
        assert_eq!(rig.completed(nexus, tag).status, Status::Good, "told once");
    }
}

/// Of whoever sends a command after its reset nobody would tell it that the command is gone.
#[test]
fn logical_unit_reset_spares_what_its_nexus_sent_after_it() {
    let mut rig = Rig::hosts(2);
    (rig.hold, rig.hold_owner) = (true, true);
    let read = cdb10(0x28, 0, 0, 1);
    let before = rig.send(&read, 512);
    let id = rig.manage(NEXUS, Function::LogicalUnitReset);
    let after = rig.send(&read, 512);
    let others = rig.send_by(OTHER, &read, 512);
    rig.let_owner_go();
    rig.answer_all();
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert_eq!(rig.ended[&(NEXUS, before)], End::Aborted);
    assert_eq!(rig.status(after), Status::Good);
    assert_eq!(rig.completed(OTHER, others).status, Status::TaskAborted);
}

#[test]
fn clear_task_set_meets_the_set_of_the_nexus_that_asks() {
    let mut rig = Rig::with(2, 2, &traits()).holding();
    let read = cdb10(0x28, 0, 0, 1);
    let own = rig.send(&read, 512);
    let elsewhere = rig.send_to(NEXUS, 1, &read, Attribute::Simple, 512);
    let others = rig.send_by(OTHER, &read, 512);
    let id = rig.manage(NEXUS, Function::ClearTaskSet);
    assert_eq!(rig.answer_to(id), None, "it is still at the medium");
    rig.answer(0);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert_eq!(rig.ended[&(NEXUS, own)], End::Aborted);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.status(elsewhere), Status::Good);
    assert_eq!(rig.completed(OTHER, others).status, Status::Good);
    assert_eq!(rig.attentions, [], "nobody else has lost a command");
}

#[test]
fn clear_task_set_does_not_wait_for_the_owner() {
    let mut rig = Rig::new();
    rig.hold_owner = true;
    rig.manages(NEXUS, Function::ClearTaskSet);
    assert!(rig.mail.is_empty());
}

#[test]
fn target_reset_meets_every_unit() {
    let mut rig = Rig::with(1, 3, &traits());
    rig.manages(NEXUS, Function::TargetReset);
    for lun in 0..3 {
        let tag = rig.send_to(NEXUS, lun, &[0; 6], Attribute::Simple, ());
        assert_eq!(rig.sense(NEXUS, tag), (0x6, 0x2903));
    }
}

#[test]
fn nexus_reset_ends_commands_on_every_unit() {
    let mut rig = Rig::with(1, 2, &traits()).holding();
    let read = cdb10(0x28, 0, 0, 1);
    let tags = [0, 1].map(|lun| rig.send_to(NEXUS, lun, &read, Attribute::Simple, 512));
    let id = rig.manage(NEXUS, Function::NexusReset);
    rig.answer(0);
    rig.answer(0);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    for tag in tags {
        assert_eq!(rig.ended[&(NEXUS, tag)], End::Aborted);
    }
    rig.refuses(&[0; 6], (), (0x6, 0x2907));
}

#[test]
fn functions_on_absent_units_and_those_not_offered() {
    let mut rig = Rig::new();
    let lun = Lun::from_index(9);
    rig.server
        .manage(NEXUS, 101, lun, Function::LogicalUnitReset);
    rig.server
        .manage(NEXUS, 102, lun, Function::AbortTask(Tag(1)));
    rig.run();
    assert_eq!(rig.answer_to(101), Some(FunctionResult::IncorrectLun));
    assert_eq!(rig.answer_to(102), Some(FunctionResult::IncorrectLun));
    let id = rig.manage(NEXUS, Function::ClearAca);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Rejected));
}

#[test]
fn query_asynchronous_event_tells_what_is_pending() {
    let mut rig = Rig::hosts(2);
    let none = rig.manage(OTHER, Function::QueryAsynchronousEvent);
    assert_eq!(rig.answer_to(none), Some(FunctionResult::Complete));
    let blocks = 9000;
    let grown = UnitChange::Medium(Traits { blocks, ..traits() });
    rig.change(UnitId::first(0), 0, grown);
    let one = rig.manage(OTHER, Function::QueryAsynchronousEvent);
    assert_eq!(
        rig.answer_to(one),
        Some(FunctionResult::Succeeded([0x16, 0x2a, 0x09]))
    );
    rig.manage(NEXUS, Function::LogicalUnitReset);
    let two = rig.manage(OTHER, Function::QueryAsynchronousEvent);
    assert_eq!(
        rig.answer_to(two),
        Some(FunctionResult::Succeeded([0x26, 0x29, 0x03]))
    );
}

#[test]
fn request_sense_and_report_luns_clear_what_they_tell() {
    let mut rig = Rig::hosts(2);
    rig.manage(OTHER, Function::LogicalUnitReset);
    let inquiry = rig.send(&[0x12, 0, 0, 0, 36, 0], 36);
    assert_eq!(
        rig.status(inquiry),
        Status::Good,
        "INQUIRY passes unit attentions by"
    );
    let sense = rig.send(&[0x03, 0, 0, 0, 18, 0], 18);
    assert_eq!(rig.data(sense)[2], 0x06);
    assert_eq!(rig.data(sense)[12..14], [0x29, 0x03]);
    rig.good(&[0; 6], ());
}

#[test]
fn a_lost_nexus_is_gone_when_the_medium_is_done_with_it() {
    let mut rig = Rig::hosts(2).holding();
    let read = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    rig.lose(NEXUS);
    assert!(rig.gone.is_empty());
    let late = rig.send(&[0; 6], ());
    assert_eq!(rig.ended[&(NEXUS, late)], End::Aborted);
    rig.answer(0);
    assert_eq!(rig.ended[&(NEXUS, read)], End::Aborted);
    assert_eq!(rig.gone, [NEXUS]);
    rig.log_in(NEXUS, 1);
}

#[test]
fn an_abort_of_what_waits_for_the_owner_waits_too() {
    let mut rig = Rig::new();
    rig.hold_owner = true;
    let reserve = rig.send(&[0x16, 0, 0, 0, 0, 0], ());
    let id = rig.manage(NEXUS, Function::AbortTask(reserve));
    assert_eq!(rig.answer_to(id), None);
    rig.let_owner_go();
    assert_eq!(rig.ended[&(NEXUS, reserve)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
}

#[test]
fn a_reset_does_not_wait_for_what_waits_behind_it() {
    // The reservation stands in line behind the reset at the owner, so the reset must be
    // acknowledged though the command has not ended.
    let mut rig = Rig::hosts(2);
    rig.hold_owner = true;
    let id = rig.manage(OTHER, Function::LogicalUnitReset);
    let reserve = rig.send(&[0x16, 0, 0, 0, 0, 0], ());
    rig.let_owner_go();
    assert_eq!(rig.completed(NEXUS, reserve).status, Status::TaskAborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
}

//! Task management in every state of a command.

use super::rig::{End, Rig, cdb10, cdb16, pattern};
use crate::nexus::NexusId;
use crate::task::{Attribute, Function, FunctionResult, Tag};

const NEXUS: NexusId = NexusId(0);

#[test]
fn abort_task_waits_for_the_medium() {
    let mut rig = Rig::new();
    rig.hold = true;
    let read = rig.send(&cdb10(0x28, 0, 0, 1), 512, Vec::new());
    let id = rig.manage(NEXUS, Function::AbortTask(read));
    assert_eq!(rig.answer_to(id), None);
    rig.answer(0);
    assert_eq!(rig.ended[&(NEXUS, read)], End::Aborted);
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
    assert!(rig.data(read).is_empty());
}

#[test]
fn abort_task_does_not_wait_for_data_out() {
    let mut rig = Rig::new();
    rig.hold_data = true;
    let write = rig.send(&cdb10(0x2a, 0, 0, 1), 0, pattern(1, 1));
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
    let mut rig = Rig::new();
    rig.hold = true;
    rig.send(&cdb10(0x28, 0, 0, 1), 512, Vec::new());
    let ordered = Attribute::Ordered;
    let dormant = rig.send_to(NEXUS, 0, &cdb10(0x28, 0, 0, 1), ordered, 512, Vec::new());
    let id = rig.manage(NEXUS, Function::AbortTask(dormant));
    assert_eq!(rig.answer_to(id), Some(FunctionResult::Complete));
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
    let mut rig = Rig::new();
    rig.hold = true;
    let long = rig.send(&cdb16(0x88, 0, 0, 4096), 4096 * 512, Vec::new());
    let short = rig.send(&cdb10(0x28, 0, 0, 1), 512, Vec::new());
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
    let mut rig = Rig::new();
    rig.hold = true;
    let read = rig.send(&cdb10(0x28, 0, 0, 1), 512, Vec::new());
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

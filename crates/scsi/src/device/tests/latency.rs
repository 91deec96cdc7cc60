//! What a command is counted as, and how long it took by the clock of whoever drives the device.

use std::time::Duration;

use super::rig::{Rig, cdb10, pattern};
use crate::medium::{MediumError, Now};
use crate::nexus::NexusId;
use crate::statistics::{ClassCount, OperationClass};
use crate::task::Function;
use crate::unit::UnitId;

fn class(rig: &Rig, class: OperationClass) -> ClassCount {
    let owner = &rig.owners[UnitId::first(0).index()];
    owner.state().statistics.class(class)
}

#[test]
fn a_read_takes_from_its_command_to_its_status() {
    let mut rig = Rig::new().holding();
    rig.server.set_time(Now::from_millis(1000));
    rig.send(&cdb10(0x28, 0, 0, 3), 1536);
    rig.server.set_time(Now::from_millis(1003));
    rig.answer(0);
    let reads = class(&rig, OperationClass::Read);
    assert_eq!((reads.operations(), reads.errors, reads.blocks), (1, 0, 3));
    assert_eq!(reads.latency.sum(), Duration::from_millis(3));
    assert_eq!(class(&rig, OperationClass::Write), ClassCount::default());
}

/// Two operations at once are one time at the medium; what is between two is none.
#[test]
fn what_a_command_waits_for_here_is_not_time_at_its_medium() {
    let mut rig = Rig::new().holding();
    rig.hold_data = true;
    rig.server.set_time(Now::from_millis(1000));
    rig.send(&cdb10(0x2a, 0, 0, 4), pattern(4, 1));
    rig.server.set_time(Now::from_millis(1001));
    rig.answer(0);
    rig.server.set_time(Now::from_millis(1010));
    rig.send_data();
    rig.server.set_time(Now::from_millis(1014));
    rig.answer(0);
    let writes = class(&rig, OperationClass::Write);
    assert_eq!(writes.latency.sum(), Duration::from_millis(14));
    let owner = &rig.owners[UnitId::first(0).index()];
    let at_medium = owner.state().statistics.medium(OperationClass::Write);
    assert_eq!(at_medium.sum(), Duration::from_millis(5));
    assert_eq!((at_medium.count(), writes.operations()), (1, 1));
}

#[test]
fn what_fails_is_an_operation_and_an_error() {
    let mut rig = Rig::new();
    rig.fail = Some(MediumError::Write);
    rig.send(&cdb10(0x2a, 0, 0, 4), pattern(4, 1));
    let writes = class(&rig, OperationClass::Write);
    assert_eq!(
        (writes.operations(), writes.errors, writes.blocks),
        (1, 1, 0)
    );
}

#[test]
fn what_is_aborted_was_never_answered() {
    let mut rig = Rig::new().holding();
    let tag = rig.send(&cdb10(0x28, 0, 0, 1), 512);
    rig.manage(NexusId(0), Function::AbortTask(tag));
    rig.answer(0);
    assert_eq!(class(&rig, OperationClass::Read), ClassCount::default());
}

/// As many as there are commands, whatever came of them.
#[test]
fn a_nexus_has_a_histogram_of_all_its_commands() {
    let mut rig = Rig::new().holding();
    rig.server.set_time(Now::from_millis(1000));
    rig.send(&cdb10(0x28, 0, 0, 3), 1536);
    let aborted = rig.send(&cdb10(0x28, 0, 9, 1), 512);
    rig.server.set_time(Now::from_millis(1003));
    rig.answer(0);
    rig.manage(NexusId(0), Function::AbortTask(aborted));
    rig.server.set_time(Now::from_millis(1100));
    rig.answer(0);
    rig.send(&cdb10(0x28, 0, u32::MAX, 1), 512);
    let counts = rig.server.nexus_counts(NexusId(0)).unwrap();
    let ended: Vec<_> = counts.latency.buckets().map(|(_, count)| count).collect();
    // At once, in 3 ms, and in 100 ms.
    assert_eq!(ended, [1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0]);
    assert_eq!(counts.latency.sum(), Duration::from_millis(103));
    assert_eq!(counts.commands(), 3);
}

#[test]
fn what_goes_on_in_the_background_took_until_it_was_answered() {
    let mut rig = Rig::new().holding();
    let immediate = 0b10;
    rig.good(&cdb10(0x35, immediate, 0, 0), ());
    let others = class(&rig, OperationClass::Other);
    rig.server.set_time(Now::from_secs(9));
    rig.answer(0);
    assert_eq!(class(&rig, OperationClass::Other), others);
    assert_eq!(others.operations(), 1);
    assert_eq!(others.latency.sum(), Duration::ZERO);
}

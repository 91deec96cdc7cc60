//! What nobody wants any more is given up where nothing of it has gone out.

use super::super::{ClientOutput, CommandStatus, Fate};
use super::unit::{Rig, write};
use crate::medium::{Extent, HeapLease, MediumError, MediumOp, ReadMemory};
use crate::wire::sense::{SenseKey, Status};

fn read() -> MediumOp<HeapLease> {
    let (extent, memory) = (Extent::new(1, 1), ReadMemory::Lent);
    MediumOp::Read { extent, memory }
}

/// Whether an operation is given up, and is not done after that either.
fn is_given_up(rig: &mut Rig, id: u64) -> bool {
    rig.client.cancel(&(id..id + 1));
    rig.run();
    let given_up =
        matches!(rig.results.pop(), Some((done, Err(MediumError::Cancelled))) if done == id);
    rig.take_asked();
    rig.now += super::super::LONGEST_PAUSE;
    rig.client.expire(rig.now);
    rig.begin();
    let mut asked = rig.take_work().into_iter();
    assert!(!given_up || asked.all(|cdb| !cdb.starts_with(['2'])));
    given_up
}

#[test]
fn what_waits_for_a_nexus_is_given_up_alone() {
    let mut rig = Rig::default();
    rig.client.lost();
    let [first, second] = [(); 2].map(|()| rig.submit(write()));
    rig.client.cancel(&(first..first + 1));
    rig.run();
    let ended = rig.results.pop();
    assert!(matches!(ended, Some((done, Err(MediumError::Cancelled))) if done == first));
    rig.begin();
    assert!(matches!(rig.results.pop(), Some((done, Ok(_))) if done == second));
}

#[test]
fn a_command_that_nobody_has_fetched_is_taken_back() {
    let mut rig = Rig::default();
    let id = rig.submit(write());
    assert!(is_given_up(&mut rig, id));
}

#[test]
fn a_command_that_waits_for_room_is_not_wanted_any_more() {
    let mut rig = Rig::default();
    let id = rig.submit(write());
    let Some(ClientOutput::Execute(request)) = rig.client.poll() else {
        panic!("no command")
    };
    assert!(rig.client.wants(request.id));
    assert!(is_given_up(&mut rig, id));
    assert!(!rig.client.wants(request.id));
}

#[test]
fn a_command_that_was_sent_goes_on() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x2a);
    let id = rig.submit(write());
    rig.run();
    let sent = rig.sent();
    rig.client.cancel(&(id..id + 1));
    rig.run();
    assert!(rig.results.is_empty() && rig.client.wants(sent));
}

/// One cancellation is enough, whenever the answer comes.
#[test]
fn a_command_that_a_unit_refuses_after_it_was_cancelled_is_not_tried_again() {
    for status in [Status::Busy, Status::TaskSetFull] {
        let mut rig = Rig::default();
        rig.unit.silent.push(0x28);
        let id = rig.submit(read());
        rig.run();
        let sent = rig.sent();
        rig.client.cancel(&(id..id + 1));
        rig.client
            .answered(rig.now, sent, &CommandStatus::bare(status));
        rig.run();
        let ended = rig.results.pop();
        assert!(
            matches!(ended, Some((done, Err(MediumError::Cancelled))) if done == id),
            "{status:?}: {ended:?}"
        );
        assert_eq!(rig.client.next_deadline(), None, "{status:?}");
    }
}

#[test]
fn a_command_that_was_cancelled_ends_with_its_nexus() {
    let mut rig = Rig::default();
    rig.unit.silent.push(0x28);
    let id = rig.submit(read());
    rig.run();
    let sent = rig.sent();
    rig.client.cancel(&(id..id + 1));
    rig.client.unanswered(sent, Fate::Unknown);
    rig.client.lost();
    rig.run();
    let ended = rig.results.pop();
    assert!(matches!(ended, Some((done, Err(MediumError::Cancelled))) if done == id));
}

#[test]
fn what_a_busy_unit_did_not_do_is_given_up() {
    let mut rig = Rig::default();
    rig.ends(SenseKey::NotReady, 0x0401);
    let id = rig.submit(write());
    rig.run();
    assert!(is_given_up(&mut rig, id));
}

#[test]
fn what_may_have_been_done_is_given_up_only_if_it_changes_nothing() {
    for (op, fate, given_up) in [
        (write(), Fate::NeverSent, true),
        (write(), Fate::Unknown, false),
        (read(), Fate::Unknown, true),
    ] {
        let mut rig = Rig::default();
        rig.unit.silent.extend([0x28, 0x2a]);
        let id = rig.submit(op);
        rig.run();
        let sent = rig.sent();
        rig.client.unanswered(sent, fate);
        rig.client.lost();
        assert_eq!(is_given_up(&mut rig, id), given_up, "{fate:?}");
    }
}

//! The trait over pretend libraries: what a datamover posts and is told.

use std::sync::Arc;
use std::time::Duration;

use ::io::rdma::{
    RdmaConnectOptions, RdmaConnector, RdmaLibrary, RdmaListener, RdmaMemory, RdmaPairOptions,
};
use block::lease::BlockLease;
use rdma::verbs::{
    Access, Completion, QueuePair, QueuePairEnd, ReadId, SendHeader, Stag, Tag, Work,
};
use scsi::medium::Lease;
use tempfile::TempDir;

use super::DevicePair;

/// Two ends of a connection, in a world of their own.
struct Ends {
    target: DevicePair,
    initiator: DevicePair,
    _memory: RdmaMemory,
    _place: TempDir,
}

/// The libraries, in a copy of the file, which cargo has put beside the tests.
fn library(place: &TempDir) -> Arc<RdmaLibrary> {
    let tests = std::env::current_exe().unwrap();
    let copy = place.path().join("libpretend.so");
    std::fs::copy(tests.with_file_name("libpretend_verbs.so"), &copy).unwrap();
    RdmaLibrary::open_at(copy.as_os_str(), copy.as_os_str()).unwrap()
}

fn connect() -> Ends {
    let place = tempfile::tempdir().unwrap();
    let library = library(&place);
    let pair = RdmaPairOptions {
        max_receive: 8524,
        max_send: 8352,
        receives: 18,
        receives_max: 146,
    };
    let options = RdmaConnectOptions {
        pair,
        private_data: vec![0x80, 0, 0, 0],
        device: None,
        limit: Duration::from_secs(2),
        memory: 8 << 20,
    };
    let portal = "127.0.0.1:3260".parse().unwrap();
    let mut listener = RdmaListener::listen(&library, portal).unwrap();
    let mut connector = RdmaConnector::start(&library, portal, options).unwrap();
    assert!(connector.poll().is_none());
    let (request, memory) = (listener.poll().unwrap().unwrap(), RdmaMemory::new());
    let can_invalidate = iscsi::wire::iser::invalidates(request.private_data());
    let target = request.accept(&memory, &pair, &[0x80, 0, 0, 0]).unwrap();
    let connected = connector.poll().unwrap().unwrap();
    Ends {
        target: DevicePair::new(target, can_invalidate),
        initiator: DevicePair::new(connected.pair, false),
        _memory: memory,
        _place: place,
    }
}

fn message(text: &[u8], invalidate: Option<Stag>) -> Work<BlockLease> {
    Work::Send {
        header: SendHeader::new(&[text]).unwrap(),
        data: None,
        invalidate,
    }
}

fn lease(len: usize, byte: u8) -> BlockLease {
    BlockLease::from_bytes(vec![byte; len])
}

fn is_all(lease: &BlockLease, byte: u8) -> bool {
    let mut bytes = vec![!byte; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes.iter().all(|one| *one == byte)
}

#[test]
fn a_read_command_is_a_write_and_a_response() {
    let mut ends = connect();
    assert!(ends.target.limits().can_invalidate && !ends.initiator.limits().can_invalidate);
    let sink = lease(4096, 0);
    let tag = ends.initiator.advertise(&sink, Access::Write);
    let from = lease(4096, 7);
    ends.target.post(Work::Write { to: tag, from });
    ends.target.post(message(b"good", Some(tag.stag)));
    ends.target.pair().flush();
    let Some(Completion::Received { bytes, invalidated }) = ends.initiator.poll() else {
        panic!("the response");
    };
    assert_eq!((&bytes[..], invalidated), (&b"good"[..], Some(tag.stag)));
    ends.initiator.recycle(bytes);
    ends.initiator.withdraw(tag.stag);
    assert!(is_all(&sink, 7));
    assert!(matches!(ends.target.poll(), Some(Completion::Written)));
    assert!(matches!(ends.target.poll(), Some(Completion::Sent)));
    assert!(ends.target.poll().is_none());
}

#[test]
fn a_write_command_is_a_read() {
    let mut ends = connect();
    let tag = ends.initiator.advertise(&lease(70_000, 9), Access::Read);
    ends.target.post(Work::Read {
        id: ReadId(3),
        from: tag.plus(1000),
        into: lease(69_000, 0),
    });
    ends.target.pair().flush();
    let Some(Completion::Got { id, into }) = ends.target.poll() else {
        panic!("the data");
    };
    assert_eq!((id, into.len()), (ReadId(3), 69_000));
    assert!(is_all(&into, 9));
}

#[test]
fn a_read_that_was_not_flushed_is_given_back() {
    let mut ends = connect();
    let from = Tag {
        stag: Stag(1),
        offset: 0,
    };
    let (id, into) = (ReadId(4), lease(512, 0));
    ends.target.post(Work::Read { id, from, into });
    assert_eq!(ends.target.cancel(id).unwrap().len(), 512);
    assert!(matches!(
        ends.target.poll(),
        Some(Completion::Drained(ReadId(4)))
    ));
}

/// What the next message of a pair is.
fn received(pair: &mut DevicePair) -> Vec<u8> {
    match pair.poll() {
        Some(Completion::Received { bytes, .. }) => bytes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_that_came_too_early_goes_along_to_another_core() {
    let mut ends = connect();
    for text in [&b"early"[..], b"late"] {
        ends.initiator.post(message(text, None));
    }
    ends.initiator.pair().flush();
    let early = received(&mut ends.target);
    ends.target.keep(early);
    let memory = RdmaMemory::new();
    let mut target = ends.target.release().unwrap().attach(&memory);
    assert!(target.limits().can_invalidate, "as before");
    assert!(!target.take_told() && target.is_keeping());
    target.allow(1);
    assert_eq!(received(&mut target), b"early");
    assert!(!target.is_keeping());
    assert!(target.poll().is_none(), "no more is allowed");
    assert!(target.take_told());
    target.allow(9);
    assert_eq!(received(&mut target), b"late");
}

/// How a pair ends.
fn end_of(pair: &mut DevicePair) -> QueuePairEnd {
    pair.pair().wake();
    match pair.poll() {
        Some(Completion::Ended(end)) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ends_say_who_ended_it() {
    let mut ends = connect();
    ends.initiator.pair().end();
    assert_eq!(end_of(&mut ends.initiator), QueuePairEnd::Requested);
    let QueuePairEnd::ByPeer { reason, .. } = end_of(&mut ends.target) else {
        panic!("the peer did");
    };
    assert_eq!(reason.clause, "RDMA_CM_EVENT_DISCONNECTED");
}

#[test]
fn a_failure_is_told_with_its_name() {
    let mut ends = connect();
    let to = Tag {
        stag: Stag(77),
        offset: 0,
    };
    let from = lease(512, 0);
    ends.target.post(Work::Write { to, from });
    ends.target.pair().flush();
    let QueuePairEnd::Violation(why) = end_of(&mut ends.target) else {
        panic!("it failed");
    };
    assert_eq!(why.clause, "IBV_WC_REM_ACCESS_ERR");
}

#[test]
fn a_session_without_staging_memory_ends_and_says_so() {
    let mut ends = connect();
    let data = lease(1 << 20, 0);
    for _ in 0..8 {
        assert!(ends.initiator.can_advertise(1 << 20, Access::Read));
        assert_ne!(ends.initiator.advertise(&data, Access::Read).stag, Stag(0));
    }
    assert!(!ends.initiator.can_advertise(1, Access::Read));
    ends.initiator.advertise(&data, Access::Read);
    let QueuePairEnd::Violation(why) = end_of(&mut ends.initiator) else {
        panic!("it gave up");
    };
    assert!(why.rule.starts_with("no memory that a target may reach"));
}

//! Ends: what is told, what is still sent, and that it is the last.

use std::rc::Rc;

use scsi::medium::{HeapLease, Lease};

use super::rig::{Rig, read, send, untagged, untagged_fpdu, write};
use crate::iwarp::ddp::Opcode;
use crate::iwarp::sink::FpduSink;
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::stream::Stream;
use crate::iwarp::terminate::{Terminate, TerminateCode};
use crate::test_support::{Sink, agreed, bytes_of, config, pattern, ulpdus};
use crate::verbs::{Access, Completion, QueuePair as _, QueuePairEnd, ReadId, Work};

/// The Terminate of a peer.
fn terminate(code: TerminateCode) -> Vec<u8> {
    let header = untagged(Opcode::TERMINATE, 1, 0, true);
    untagged_fpdu(&header, &Terminate::new(code, &[]).encode())
}

#[test]
fn a_terminate_of_the_peer_is_told_and_not_answered() {
    for (code, violation) in TerminateCode::ALL {
        let mut rig = Rig::new();
        rig.post_send(b"too late", None);
        rig.receive(&terminate(*code));
        let Some(Completion::Ended(end)) = rig.stream.poll() else {
            panic!("{violation}");
        };
        let by_peer = QueuePairEnd::ByPeer {
            reason: code.by_peer(),
            code: code.bits(),
        };
        assert_eq!(end, by_peer);
        assert!(rig.sent().is_empty());
        assert!(rig.stream.is_over());
    }
}

#[test]
fn an_end_from_this_side_is_told_to_the_peer_once() {
    let mut rig = Rig::new();
    rig.post_send(b"too late", None);
    rig.stream.end();
    rig.stream.end();
    assert_eq!(rig.told(), ["requested"]);
    assert_eq!(rig.sent(), ["Terminate: a local catastrophic error"]);
    rig.stream.end();
    assert!(rig.sent().is_empty() && rig.told().is_empty());
}

#[test]
fn after_the_end_nothing_moves() {
    let mut rig = Rig::new();
    let buffer = HeapLease::from_bytes(vec![0; 8]);
    let old = rig.stream.advertise(&buffer, Access::Write);
    let source = rig.stream.advertise(&buffer, Access::Read);
    rig.receive(&read(1, source, 8));
    rig.receive(&send(7, b"out of order"));
    let new = rig.stream.advertise(&buffer, Access::Write);
    rig.post_write(b"data");
    rig.receive(&[write(old, b"late"), write(new, b"late"), send(1, b"late")].concat());
    rig.receive(&[0xff; 100]);
    assert_eq!(
        rig.told(),
        ["broken: a message sequence number out of range"]
    );
    assert_eq!(rig.sent().len(), 1);
    assert!(rig.sent().is_empty());
    assert_eq!(bytes_of(&buffer), [0; 8]);
}

#[test]
fn only_the_first_broken_rule_counts() {
    let mut rig = Rig::new();
    rig.receive(&[send(7, b"out of order"), terminate(TerminateCode::CRC)].concat());
    assert_eq!(
        rig.told(),
        ["broken: a message sequence number out of range"]
    );
    assert_eq!(rig.sent_terminate().code, TerminateCode::INVALID_MSN);
}

#[test]
fn a_terminate_follows_the_fpdu_that_has_left_last() {
    let mut rig = Rig::new();
    rig.post_send(&[], Some(&pattern(1000)));
    let mut sink = Sink::limited(1);
    rig.stream.transmit(&mut sink);
    rig.receive(&send(7, b"out of order"));
    rig.stream.transmit(&mut Sink::default());
    assert!(rig.stream.is_over());
    sink.limit = 0;
    assert!(!rig.stream.transmit(&mut sink));
    assert_eq!(
        ulpdus(&sink.bytes).len(),
        1,
        "the rest of the message does not leave"
    );
}

#[test]
fn a_message_before_the_broken_rule_is_told_before_the_end() {
    let mut rig = Rig::new();
    let (good, bad) = (send(1, b"good"), send(1, b"again"));
    assert_eq!(rig.stream.receive(&[&good[..], &bad].concat()), good.len());
    assert_eq!(rig.told(), ["received 4"]);
    rig.receive(&bad);
    assert_eq!(
        rig.told(),
        ["broken: a message sequence number out of range"]
    );
}

/// Memory whose claims are counted.
#[derive(Clone, Debug)]
struct Counted(HeapLease, Rc<()>);

impl Lease for Counted {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(HeapLease::from_bytes(bytes), Rc::new(()))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        Self(self.0.slice(offset, len), self.1.clone())
    }

    fn copy_in(&mut self, offset: usize, bytes: &[u8]) {
        self.0.copy_in(offset, bytes);
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }

    fn difference(&self, other: &Self) -> Option<usize> {
        self.0.difference(&other.0)
    }

    fn or_with(&mut self, other: &Self) {
        self.0.or_with(&other.0);
    }
}

/// What is sent is of no interest.
struct Nowhere;

impl FpduSink<Counted> for Nowhere {
    fn bytes(&mut self, _: &[u8]) {}

    fn lease(&mut self, _: Counted) {}

    fn copied(&mut self, _: &Counted) -> &[u8] {
        &[]
    }

    fn is_full(&self) -> bool {
        false
    }
}

#[test]
fn memory_of_all_that_was_under_way_is_given_up() {
    let one = Agreed {
        ord: 1,
        ..agreed(MpaRole::Initiator)
    };
    let mut stream = Stream::new(one, &config());
    let memory = Counted::from_bytes(vec![0; 8]);
    for id in [1, 2].map(ReadId) {
        let (from, into) = (super::rig::THERE, memory.clone());
        stream.post(Work::Read { id, from, into });
    }
    stream.transmit(&mut Nowhere);
    let may = [Access::Read, Access::Write];
    let tags = may.map(|may| stream.advertise(&memory, may));
    let held = Rc::strong_count(&memory.1);
    assert_eq!(
        held, 5,
        "a read that was sent, one that waits, and what was advertised"
    );
    stream.withdraw(tags[0].stag);
    assert_eq!(Rc::strong_count(&memory.1), 4);
    stream.end();
    assert_eq!(Rc::strong_count(&memory.1), 1);
    stream.advertise(&memory, Access::Read);
    assert!(stream.cancel(ReadId(1)).is_none());
    assert_eq!(Rc::strong_count(&memory.1), 1);
}

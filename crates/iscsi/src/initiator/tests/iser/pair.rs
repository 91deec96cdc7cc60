//! Over a queue pair that is played by hand, as a device's would be: it has little room, and does
//! not know what was moved.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rdma::verbs::{Access, Completion, Limits, QueuePair, QueuePairEnd, ReadId, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};
use scsi::residual::Residual;
use scsi::violation::Violation;

use crate::initiator::InitiatorEvent;
use crate::initiator::error::{LoginError, SessionEnd};
use crate::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use crate::initiator::tests::rig::{IserRig, LUN, config, random};
use crate::initiator::{Data, Initiator, RestingSession, Tmf};
use crate::wire::bhs::{Bhs, Itt};
use crate::wire::iser::{AdvertisedBuffers, IserHeader};
use crate::wire::task_management::TaskResponse;

/// What was posted, what the peer may reach, and what is to be told.
#[derive(Default)]
struct Pair {
    room: usize,
    posted: Vec<Work<HeapLease>>,
    advertised: Vec<(Stag, Access, usize)>,
    last: u32,
    told: VecDeque<Completion<HeapLease>>,
    recycled: usize,
    /// Bytes that can be advertised; 0: as many as one likes.
    memory: usize,
}

impl QueuePair<HeapLease> for Pair {
    fn limits(&self) -> Limits {
        Limits {
            ord: 0,
            ird: 4,
            room: self.room - self.posted.len(),
            can_invalidate: false,
            max_receive: MAX_MESSAGE,
        }
    }

    fn advertise(&mut self, of: &HeapLease, may: Access) -> Tag {
        self.last += 1;
        let stag = Stag(self.last);
        self.advertised.push((stag, may, of.len()));
        let offset = 0xffff_8880_0000_0000;
        Tag { stag, offset }
    }

    fn withdraw(&mut self, stag: Stag) -> Option<u32> {
        self.advertised.retain(|known| known.0 != stag);
        None
    }

    fn post(&mut self, work: Work<HeapLease>) {
        assert!(self.limits().room > 0, "no room");
        self.posted.push(work);
    }

    fn cancel(&mut self, _: ReadId) -> Option<HeapLease> {
        panic!("an initiator reads nothing");
    }

    fn poll(&mut self) -> Option<Completion<HeapLease>> {
        self.told.pop_front()
    }

    fn recycle(&mut self, _: Vec<u8>) {
        self.recycled += 1;
    }

    fn can_advertise(&mut self, bytes: usize, _: Access) -> bool {
        let out: usize = self.advertised.iter().map(|known| known.2).sum();
        self.memory == 0 || out + bytes <= self.memory
    }
}

/// A session that was taken up on such a queue pair, and the rig that knows its numbers.
struct PairRig {
    initiator: Initiator<HeapLease, InitiatorIserMover>,
    numbers: IserRig,
    pair: Pair,
}

const NOW: Duration = Duration::ZERO;

impl PairRig {
    fn new(room: usize) -> Self {
        let mut numbers = IserRig::open();
        // What it is told in place of that session is taken up here.
        let spare = Initiator::over_rdma(Arc::new(config()), NOW, random()).unwrap();
        let session = std::mem::replace(&mut numbers.initiator, spare);
        let resting: RestingSession<InitiatorIserMover> = session.rest().unwrap();
        let mut initiator = resting.resume(NOW);
        assert!(matches!(initiator.poll(), Some(InitiatorEvent::LoggedIn)));
        let pair = Pair {
            room,
            ..Pair::default()
        };
        Self {
            initiator,
            numbers,
            pair,
        }
    }

    fn execute(&mut self, id: u64, data: Data<HeapLease>) {
        let command = self.numbers.command(id, data);
        self.initiator.execute(NOW, command).unwrap();
    }

    fn transmit(&mut self) -> usize {
        self.initiator.transmit(&mut self.pair);
        let sent = std::mem::take(&mut self.pair.posted).len();
        self.pair.told.extend((0..sent).map(|_| Completion::Sent));
        // The window counts for the numbers of what is answered.
        self.numbers.cmd_sn += sent as u32;
        sent
    }

    fn tell(&mut self, bhs: Bhs) {
        let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
        self.pair.told.push_back(Completion::Received {
            bytes: [&header[..], &bhs.0].concat(),
            invalidated: None,
        });
    }

    fn receive(&mut self) -> bool {
        self.initiator.receive(NOW, &mut self.pair)
    }
}

fn memory(len: usize) -> HeapLease {
    HeapLease::from_bytes(vec![0; len])
}

/// A device does not tell what was written: what the target says has to do.
#[test]
fn a_good_status_is_trusted_where_nothing_is_known() {
    let mut rig = PairRig::new(8);
    rig.execute(1, Data::In(memory(3000)));
    rig.execute(2, Data::Out(memory(3000)));
    assert_eq!(rig.transmit(), 2);
    let advertised = [
        (Stag(1), Access::Write, 3000),
        (Stag(2), Access::Read, 3000),
    ];
    assert_eq!(rig.pair.advertised, advertised);
    let mut read = rig.numbers.response_pdu(0x10000, 0);
    read.residual = Residual::Underflow(1000);
    rig.tell(read.encode());
    let write = rig.numbers.response_pdu(0x20001, 0);
    rig.tell(write.encode());
    assert!(!rig.receive(), "a message waits until the event was taken");
    let mut moved = Vec::new();
    while let Some(event) = rig.initiator.poll() {
        match event {
            InitiatorEvent::Done(done) => moved.push((done.id, done.moved)),
            other => panic!("{other:?}"),
        }
        rig.receive();
    }
    assert_eq!(moved, [(1, 2000), (2, 3000)]);
    assert!(
        rig.pair.advertised.is_empty(),
        "nothing can be reached any more"
    );
    assert_eq!(rig.pair.recycled, 2);
}

#[test]
fn what_has_no_room_waits() {
    let mut rig = PairRig::new(2);
    for id in 0..4 {
        rig.execute(id, Data::In(memory(8)));
    }
    assert_eq!((rig.transmit(), rig.pair.advertised.len()), (2, 2));
    assert_eq!((rig.transmit(), rig.pair.advertised.len()), (2, 4));
    assert_eq!(rig.transmit(), 0);
    assert!(rig.receive(), "that it has left needs no answer");
}

#[test]
fn what_has_no_memory_waits_in_order() {
    let mut rig = PairRig::new(8);
    rig.pair.memory = 1000;
    rig.execute(1, Data::In(memory(600)));
    rig.execute(2, Data::In(memory(600)));
    rig.execute(3, Data::In(memory(8)));
    assert_eq!(rig.transmit(), 1, "the third does not overtake");
    assert_eq!(rig.transmit(), 0);
    let done = rig.numbers.response_pdu(0x10000, 0);
    rig.tell(done.encode());
    rig.receive();
    assert_eq!(rig.transmit(), 2);
    assert_eq!(rig.pair.advertised.len(), 2);
}

/// A queue pair that says why: to wait would be in vain.
#[test]
fn what_has_no_memory_with_nothing_under_way_is_tried() {
    let mut rig = PairRig::new(8);
    rig.pair.memory = 100;
    rig.execute(1, Data::Out(memory(100_000)));
    assert_eq!(rig.transmit(), 1);
}

/// Data that goes with its command needs no memory that the target may reach.
#[test]
fn short_writes_do_not_wait() {
    let mut rig = PairRig::new(8);
    rig.pair.memory = 1000;
    rig.execute(1, Data::In(memory(1000)));
    rig.execute(2, Data::Out(memory(512)));
    rig.execute(3, Data::None);
    assert_eq!(rig.transmit(), 3);
}

#[test]
fn a_device_that_fails_ends_the_session() {
    let violation = Violation {
        rule: "a work request that failed",
        clause: "a device",
    };
    let mut rig = PairRig::new(8);
    rig.execute(1, Data::In(memory(8)));
    rig.transmit();
    let end = QueuePairEnd::Violation(violation);
    rig.pair.told.push_back(Completion::Ended(end));
    rig.tell(Bhs([0; 48]));
    assert!(rig.receive());
    assert_eq!(rig.pair.recycled, 1, "what comes after the end is dropped");
    assert!(rig.pair.advertised.is_empty());
    assert!(matches!(
        rig.initiator.poll(),
        Some(InitiatorEvent::Failed(_))
    ));
    match rig.initiator.poll() {
        Some(InitiatorEvent::Ended(end)) => assert_eq!(end, SessionEnd::Violated(violation)),
        other => panic!("{other:?}"),
    }
    let mut login = Initiator::over_rdma(Arc::new(config()), NOW, random()).unwrap();
    rig.pair.told.push_back(Completion::Ended(end));
    login.receive(NOW, &mut rig.pair);
    match login.poll() {
        Some(InitiatorEvent::Ended(SessionEnd::Login(LoginError::Violated(why)))) => {
            assert_eq!(why, violation);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_rests_when_its_memory_was_withdrawn() {
    let mut rig = PairRig::new(8);
    rig.execute(1, Data::In(memory(8)));
    rig.transmit();
    rig.initiator
        .manage(NOW, 7, LUN, Tmf::AbortTask(1))
        .unwrap();
    rig.initiator.transmit(&mut rig.pair);
    assert_eq!(rig.pair.advertised.len(), 1, "the abort was not answered");
    let pdu = TaskResponse {
        response: 0,
        information: [0; 3],
        itt: Itt(0x2_fff4),
        stamps: rig.numbers.next_stamps(),
    };
    rig.tell(pdu.encode());
    rig.receive();
    assert!(rig.pair.advertised.is_empty());
    while rig.initiator.poll().is_some() {}
    assert!(rig.initiator.rest().is_ok());
}

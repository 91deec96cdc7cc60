//! Over a queue pair that is played by hand, as a device's would be: it keeps the memory of a read
//! that was given up, has little room, and may not be able to invalidate.

use std::collections::VecDeque;

use rdma::verbs::{
    self, Access, Completion, Limits, QueuePair, QueuePairEnd, ReadId, SendHeader, Stag, Work,
};
use scsi::medium::{HeapLease, Lease as _};
use scsi::task::{Completed, SenseBytes, Tag};
use scsi::violation::Violation;
use scsi::wire::sense::Status;

use super::solicited;
use crate::datamover::iser::IserMover;
use crate::parameters::{Operational, SessionPurpose, Transport};
use crate::session::tests::rig::{FIRST_CMD_SN, FIRST_STAT_SN, LUN, limits, pattern};
use crate::session::{Session, SessionEvent};
use crate::test_support::{config, node, parameters};
use crate::wire::bhs::{Bhs, Itt, Opcode};
use crate::wire::iser::{AdvertisedBuffers, ControlMessage, Hello, HelloReply, IserHeader};
use crate::wire::scsi_command::ScsiCommand;
use crate::wire::serial::{CmdSn, StatSn};

/// What was posted, and what is to be told.
struct Pair {
    limits: Limits,
    posted: Vec<Work<HeapLease>>,
    cancelled: Vec<ReadId>,
    told: VecDeque<Completion<HeapLease>>,
}

impl QueuePair<HeapLease> for Pair {
    fn limits(&self) -> Limits {
        Limits {
            room: self.limits.room - self.posted.len(),
            ..self.limits
        }
    }

    fn advertise(&mut self, _: &HeapLease, _: Access) -> verbs::Tag {
        panic!("a target advertises nothing");
    }

    fn withdraw(&mut self, _: Stag) -> Option<u32> {
        panic!("a target has nothing to withdraw");
    }

    fn post(&mut self, work: Work<HeapLease>) {
        self.posted.push(work);
    }

    fn cancel(&mut self, read: ReadId) -> Option<HeapLease> {
        self.cancelled.push(read);
        None
    }

    fn poll(&mut self) -> Option<Completion<HeapLease>> {
        self.told.pop_front()
    }

    fn recycle(&mut self, _: Vec<u8>) {}
}

struct PairRig {
    session: Session<HeapLease, IserMover<HeapLease>>,
    pair: Pair,
}

const NOW: std::time::Duration = std::time::Duration::ZERO;

const BUFFER: verbs::Tag = verbs::Tag {
    stag: Stag(0x77),
    offset: 0x1000,
};

impl PairRig {
    fn new(room: usize) -> Self {
        Self::with(solicited(), room)
    }

    fn with(mut keys: Operational, room: usize) -> Self {
        keys.transport = Transport::Iser {
            data_segment: keys.own_data_segment,
        };
        let purpose = SessionPurpose::Normal(node());
        let parameters = parameters(keys, purpose, (FIRST_STAT_SN, FIRST_CMD_SN));
        let limits = config(limits());
        Self {
            session: Session::new(parameters, limits, NOW),
            pair: Pair {
                limits: Limits {
                    ord: 2,
                    ird: 2,
                    room,
                    can_invalidate: false,
                    max_receive: 8192,
                },
                posted: Vec::new(),
                cancelled: Vec::new(),
                told: VecDeque::new(),
            },
        }
    }

    fn tell(&mut self, completion: Completion<HeapLease>) {
        self.pair.told.push_back(completion);
        assert!(self.session.receive(NOW, &mut self.pair));
    }

    /// A READ, or a WRITE without immediate data, which is carried out.
    fn command(&mut self, itt: u32, expected: u32, write: bool) -> Tag {
        let pdu = ScsiCommand {
            immediate: false,
            last: true,
            read: !write,
            write,
            attribute: 1,
            priority: 0,
            lun: LUN,
            itt: Itt(itt),
            expected,
            cmd_sn: CmdSn(FIRST_CMD_SN + itt),
            exp_stat_sn: StatSn(FIRST_STAT_SN),
            cdb: [0; 16],
        };
        let header = IserHeader::Control(AdvertisedBuffers {
            write: write.then_some(BUFFER),
            read: (!write).then_some(BUFFER),
        });
        let bytes = [&header.encode()[..], &pdu.encode().0].concat();
        self.tell(Completion::Received {
            bytes,
            invalidated: None,
        });
        match self.session.poll() {
            Some(SessionEvent::Execute(command)) => command.tag,
            other => panic!("{other:?}"),
        }
    }

    fn lend(&mut self, tag: Tag, len: usize) {
        let lease = HeapLease::from_bytes(vec![0; len]);
        self.session.receive_data_out(tag, 0, lease);
    }

    fn good(&mut self, tag: Tag, length: u64) {
        let completed = Completed {
            status: Status::Good,
            sense: SenseBytes::EMPTY,
            qualifier: 0,
            length_in: length,
            length_out: length,
        };
        self.session.complete(tag, &completed);
    }

    /// What is posted now, in words; all of it has left.
    fn posts(&mut self) -> Vec<String> {
        self.session.transmit(&mut self.pair);
        let posted = std::mem::take(&mut self.pair.posted);
        for work in &posted {
            match work {
                Work::Send { .. } => self.pair.told.push_back(Completion::Sent),
                Work::Write { .. } => self.pair.told.push_back(Completion::Written),
                Work::Read { .. } => {}
            }
        }
        self.session.receive(NOW, &mut self.pair);
        posted.iter().map(words).collect()
    }
}

fn words(work: &Work<HeapLease>) -> String {
    match work {
        Work::Write { to, from } => {
            format!("Write {:x}+{:x}: {}", to.stag.0, to.offset, from.len())
        }
        Work::Read { id, from, into } => {
            format!(
                "Read {}: {:x}+{:x}: {}",
                id.0,
                from.stag.0,
                from.offset,
                into.len()
            )
        }
        Work::Send {
            header,
            invalidate: None,
            ..
        } => sent(header),
        Work::Send { .. } => panic!("{work:?} where the peer cannot"),
    }
}

fn sent(header: &SendHeader) -> String {
    let (_, rest) = IserHeader::split(header.as_slice()).unwrap();
    let pdu = ControlMessage::split(rest).unwrap();
    format!("{:?} #{}", pdu.bhs.opcode(), pdu.bhs.itt().0)
}

#[test]
fn nothing_is_invalidated_where_the_peer_cannot() {
    let mut rig = PairRig::new(8);
    let tag = rig.command(0, 512, false);
    rig.session
        .send_data_in(tag, 0, HeapLease::from_bytes(pattern(512)));
    rig.good(tag, 512);
    assert_eq!(rig.posts(), ["Write 77+1000: 512", "ScsiResponse #0"]);
}

#[test]
fn no_more_is_posted_than_there_is_room_for() {
    let mut rig = PairRig::new(3);
    let tag = rig.command(0, 4096, false);
    for part in 0..4 {
        let data = HeapLease::from_bytes(vec![part; 1024]);
        rig.session.send_data_in(tag, u32::from(part) * 1024, data);
    }
    rig.good(tag, 4096);
    let write = rig.command(1, 512, true);
    rig.lend(write, 512);
    let first = [
        "Read 0: 77+1000: 512",
        "Write 77+1000: 1024",
        "Write 77+1400: 1024",
    ];
    assert_eq!(rig.posts(), first);
    assert_eq!(rig.session.data_in_queued(), 2048);
    let second = [
        "Write 77+1800: 1024",
        "Write 77+1c00: 1024",
        "ScsiResponse #0",
    ];
    assert_eq!(rig.posts(), second);
    assert_eq!(rig.session.data_in_queued(), 0);
}

/// A device fills the memory of a read that was given up until it is told to be over.
#[test]
fn memory_of_a_read_that_was_given_up_comes_back_with_its_completion() {
    let mut rig = PairRig::new(8);
    let tag = rig.command(0, 6144, true);
    rig.lend(tag, 6144);
    let reads = ["Read 0: 77+1000: 2048", "Read 1: 77+1800: 2048"];
    assert_eq!(rig.posts(), reads, "ORD is 2");
    let mut bhs = Bhs::new(Opcode::TaskRequest);
    // ABORT TASK #0, immediate.
    (bhs.0[0], bhs.0[1], bhs.0[19]) = (0x42, 0x81, 9);
    bhs.0[35] = FIRST_CMD_SN as u8;
    bhs.0[27] = FIRST_CMD_SN as u8 + 1;
    let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
    let bytes = [&header[..], &bhs.0].concat();
    rig.tell(Completion::Received {
        bytes,
        invalidated: None,
    });
    let Some(SessionEvent::Manage { id, .. }) = rig.session.poll() else {
        panic!("no task management")
    };
    rig.session.aborted(tag);
    rig.session
        .managed(id, scsi::task::FunctionResult::Complete);
    assert_eq!(rig.posts(), [""; 0]);
    rig.pair.cancelled.sort_by_key(|read| read.0);
    assert_eq!(rig.pair.cancelled, [ReadId(0), ReadId(1)]);
    for id in [0, 1] {
        assert_eq!(rig.posts(), [""; 0]);
        let into = HeapLease::from_bytes(vec![0; 2048]);
        rig.tell(Completion::Got {
            id: ReadId(id),
            into,
        });
    }
    assert_eq!(rig.posts(), ["TaskResponse #9"]);
    assert!(rig.session.poll().is_none(), "nothing was told of the data");
}

/// A core posts nothing while a send is in flight, but what comes is received all the same.
#[test]
fn reads_are_given_up_without_anything_being_posted() {
    let mut rig = PairRig::new(8);
    let tag = rig.command(0, 6144, true);
    rig.lend(tag, 6144);
    assert_eq!(rig.posts().len(), 2);
    rig.session.aborted(tag);
    assert!(rig.session.settle(&mut rig.pair));
    rig.pair.cancelled.sort_by_key(|read| read.0);
    assert_eq!(rig.pair.cancelled, [ReadId(0), ReadId(1)]);
    assert!(!rig.session.settle(&mut rig.pair), "once");
}

#[test]
fn what_receiving_leads_to_is_settled_at_once() {
    let mut rig = PairRig::new(8);
    let tag = rig.command(0, 4096, true);
    rig.lend(tag, 4096);
    assert_eq!(rig.posts().len(), 2);
    rig.session.aborted(tag);
    // It is over before it was given up.
    let into = HeapLease::from_bytes(vec![0; 2048]);
    rig.tell(Completion::Got {
        id: ReadId(1),
        into,
    });
    rig.pair.cancelled.sort_by_key(|read| read.0);
    assert_eq!(rig.pair.cancelled, [ReadId(0), ReadId(1)]);
    assert!(rig.session.poll().is_none());
}

#[test]
fn transmit_tells_of_an_end_that_it_led_to() {
    let mut rig = PairRig::new(8);
    rig.pair.limits.ord = 0;
    let tag = rig.command(0, 512, true);
    rig.lend(tag, 512);
    assert!(rig.session.transmit(&mut rig.pair));
    assert!(matches!(
        rig.session.poll(),
        Some(SessionEvent::Close(why)) if why.rule == "a connection without RDMA Reads"
    ));
    rig.posts();
    assert!(!rig.session.transmit(&mut rig.pair));
}

#[test]
fn reads_may_come_in_any_order() {
    let mut rig = PairRig::new(8);
    let tag = rig.command(0, 4096, true);
    rig.lend(tag, 4096);
    assert_eq!(rig.posts().len(), 2);
    for id in [1, 0] {
        assert!(rig.session.poll().is_none());
        let into = HeapLease::from_bytes(vec![0; 2048]);
        rig.tell(Completion::Got {
            id: ReadId(id),
            into,
        });
    }
    match rig.session.poll() {
        Some(SessionEvent::DataOut { offset, data, .. }) => {
            assert_eq!((offset, data.len()), (0, 4096));
        }
        other => panic!("{other:?}"),
    }
}

/// The initiator would serve reads, but this end has none: RFC 7145 §5.1.3.
#[test]
fn a_hello_is_refused_where_no_reads_can_be_posted() {
    let mut keys = solicited();
    keys.iser.hello_required = true;
    let mut rig = PairRig::with(keys, 8);
    rig.pair.limits.ord = 0;
    let hello = IserHeader::Hello(Hello {
        max_version: 10,
        min_version: 10,
        ird: 4,
    });
    rig.tell(Completion::Received {
        bytes: hello.encode().to_vec(),
        invalidated: None,
    });
    assert!(matches!(
        rig.session.poll(),
        Some(SessionEvent::Close(why)) if why.rule == "a connection without RDMA Reads"
    ));
    assert!(rig.session.transmit(&mut rig.pair));
    let [Work::Send { header, .. }] = &rig.pair.posted[..] else {
        panic!("{:?}", rig.pair.posted)
    };
    let reply = IserHeader::HelloReply(HelloReply {
        reject: true,
        max_version: 10,
        current_version: 10,
        ord: 0,
    });
    assert_eq!(header.as_slice(), reply.encode());
}

#[test]
fn completions_of_nothing_are_borne() {
    let mut rig = PairRig::new(8);
    rig.command(0, 512, true);
    rig.tell(Completion::Sent);
    rig.tell(Completion::Written);
    rig.tell(Completion::Drained(ReadId(7)));
    let into = HeapLease::from_bytes(vec![0; 8]);
    rig.tell(Completion::Got {
        id: ReadId(7),
        into,
    });
    assert!(rig.session.poll().is_none());
}

#[test]
fn a_queue_pair_that_ends_ends_the_session() {
    let violation = Violation {
        rule: "a rule",
        clause: "a clause",
    };
    let mut rig = PairRig::new(8);
    rig.tell(Completion::Ended(QueuePairEnd::Violation(violation)));
    match rig.session.poll() {
        Some(SessionEvent::Close(why)) => assert_eq!(why, violation),
        other => panic!("{other:?}"),
    }
    let mut rig = PairRig::new(8);
    rig.tell(Completion::Ended(QueuePairEnd::Requested));
    assert!(rig.session.poll().is_none(), "who asked for it knows");
}

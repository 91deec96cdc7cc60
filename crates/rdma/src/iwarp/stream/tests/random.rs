//! Two ends, random work, and wires that split anywhere: in the end each memory holds what was
//! meant for it, and each message has come once, in order. Markers are taken out on the way, as
//! only hardware asks for them.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use scsi::medium::{HeapLease, Lease as _};

use crate::iwarp::fpdu::tests::markers::MarkedReader;
use crate::iwarp::startup::{Agreed, MpaRole};
use crate::iwarp::stream::{Stream, StreamConfig};
use crate::test_support::{Sink, agreed, bytes_of, fpdu, pattern};
use crate::verbs::{Access, Completion, QueuePair as _, ReadId, SendHeader, Stag, Tag, Work};

/// Bytes in each buffer that is advertised.
const BUFFER: usize = 3000;

/// An operation, as numbers that lead to a valid one.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send { header: usize, data: usize },
    Invalidate,
    Write { at: usize, len: usize },
    Read { at: usize, len: usize },
    Cancel,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..=SendHeader::MAX, 0..3000usize).prop_map(|(header, data)| Step::Send { header, data }),
        (0..BUFFER, 0..BUFFER).prop_map(|(at, len)| Step::Write { at, len }),
        (0..BUFFER, 0..BUFFER).prop_map(|(at, len)| Step::Read { at, len }),
        Just(Step::Cancel),
        Just(Step::Invalidate),
    ]
}

/// One end, and what has to come of its work.
struct End {
    stream: Stream<HeapLease>,
    /// What the other end may write to, and read from.
    written: HeapLease,
    read: HeapLease,
    /// Where those of the other end are.
    there: [Tag; 2],
    /// What of the other end's memory has to be in the end, by our writes.
    expected: Vec<u8>,
    /// STags of the other end that may be invalidated.
    spare: Vec<Stag>,
    /// Messages that were posted, and those that came, with what they invalidate.
    posted: Vec<(Vec<u8>, Option<Stag>)>,
    received: Vec<(Vec<u8>, Option<Stag>)>,
    /// Reads by number: where they begin, and what they fill.
    reads: Vec<(usize, HeapLease)>,
    cancelled: Vec<ReadId>,
    got: Vec<ReadId>,
    drained: Vec<ReadId>,
    /// Bytes that were asked for, so that it stays within what is allowed.
    asked: usize,
    /// Bytes on their way to the other end.
    wire: VecDeque<u8>,
    unmarked: Option<MarkedReader>,
    sends_done: usize,
}

impl End {
    fn new(agreed: Agreed, config: &StreamConfig) -> Self {
        let mut read = HeapLease::from_bytes(pattern(BUFFER));
        read.copy_in(0, &[config.random[0]; 9]);
        Self {
            stream: Stream::new(agreed, config),
            written: HeapLease::from_bytes(vec![0; BUFFER]),
            read,
            there: [Tag {
                stag: Stag(0),
                offset: 0,
            }; 2],
            expected: vec![0; BUFFER],
            spare: Vec::new(),
            posted: Vec::new(),
            received: Vec::new(),
            reads: Vec::new(),
            cancelled: Vec::new(),
            got: Vec::new(),
            drained: Vec::new(),
            asked: 0,
            wire: VecDeque::new(),
            unmarked: agreed.markers.then(MarkedReader::default),
            sends_done: 0,
        }
    }

    fn advertise(&mut self) -> [Tag; 2] {
        let written = self.stream.advertise(&self.written, Access::Write);
        [written, self.stream.advertise(&self.read, Access::Read)]
    }

    /// Buffers that are only advertised to be invalidated.
    fn advertise_spare(&mut self) -> Vec<Stag> {
        let buffer = HeapLease::from_bytes(vec![0; 1]);
        let tags = (0..5).map(|_| self.stream.advertise(&buffer, Access::Write));
        tags.map(|tag| tag.stag).collect()
    }

    fn post(&mut self, step: Step) {
        match step {
            Step::Send { header, data } => self.send(header, data, None),
            Step::Invalidate => {
                let invalidate = self.spare.pop();
                self.send(20, 500, invalidate);
            }
            Step::Write { at, len } => self.write(at, len.min(BUFFER - at)),
            Step::Read { at, len } => self.read(at, len.min(BUFFER - at)),
            Step::Cancel => self.cancel(),
        }
    }

    fn send(&mut self, header: usize, data: usize, invalidate: Option<Stag>) {
        let mut message = pattern(header + data);
        let count = self.posted.len() as u8;
        message.iter_mut().for_each(|byte| *byte ^= count);
        let (header, data) = message.split_at(header);
        self.stream.post(Work::Send {
            header: SendHeader::new(&[header]).unwrap(),
            data: Some(HeapLease::from_bytes(data.to_vec())),
            invalidate,
        });
        self.posted.push((message, invalidate));
    }

    fn write(&mut self, at: usize, len: usize) {
        let mut data = pattern(len);
        data.iter_mut().for_each(|byte| *byte ^= at as u8);
        self.expected[at..at + len].copy_from_slice(&data);
        self.stream.post(Work::Write {
            to: self.there[0].plus(at as u64),
            from: HeapLease::from_bytes(data),
        });
    }

    fn read(&mut self, at: usize, len: usize) {
        if self.asked + len > 4 * BUFFER {
            return;
        }
        self.asked += len;
        let into = HeapLease::from_bytes(vec![0; len]);
        self.stream.post(Work::Read {
            id: ReadId(self.reads.len() as u32),
            from: self.there[1].plus(at as u64),
            into: into.clone(),
        });
        self.reads.push((at, into));
    }

    /// The newest read, if it is under way.
    fn cancel(&mut self) {
        let Some(newest) = self.reads.len().checked_sub(1) else {
            return;
        };
        let id = ReadId(newest as u32);
        if self.stream.cancel(id).is_some() {
            self.cancelled.push(id);
        }
    }

    /// Takes a part of what is on the wire of `other`.
    fn hear(&mut self, other: &mut Self, len: usize) {
        let len = len.min(other.wire.len());
        let bytes: Vec<_> = other.wire.iter().take(len).copied().collect();
        let used = self.stream.receive(&bytes);
        other.wire.drain(..used);
        self.poll();
    }

    fn poll(&mut self) {
        while let Some(completion) = self.stream.poll() {
            match completion {
                Completion::Sent => self.sends_done += 1,
                Completion::Written => {}
                Completion::Got { id, .. } => self.got.push(id),
                Completion::Drained(id) => self.drained.push(id),
                Completion::Received { bytes, invalidated } => {
                    self.received.push((bytes.clone(), invalidated));
                    self.stream.recycle(bytes);
                }
                Completion::Ended(end) => panic!("{end:?}"),
            }
        }
    }

    /// Puts a batch on the wire.
    fn say(&mut self, limit: usize) {
        let mut sink = Sink::limited(limit);
        self.stream.transmit(&mut sink);
        match &mut self.unmarked {
            None => self.wire.extend(sink.bytes),
            Some(reader) => {
                let ulpdus = reader.read(&sink.bytes);
                self.wire
                    .extend(ulpdus.iter().flat_map(|ulpdu| fpdu(ulpdu)));
            }
        }
    }

    /// What has to be true when nothing is under way.
    fn check(&self, other: &Self) {
        assert_eq!(bytes_of(&other.written), self.expected);
        assert_eq!(other.received, self.posted);
        assert_eq!(self.sends_done, self.posted.len());
        let sorted = |ids: &[ReadId]| ids.iter().map(|id| id.0).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&self.drained), sorted(&self.cancelled));
        assert_eq!(self.got.len() + self.drained.len(), self.reads.len());
        assert!(self.got.is_sorted_by_key(|id| id.0));
        for id in &self.got {
            let (at, into) = &self.reads[id.0 as usize];
            let source = other.read.slice(*at, into.len());
            assert_eq!(source.difference(into), None, "{id:?}");
        }
    }
}

/// How the wires behave and how the two ends are set.
#[derive(Clone, Debug)]
struct Setting {
    crc: bool,
    /// The initiator has to send markers.
    markers: bool,
    ord: u16,
    segment_size: usize,
    /// Sizes of parts that arrive, over and over.
    parts: Vec<usize>,
}

fn setting() -> impl Strategy<Value = Setting> {
    let parts = proptest::collection::vec(prop_oneof![1..8usize, 1..4000usize], 1..20);
    let flags = (any::<bool>(), any::<bool>());
    let rest = (1..5u16, 0..3000usize, parts);
    (flags, rest).prop_map(|((crc, markers), (ord, segment_size, parts))| Setting {
        crc,
        markers,
        ord,
        segment_size,
        parts,
    })
}

fn pair(setting: &Setting) -> (End, End) {
    let end = |role, random| {
        let markers = setting.markers && role == MpaRole::Initiator;
        let agreed = Agreed {
            crc: setting.crc || setting.markers,
            markers,
            ord: setting.ord,
            ..agreed(role)
        };
        let config = StreamConfig {
            segment_size: setting.segment_size,
            max_receive: 4096,
            can_invalidate: true,
            random: [random; 32],
        };
        End::new(agreed, &config)
    };
    let (mut a, mut b) = (end(MpaRole::Initiator, 1), end(MpaRole::Responder, 2));
    (a.there, b.there) = (b.advertise(), a.advertise());
    (a.spare, b.spare) = (b.advertise_spare(), a.advertise_spare());
    // What the responder waits for.
    a.post(Step::Send { header: 5, data: 0 });
    a.say(0);
    (a, b)
}

proptest! {
    #[test]
    fn two_ends_with_random_work(
        steps in proptest::collection::vec((any::<bool>(), step()), 0..40),
        setting in setting(),
    ) {
        let (mut a, mut b) = pair(&setting);
        let mut parts = setting.parts.iter().copied().cycle();
        let mut steps = steps.into_iter();
        loop {
            let step = steps.next();
            let has_step = step.is_some();
            if let Some((is_a, step)) = step {
                if is_a { a.post(step) } else { b.post(step) }
            }
            let mut part = || parts.next().unwrap_or(1);
            a.say(part());
            b.say(part());
            let is_silent = a.wire.is_empty() && b.wire.is_empty();
            a.hear(&mut b, part());
            b.hear(&mut a, part());
            if !has_step && is_silent {
                break;
            }
        }
        a.check(&b);
        b.check(&a);
    }
}

//! The rig over software iWARP: two ends of a connection, and a target behind the other end. Bytes
//! cross to the initiator in pieces of ever other sizes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rdma::iwarp::startup::{Agreed, MpaRole};
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::iwarp::terminate::TerminateCode;
use rdma::test_support::{agreed, sent};
use rdma::verbs::{Completion, QueuePair as _, QueuePairEnd, ReadId, SendHeader, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::{Carrier, IserRig, bytes_of, pattern, random};
use crate::initiator::Initiator;
use crate::initiator::config::InitiatorConfig;
use crate::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use crate::parameters::Operational;
use crate::wire::bhs::Bhs;
use crate::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};

/// Both ends of the connection.
pub(in crate::initiator::tests) struct Iser {
    pub(in crate::initiator::tests) ours: Stream<HeapLease>,
    pub(in crate::initiator::tests) theirs: Stream<HeapLease>,
    /// Bytes that the initiator has not taken.
    pending: Vec<u8>,
    /// How many bytes cross at once next.
    piece: usize,
    /// By Initiator Task Tag.
    advertised: BTreeMap<u32, AdvertisedBuffers>,
    /// Messages that came to the target.
    messages: VecDeque<Vec<u8>>,
    /// What the target has read.
    got: Vec<Vec<u8>>,
    /// How the target's end was told to end.
    pub(in crate::initiator::tests) ended: Option<QueuePairEnd>,
}

/// The length of a piece that follows one: odd, and different from it.
const fn next_piece(piece: usize) -> usize {
    ((piece * 3 + 2) % 127) | 1
}

fn stream(role: MpaRole) -> Stream<HeapLease> {
    let config = StreamConfig {
        segment_size: 301,
        max_receive: if role == MpaRole::Initiator {
            MAX_MESSAGE
        } else {
            1 << 17
        },
        can_invalidate: true,
        random: [role as u8; 32],
    };
    // The target's end keeps to no ORD of its own, so that it can break that of the initiator.
    let ord = if role == MpaRole::Initiator { 4 } else { 100 };
    let agreed = agreed(role);
    Stream::new(Agreed { ord, ..agreed }, &config)
}

impl Carrier for Iser {
    type Mover = InitiatorIserMover;

    const AGREED: &'static str = "MaxConnections=1|InitialR2T=Yes|ImmediateData=Yes|\
        MaxBurstLength=2048|FirstBurstLength=1024|DefaultTime2Wait=2|DefaultTime2Retain=0|\
        MaxOutstandingR2T=2|DataPDUInOrder=Yes|DataSequenceInOrder=Yes|ErrorRecoveryLevel=0|\
        TaskReporting=RFC3720|iSCSIProtocolLevel=2|RDMAExtensions=Yes|\
        TargetRecvDataSegmentLength=512|InitiatorRecvDataSegmentLength=4096|";

    fn connect(config: InitiatorConfig) -> (Initiator<HeapLease, InitiatorIserMover>, Self) {
        let carrier = Self {
            ours: stream(MpaRole::Initiator),
            theirs: stream(MpaRole::Responder),
            pending: Vec::new(),
            piece: 1,
            advertised: BTreeMap::new(),
            messages: VecDeque::new(),
            got: Vec::new(),
            ended: None,
        };
        let initiator = Initiator::over_rdma(Arc::new(config), Duration::ZERO, random());
        (initiator.unwrap(), carrier)
    }

    fn agree(&mut self, _: &Operational) {}

    fn give(rig: &mut IserRig, bhs: Bhs, data: &[u8]) {
        rig.give_pdu(bhs, data, None);
    }

    fn pdus(rig: &mut IserRig) -> Vec<(Bhs, Vec<u8>)> {
        rig.cross();
        let messages = std::mem::take(&mut rig.carrier.messages);
        let pdus = messages.iter().map(|message| rig.pdu(message));
        pdus.collect()
    }
}

impl IserRig {
    /// A PDU of a message; what it advertises is noted.
    fn pdu(&mut self, message: &[u8]) -> (Bhs, Vec<u8>) {
        let (header, rest) = IserHeader::split(message).unwrap();
        let pdu = ControlMessage::split(rest).unwrap();
        let IserHeader::Control(buffers) = header else {
            panic!("{header:?} of an initiator");
        };
        self.carrier.advertised.insert(pdu.bhs.itt().0, buffers);
        (pdu.bhs, pdu.data.to_vec())
    }

    /// A PDU comes, with an STag that it invalidates.
    pub(in crate::initiator::tests) fn give_pdu(
        &mut self,
        mut bhs: Bhs,
        data: &[u8],
        invalidate: Option<Stag>,
    ) {
        bhs.set_data_len(data.len() as u32);
        let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
        let padding = &[0; 3][..data.len().next_multiple_of(4) - data.len()];
        self.give_raw(&[&header[..], &bhs.0, data, padding].concat(), invalidate);
    }

    /// A message comes.
    pub(in crate::initiator::tests) fn give_raw(
        &mut self,
        message: &[u8],
        invalidate: Option<Stag>,
    ) {
        self.post(Work::Send {
            header: SendHeader::new(&[]).unwrap(),
            data: Some(HeapLease::from_bytes(message.to_vec())),
            invalidate,
        });
    }

    /// The target does this.
    pub(in crate::initiator::tests) fn post(&mut self, work: Work<HeapLease>) {
        self.carrier.theirs.post(work);
        self.back();
    }

    /// What a command has advertised: for a write, for a read.
    pub(in crate::initiator::tests) fn buffers(&self, itt: u32) -> (Option<Tag>, Option<Tag>) {
        let buffers = self.carrier.advertised[&itt];
        (buffers.write, buffers.read)
    }

    /// Where the target reaches the memory of a command.
    #[track_caller]
    pub(in crate::initiator::tests) fn tag(&self, itt: u32) -> Tag {
        let buffers = self.carrier.advertised[&itt];
        let tag = buffers.read.or(buffers.write);
        tag.expect("memory")
    }

    /// So many bytes of the pattern are written into the memory of a command.
    pub(in crate::initiator::tests) fn put(&mut self, itt: u32, at: usize, len: usize) {
        let to = self.tag(itt).plus(at as u64);
        let from = HeapLease::from_bytes(pattern(at + len)[at..].to_vec());
        self.post(Work::Write { to, from });
    }

    /// So many bytes of the memory of a command are read.
    pub(in crate::initiator::tests) fn get(&mut self, itt: u32, at: usize, len: usize) {
        self.get_from(self.tag(itt).plus(at as u64), len);
    }

    pub(in crate::initiator::tests) fn get_from(&mut self, from: Tag, len: usize) {
        let into = HeapLease::from_bytes(vec![0; len]);
        let id = ReadId(self.carrier.got.len() as u32);
        self.post(Work::Read { id, from, into });
    }

    /// What the target has read by now.
    pub(in crate::initiator::tests) fn got(&mut self) -> Vec<Vec<u8>> {
        self.cross();
        std::mem::take(&mut self.carrier.got)
    }

    /// Bytes cross both ways until neither end has any.
    fn cross(&mut self) {
        loop {
            self.initiator.transmit(&mut self.carrier.ours);
            let bytes = sent(&mut self.carrier.ours);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                rest = &rest[self.carrier.theirs.receive(rest)..];
                self.hear();
            }
            if bytes.is_empty() {
                return;
            }
            self.back();
        }
    }

    /// The target hears what its end tells.
    fn hear(&mut self) {
        while let Some(completion) = self.carrier.theirs.poll() {
            match completion {
                Completion::Received { bytes, invalidated } => {
                    assert_eq!(invalidated, None);
                    self.carrier.messages.push_back(bytes);
                }
                Completion::Got { into, .. } => self.carrier.got.push(bytes_of(&into)),
                Completion::Ended(why) => self.carrier.ended = Some(why),
                _ => {}
            }
        }
    }

    /// Bytes of the target come to the initiator.
    pub(in crate::initiator::tests) fn back(&mut self) {
        let bytes = sent(&mut self.carrier.theirs);
        self.give(&bytes);
    }

    pub(in crate::initiator::tests) fn give(&mut self, bytes: &[u8]) {
        let pending = std::mem::take(&mut self.carrier.pending);
        let all = [&pending[..], bytes].concat();
        let mut rest = &all[..];
        while self.take_in() && !rest.is_empty() {
            self.carrier.piece = next_piece(self.carrier.piece);
            let piece = &rest[..self.carrier.piece.min(rest.len())];
            rest = &rest[self.carrier.ours.receive(piece)..];
            self.initiator.heard(self.now);
        }
        self.carrier.pending = rest.to_vec();
    }

    /// The initiator takes in what its end tells; whether that was all.
    fn take_in(&mut self) -> bool {
        loop {
            let all = self.initiator.receive(self.now, &mut self.carrier.ours);
            let before = self.events.len();
            self.poll();
            if !all && self.initiator.is_stalled() {
                self.initiator.transmit(&mut self.carrier.ours);
            } else if all || self.events.len() == before {
                return all;
            }
        }
    }
}

impl IserRig {
    /// Which rule the initiator's end has told the target.
    #[track_caller]
    pub(in crate::initiator::tests) fn terminated(&mut self) -> &'static str {
        let bytes = sent(&mut self.carrier.ours);
        self.carrier.theirs.receive(&bytes);
        self.hear();
        match self.carrier.ended {
            Some(QueuePairEnd::ByPeer { code, .. }) => {
                TerminateCode::from_bits(code).violation().rule
            }
            other => panic!("{other:?} where a Terminate was expected"),
        }
    }
}

//! RDMA: messages, and a target that writes and reads the memory which commands have advertised. A
//! Data-In of the script becomes an RDMA Write, an R2T an RDMA Read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use iscsi::initiator::Initiator;
use iscsi::initiator::config::{InitiatorConfig, Misconfigured};
use iscsi::initiator::iser::{InitiatorIserMover, MAX_MESSAGE};
use iscsi::test_support::bytes_of;
use iscsi::wire::bhs::{BHS_LEN, Bhs, Itt, Opcode};
use iscsi::wire::data::{DataIn, R2t};
use iscsi::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};
use iscsi::wire::scsi_command::{ScsiCommand, ScsiResponse};
use iscsi::wire::serial::DataSn;
use rdma::verbs::{Access, Completion, Limits, QueuePair, QueuePairEnd, ReadId, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};
use scsi::received::ReceivedBytes;
use scsi::residual::Residual;

use super::super::script::Script;
use super::watch::pattern;
use super::{Carrier, Play};

/// A queue pair, and what the initiator has advertised by it.
pub(super) struct Rdma {
    room: usize,
    /// It knows what was moved by an STag.
    knows: bool,
    /// What was posted since this was looked at last.
    posted: Vec<Work<HeapLease>>,
    /// How many messages were not told to have left.
    unsent: usize,
    told: VecDeque<Completion<HeapLease>>,
    advertised: BTreeMap<u32, Advertised>,
    next_stag: u32,
    /// The STag of each command that has one.
    by_command: BTreeMap<u32, Stag>,
    /// The initiator was told so.
    has_ended: bool,
}

/// A buffer of the initiator.
struct Advertised {
    memory: HeapLease,
    may: Access,
    moved: ReceivedBytes,
    is_invalidated: bool,
}

impl QueuePair<HeapLease> for Rdma {
    fn limits(&self) -> Limits {
        Limits {
            ord: 0,
            ird: 4,
            room: self.room.saturating_sub(self.posted.len() + self.unsent),
            can_invalidate: false,
            max_receive: MAX_MESSAGE,
        }
    }

    fn advertise(&mut self, of: &HeapLease, may: Access) -> Tag {
        assert!(!of.is_empty(), "an STag of no memory");
        self.next_stag += 1;
        let buffer = Advertised {
            memory: of.clone(),
            may,
            moved: ReceivedBytes::default(),
            is_invalidated: false,
        };
        self.advertised.insert(self.next_stag, buffer);
        Tag {
            stag: Stag(self.next_stag),
            offset: 0,
        }
    }

    fn withdraw(&mut self, stag: Stag) -> Option<u32> {
        let buffer = self.advertised.remove(&stag.0);
        let buffer = buffer.expect("an STag is withdrawn once");
        self.knows.then(|| buffer.moved.next())
    }

    fn post(&mut self, work: Work<HeapLease>) {
        assert!(self.limits().room > 0 && !self.has_ended, "no room");
        self.posted.push(work);
    }

    fn cancel(&mut self, _: ReadId) -> Option<HeapLease> {
        panic!("an initiator reads nothing");
    }

    fn poll(&mut self) -> Option<Completion<HeapLease>> {
        let told = self.told.pop_front();
        self.has_ended |= matches!(told, Some(Completion::Ended(_)));
        told
    }

    fn recycle(&mut self, _: Vec<u8>) {}
}

impl Rdma {
    /// The buffer of a command, if `len` bytes at `offset` are inside and the target may reach it
    /// in that way: a queue pair lets nothing else happen.
    fn reach(&mut self, itt: Itt, way: Access, offset: u32, len: u32) -> Option<&mut Advertised> {
        let stag = self.by_command.get(&itt.0)?;
        let buffer = self.advertised.get_mut(&stag.0)?;
        let end = u64::from(offset) + u64::from(len);
        let is_open = buffer.may == way && !buffer.is_invalidated;
        (is_open && end <= buffer.memory.len() as u64).then_some(buffer)
    }

    fn write(&mut self, pdu: &DataIn, data: &[u8]) {
        let len = data.len() as u32;
        if let Some(buffer) = self.reach(pdu.itt, Access::Write, pdu.offset, len)
            && buffer.moved.add(pdu.offset, pdu.offset + len)
        {
            buffer.memory.copy_in(pdu.offset as usize, data);
        }
    }

    fn read(&mut self, pdu: &R2t) {
        let (offset, len) = (pdu.offset, pdu.desired);
        if let Some(buffer) = self.reach(pdu.itt, Access::Read, offset, len)
            && buffer.moved.add(offset, offset + len)
        {
            let bytes = bytes_of(&buffer.memory.slice(offset as usize, len as usize));
            let expected = (offset as usize..).map(pattern).take(bytes.len());
            assert!(bytes.into_iter().eq(expected), "other bytes are read");
        }
    }

    /// A message comes, and may invalidate something.
    fn message(&mut self, bytes: Vec<u8>, bhs: Option<&Bhs>, manner: usize) {
        let answered = bhs.filter(|bhs| bhs.opcode() == Opcode::ScsiResponse);
        let own = answered.and_then(|bhs| self.by_command.get(&bhs.itt().0));
        let stag = match manner {
            FOREIGN => self.advertised.keys().next().copied().map(Stag),
            odd if odd % 2 == 1 => own.copied(),
            _ => None,
        };
        let buffer = stag.and_then(|stag| self.advertised.get_mut(&stag.0));
        let invalidated = buffer.and_then(|buffer| {
            let is_valid = !std::mem::replace(&mut buffer.is_invalidated, true);
            stag.filter(|_| is_valid)
        });
        self.told
            .push_back(Completion::Received { bytes, invalidated });
    }

    /// A command that is sent has one STag of all of its memory, or brings all of its data.
    fn sent(&mut self, pdu: &ControlMessage<'_>, buffers: AdvertisedBuffers) {
        if pdu.bhs.opcode() != Opcode::ScsiCommand {
            assert_eq!(buffers, AdvertisedBuffers::default());
            return;
        }
        let command = ScsiCommand::decode(&pdu.bhs);
        assert!(command.last, "no Data-Out follows");
        let goes_along = command.write && pdu.data.len() as u32 == command.expected;
        assert!(pdu.data.is_empty() || goes_along, "a part of the data");
        assert_eq!(buffers.read.is_some(), command.read);
        assert_eq!(buffers.write.is_some(), command.write && !goes_along);
        let Some(tag) = buffers.read.or(buffers.write) else {
            self.by_command.remove(&command.itt.0);
            return;
        };
        let buffer = &self.advertised[&tag.stag.0];
        assert_eq!(buffer.memory.len(), command.expected as usize);
        assert_eq!(buffer.may == Access::Write, command.read);
        assert_eq!(tag.offset, 0);
        self.by_command.insert(command.itt.0, tag.stag);
    }
}

impl Carrier for Rdma {
    type Mover = InitiatorIserMover;

    fn new(script: &mut Script<'_>) -> Self {
        Self {
            room: script.pick(&[16, 1, 2, 256]),
            knows: script.flag(),
            posted: Vec::new(),
            unsent: 0,
            told: VecDeque::new(),
            advertised: BTreeMap::new(),
            next_stag: 0,
            by_command: BTreeMap::new(),
            has_ended: false,
        }
    }

    fn initiator(
        config: Arc<InitiatorConfig>,
        random: [u8; 37],
    ) -> Result<Initiator<HeapLease, InitiatorIserMover>, Misconfigured> {
        Initiator::over_rdma(config, Duration::ZERO, random)
    }

    fn knows(&self) -> bool {
        self.knows
    }

    fn give(play: &mut Play<Self>, bytes: &[u8], step: usize) {
        let bhs = bytes.first_chunk().map(|header| Bhs(*header));
        let data = bytes.get(BHS_LEN..).unwrap_or_default();
        let manner = step / 16 % 32;
        let is_raw = manner == RAW;
        match bhs.as_ref().map(Bhs::opcode) {
            Some(Opcode::DataIn) if !is_raw => play.data_in(bytes, data),
            Some(Opcode::R2t) if !is_raw => {
                let pdu = bhs.as_ref().map(R2t::decode);
                pdu.iter().for_each(|pdu| play.carrier.read(pdu));
            }
            _ if manner == END => {
                let end = Completion::Ended(QueuePairEnd::Requested);
                play.carrier.told.push_back(end);
            }
            _ => {
                play.watch.given(bytes);
                let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
                let message = [&header[..], bytes].concat();
                play.carrier.message(message, bhs.as_ref(), manner);
            }
        }
        play.take_in();
    }

    /// With the limit 1 it is not told yet that anything has left.
    fn transmit(play: &mut Play<Self>, limit: usize) {
        play.initiator.transmit(&mut play.carrier);
        for work in std::mem::take(&mut play.carrier.posted) {
            play.carrier.unsent += 1;
            play.leaves(&work);
        }
        if limit != 1 {
            let left = std::mem::take(&mut play.carrier.unsent);
            let told = (0..left).map(|_| Completion::Sent);
            play.carrier.told.extend(told);
        }
    }

    /// What has ended is withdrawn before anything else comes.
    fn told(play: &mut Play<Self>) {
        play.initiator.settle(&mut play.carrier);
        let left = play.carrier.advertised.len();
        assert!(left <= play.commands.len(), "memory of commands that ended");
    }

    fn is_over(play: &mut Play<Self>) {
        play.initiator.settle(&mut play.carrier);
        assert!(play.carrier.advertised.is_empty(), "memory is reached");
        let bytes = vec![0; 76];
        play.carrier.message(bytes, None, 0);
        assert!(play.initiator.receive(play.now, &mut play.carrier));
        assert!(play.initiator.poll().is_none());
        assert!(
            !play.initiator.transmit(&mut play.carrier),
            "something is posted after the end"
        );
    }
}

impl Play<Rdma> {
    /// A Data-In becomes a write, and its status a response.
    fn data_in(&mut self, bytes: &[u8], data: &[u8]) {
        let Some(header) = bytes.first_chunk() else {
            return;
        };
        let bhs = Bhs(*header);
        let pdu = DataIn::decode(&bhs);
        let len = (bhs.data_len() as usize).min(data.len());
        self.carrier.write(&pdu, &data[..len]);
        let Some(ending) = pdu.status else {
            return;
        };
        let response = ScsiResponse {
            residual: ending.residual,
            read_residual: Residual::Exact,
            response: 0,
            status: ending.status,
            qualifier: 0,
            itt: pdu.itt,
            snack_tag: 0,
            stamps: pdu.stamps,
            exp_data_sn: DataSn(0),
        };
        let bhs = response.encode();
        self.watch.given(&bhs.0);
        let header = IserHeader::Control(AdvertisedBuffers::default()).encode();
        let message = [&header[..], &bhs.0].concat();
        self.carrier.message(message, Some(&bhs), len);
    }

    fn take_in(&mut self) {
        while !self.initiator.receive(self.now, &mut self.carrier) {
            if self.events() == 0 {
                let is_stalled = self.initiator.is_stalled();
                assert!(is_stalled, "a message waits without a reason");
                self.transmit(0);
            }
        }
        self.events();
    }

    /// A message leaves.
    fn leaves(&mut self, work: &Work<HeapLease>) {
        let Work::Send {
            header,
            data,
            invalidate: None,
        } = work
        else {
            panic!("{work:?} of an initiator");
        };
        let data = data.as_ref().map(bytes_of).unwrap_or_default();
        let message = [header.as_slice(), &data].concat();
        let split = IserHeader::split(&message).expect(IS_READ);
        let (IserHeader::Control(buffers), rest) = split else {
            panic!("{:?} of an initiator", split.0);
        };
        let pdu = ControlMessage::split(rest).expect(IS_READ);
        self.carrier.sent(&pdu, buffers);
        let mut bytes = rest.to_vec();
        bytes.resize(rest.len().next_multiple_of(4), 0);
        self.watch.sent(&bytes);
    }
}

/// In which manner a PDU comes: most messages that are odd invalidate the STag of their command.
const FOREIGN: usize = 1;
const RAW: usize = 2;
const END: usize = 31;

/// What is sent can be read.
const IS_READ: &str = "a message that can be read";

//! A rig over software iWARP: two ends of a connection, and an initiator behind the other end that
//! advertises what its commands move. Bytes cross in pieces of ever other sizes.

use std::collections::BTreeMap;

use rdma::iwarp::ddp::{DdpHeader, ReadRequest};
use rdma::iwarp::startup::MpaRole;
use rdma::iwarp::stream::{Stream, StreamConfig};
use rdma::test_support::{agreed, fpdu, sent, ulpdus};
use rdma::verbs::{Access, Completion, QueuePair as _, QueuePairEnd, SendHeader, Stag, Tag, Work};
use scsi::medium::{HeapLease, Lease as _};

use super::trace::{line, numbers};
use super::{Carrier, IserRig, bytes_of, pattern};
use crate::datamover::iser::IserMover;
use crate::parameters::{Operational, Transport};
use crate::wire::bhs::{Bhs, Opcode};
use crate::wire::iser::{AdvertisedBuffers, ControlMessage, IserHeader};
use crate::wire::scsi_command::ScsiCommand;

/// Both ends of the connection, and the initiator's memory.
pub(in crate::session::tests) struct IserPeer {
    ours: Stream<HeapLease>,
    pub(in crate::session::tests) theirs: Stream<HeapLease>,
    /// Bytes that the session has not taken.
    pending: Vec<u8>,
    /// How many bytes cross at once next.
    piece: usize,
    /// By Initiator Task Tag: what was advertised for commands that were not answered.
    advertised: BTreeMap<u32, Vec<(Stag, HeapLease)>>,
    /// The same of the last command that was answered, as it was then.
    answered: Vec<(Stag, HeapLease)>,
    /// Size of each RDMA Read that was asked for.
    pub(in crate::session::tests) requests: Vec<u32>,
    /// Read requests that it has not heard.
    withheld: Vec<u8>,
    /// Read requests are not heard.
    pub(in crate::session::tests) is_silent: bool,
    /// Where the response to the last of them is to go.
    pub(in crate::session::tests) sink: Option<Tag>,
    /// The code of the Terminate that it was sent.
    pub(in crate::session::tests) terminated: Option<u16>,
}

/// The length of a piece that follows one: odd, and different from it.
const fn next_piece(piece: usize) -> usize {
    ((piece * 3 + 2) % 127) | 1
}

fn stream(role: MpaRole) -> Stream<HeapLease> {
    let config = StreamConfig {
        segment_size: 301,
        max_receive: 1 << 16,
        can_invalidate: true,
        random: [role as u8; 32],
    };
    Stream::new(agreed(role), &config)
}

impl Carrier for IserMover<HeapLease> {
    type Peer = IserPeer;

    fn connect(keys: &mut Operational) -> IserPeer {
        keys.transport = Transport::Iser {
            data_segment: keys.own_data_segment,
        };
        keys.iser.rdma_extensions = true;
        keys.iser.target_data_segment = keys.own_data_segment;
        keys.iser.initiator_data_segment = keys.peer_data_segment;
        let mut peer = IserPeer {
            ours: stream(MpaRole::Responder),
            theirs: stream(MpaRole::Initiator),
            pending: Vec::new(),
            piece: 1,
            advertised: BTreeMap::new(),
            answered: Vec::new(),
            requests: Vec::new(),
            withheld: Vec::new(),
            is_silent: false,
            sink: None,
            terminated: None,
        };
        // In place of a login, after which both ends may send.
        peer.post(b"", None);
        let bytes = sent(&mut peer.theirs);
        assert_eq!(peer.ours.receive(&bytes), bytes.len());
        assert!(peer.ours.poll().is_some() && peer.theirs.poll().is_some());
        peer
    }

    fn give(rig: &mut IserRig, mut bhs: Bhs, data: &[u8]) {
        bhs.set_data_len(data.len() as u32);
        let header = rig.peer.advertise(&bhs, &rig.keys, data.len());
        rig.give_message(IserHeader::Control(header), &[&bhs.0[..], data].concat());
    }

    fn sent(rig: &mut IserRig) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            rig.session.transmit(&mut rig.peer.ours);
            let bytes = sent(&mut rig.peer.ours);
            rig.session.has_put_out(!bytes.is_empty());
            rig.take_in();
            for message in rig.peer.hear(&bytes) {
                lines.push(rig.message_line(&message));
            }
            let answers = sent(&mut rig.peer.theirs);
            if bytes.is_empty() && answers.is_empty() && rig.peer.pending.is_empty() {
                return lines;
            }
            rig.cross(&answers);
        }
    }
}

impl IserPeer {
    /// Sends a message.
    fn post(&mut self, header: &[u8], rest: Option<&[u8]>) {
        self.theirs.post(Work::Send {
            header: SendHeader::new(&[header]).unwrap(),
            data: rest.map(|rest| HeapLease::from_bytes(rest.to_vec())),
            invalidate: None,
        });
    }

    /// Advertises what a command needs: write data is that of [`pattern`], the Base Offset that of
    /// the first byte of solicited data, or of all data.
    fn advertise(&mut self, bhs: &Bhs, keys: &Operational, data_len: usize) -> AdvertisedBuffers {
        let mut buffers = AdvertisedBuffers::default();
        if bhs.opcode() != Opcode::ScsiCommand {
            return buffers;
        }
        let pdu = ScsiCommand::decode(bhs);
        let expected = pdu.expected as usize;
        let unsolicited = if pdu.last {
            data_len
        } else {
            expected.min(keys.first_burst as usize)
        };
        let mut kept = Vec::new();
        if pdu.write && expected > unsolicited {
            let skipped = match keys.iser.solicited_only {
                None | Some(true) => unsolicited,
                Some(false) => 0,
            };
            let memory = HeapLease::from_bytes(pattern(expected)[skipped..].to_vec());
            let tag = self.theirs.advertise(&memory, Access::Read);
            kept.push((tag.stag, memory));
            buffers.write = Some(tag);
        }
        if pdu.read && expected > 0 {
            let memory = HeapLease::from_bytes(vec![0; expected]);
            let tag = self.theirs.advertise(&memory, Access::Write);
            kept.push((tag.stag, memory));
            buffers.read = Some(tag);
        }
        self.advertised.entry(pdu.itt.0).or_default().extend(kept);
        buffers
    }

    /// Notes what is asked for; a silent initiator hears nothing of it.
    fn withhold(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut heard = Vec::new();
        if !self.is_silent {
            heard.append(&mut self.withheld);
        }
        for ulpdu in ulpdus(bytes) {
            let (header, payload) = DdpHeader::parse(&ulpdu).unwrap();
            let is_request = matches!(header, DdpHeader::Untagged(header)
                if header.opcode == rdma::iwarp::ddp::Opcode::READ_REQUEST);
            if is_request {
                let request = ReadRequest::parse(payload.first_chunk().unwrap());
                self.requests.push(request.size);
                self.sink = Some(request.sink);
            }
            let silent = is_request && self.is_silent;
            let heard = if silent {
                &mut self.withheld
            } else {
                &mut heard
            };
            heard.extend(fpdu(&ulpdu));
        }
        heard
    }

    /// Messages that have come with these bytes.
    fn hear(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let bytes = self.withhold(bytes);
        let (mut rest, mut messages) = (&bytes[..], Vec::new());
        loop {
            while let Some(completion) = self.theirs.poll() {
                match completion {
                    Completion::Received { bytes, invalidated } => {
                        self.check_invalidated(&bytes, invalidated);
                        messages.push(bytes);
                    }
                    Completion::Ended(QueuePairEnd::ByPeer { code, .. }) => {
                        self.terminated = Some(code);
                    }
                    _ => {}
                }
            }
            if rest.is_empty() {
                return messages;
            }
            self.piece = next_piece(self.piece);
            let piece = &rest[..self.piece.min(rest.len())];
            rest = &rest[self.theirs.receive(piece)..];
        }
    }

    /// A response invalidates the STag of its command that data went to, or else the other one; no
    /// other message invalidates any (RFC 7145 §7.3.2).
    fn check_invalidated(&mut self, message: &[u8], invalidated: Option<Stag>) {
        let (_, rest) = IserHeader::split(message).unwrap();
        let bhs = rest.first_chunk().map(|bytes| Bhs(*bytes));
        let is_response = bhs.filter(|bhs| bhs.opcode() == Opcode::ScsiResponse);
        let kept = is_response.and_then(|bhs| self.advertised.remove(&bhs.itt().0));
        let kept = kept.unwrap_or_default();
        let is_one = |stag| kept.iter().any(|(kept, _)| *kept == stag);
        assert!(
            invalidated.map_or(kept.is_empty(), is_one),
            "{invalidated:?}"
        );
        if is_response.is_some() {
            for (stag, _) in &kept {
                self.theirs.withdraw(*stag);
            }
            self.answered = kept;
        }
    }

    /// What a read has brought so far; of a command that was answered last, all.
    pub(in crate::session::tests) fn memory(&self, itt: u32) -> Vec<u8> {
        let (_, memory) = &self.advertised.get(&itt).unwrap_or(&self.answered)[0];
        bytes_of(memory)
    }
}

impl IserRig {
    /// Has a message cross that is made by hand.
    pub(in crate::session::tests) fn give_message(&mut self, header: IserHeader, rest: &[u8]) {
        self.give_raw(&[&header.encode()[..], rest].concat());
    }

    /// A command with additional header segments.
    pub(in crate::session::tests) fn give_command(&mut self, bhs: Bhs, ahs: &[u8]) {
        let header = self.peer.advertise(&bhs, &self.keys, 0);
        self.give_message(IserHeader::Control(header), &[&bhs.0[..], ahs].concat());
    }

    /// Has the session post what it has; nothing of it leaves.
    pub(in crate::session::tests) fn post(&mut self) {
        self.session.transmit(&mut self.peer.ours);
    }

    /// The length of each message that the session sends now.
    pub(in crate::session::tests) fn message_lengths(&mut self) -> Vec<usize> {
        self.post();
        let bytes = sent(&mut self.peer.ours);
        let messages = self.peer.hear(&bytes);
        messages.iter().map(Vec::len).collect()
    }

    pub(in crate::session::tests) fn give_raw(&mut self, message: &[u8]) {
        self.post();
        self.peer.post(b"", Some(message));
        let bytes = sent(&mut self.peer.theirs);
        self.cross(&bytes);
    }

    /// The initiator's end does this.
    pub(in crate::session::tests) fn does(&mut self, work: Work<HeapLease>) {
        self.peer.theirs.post(work);
        let bytes = sent(&mut self.peer.theirs);
        self.cross(&bytes);
    }

    /// Bytes come to the session's end.
    fn cross(&mut self, bytes: &[u8]) {
        let pending = std::mem::take(&mut self.peer.pending);
        let all = [&pending[..], bytes].concat();
        let mut rest = &all[..];
        while self.take_in() && !rest.is_empty() {
            self.peer.piece = next_piece(self.peer.piece);
            let piece = &rest[..self.peer.piece.min(rest.len())];
            rest = &rest[self.peer.ours.receive(piece)..];
        }
        self.peer.pending = rest.to_vec();
    }

    /// The session takes in what its end tells; whether that was all.
    fn take_in(&mut self) -> bool {
        loop {
            let all = self.session.receive(self.now, &mut self.peer.ours);
            let before = self.events.len();
            self.poll();
            if all || self.events.len() == before {
                return all;
            }
        }
    }

    fn message_line(&mut self, message: &[u8]) -> String {
        match IserHeader::split(message).unwrap() {
            (IserHeader::HelloReply(reply), _) => format!("{reply:?}"),
            (_, rest) => {
                let pdu = ControlMessage::split(rest).unwrap();
                assert_eq!(rest.len() % 4, 0, "data is padded");
                let (stamps, counts) = numbers(&pdu.bhs);
                self.check(stamps, counts);
                line(&pdu.bhs, pdu.data)
            }
        }
    }
}

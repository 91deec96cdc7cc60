//! Looks at what goes over the wire in both directions: the target keeps to the rules whatever
//! the initiator does.

use std::collections::BTreeMap;

use iscsi::parameters::Operational;
use iscsi::wire::ahs::{self, Ahs};
use iscsi::wire::bhs::{Bhs, Itt, Opcode, Stamps};
use iscsi::wire::control::NopIn;
use iscsi::wire::data::{DataIn, R2t};
use iscsi::wire::framer::{Framer, PduPiece};
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::CmdSn;
use iscsi::wire::task_management::TaskResponse;

use super::{FIRST_CMD_SN, FIRST_STAT_SN};

/// The longest data segment that there is.
const LONGEST: u32 = 0xff_ffff;

/// Bytes of text in which a declaration is looked for.
const KEPT: usize = 64 << 10;

/// See [`super`].
#[derive(Debug)]
pub(super) struct Watch {
    keys: Operational,
    limit: u32,
    to_target: Framer,
    /// Cut no more: an error, or a header that was not taken.
    lost: bool,
    to_initiator: Framer,
    /// The text of requests, and the longest data segment that the initiator ever declared: what
    /// it says in a text request holds for what follows.
    text: Vec<u8>,
    longest: u32,
    stat_sn: u32,
    expected: CmdSn,
    max: CmdSn,
    widest: u32,
    commands: BTreeMap<u32, Sent>,
    /// Of R2Ts that came.
    pub(super) r2ts: Vec<R2t>,
}

/// Commands that were sent with one task tag.
#[derive(Debug, Default)]
struct Sent {
    count: u32,
    answered: u32,
    most_in: u32,
    most_out: u32,
}

impl Watch {
    pub(super) fn new(keys: Operational, limit: u32) -> Self {
        let mut to_target = Framer::new(keys.own_data_segment);
        to_target.set_digests(keys.header_digest, keys.data_digest);
        let mut to_initiator = Framer::new(LONGEST);
        to_initiator.set_digests(keys.header_digest, keys.data_digest);
        Self {
            keys,
            limit,
            to_target,
            lost: false,
            to_initiator,
            text: Vec::new(),
            longest: keys.peer_data_segment,
            stat_sn: FIRST_STAT_SN,
            expected: CmdSn(FIRST_CMD_SN),
            max: CmdSn(FIRST_CMD_SN - 1),
            widest: 0,
            commands: BTreeMap::new(),
            r2ts: Vec::new(),
        }
    }

    pub(super) const fn expected(&self) -> u32 {
        self.expected.0
    }

    /// The last CmdSN that may be used.
    pub(super) const fn max(&self) -> CmdSn {
        self.max
    }

    /// Whether no numbered request may be sent.
    pub(super) fn is_closed(&self) -> bool {
        self.max.is_before(self.expected)
    }

    /// Whether the initiator could send a PDU now that is understood.
    pub(super) const fn is_between(&self) -> bool {
        !self.lost && self.to_target.is_between()
    }

    /// Bytes that the target took.
    pub(super) fn given(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.lost {
            match self.to_target.next(&mut rest) {
                Ok(Some(PduPiece::Header(bhs))) => self.request(&bhs),
                Ok(Some(PduPiece::Data { bytes, end })) => {
                    self.text.extend_from_slice(bytes);
                    if end {
                        self.declared();
                    }
                }
                Ok(Some(PduPiece::BadData)) => {}
                Ok(None) => return,
                Err(_) => self.lost = true,
            }
        }
    }

    /// Looks for a declaration in what the last PDUs said. Whether it was text, and whether the
    /// target took it, does not matter: it allows the target more, never less.
    fn declared(&mut self) {
        let text = String::from_utf8_lossy(&self.text);
        let said = text
            .split('\0')
            .filter_map(|pair| pair.split_once("MaxRecvDataSegmentLength=")?.1.parse().ok());
        self.longest = said.fold(self.longest, u32::max);
        if self.text.len() > KEPT {
            self.text.clear();
        }
    }

    fn request(&mut self, bhs: &Bhs) {
        if bhs.opcode() != Opcode::ScsiCommand {
            return;
        }
        let command = ScsiCommand::decode(bhs);
        let read = ahs::segments(self.to_target.ahs()).filter_map(|segment| match segment {
            Ok(Ahs::BidirectionalRead(expected)) => Some(expected),
            _ => None,
        });
        let most_in = read.fold(command.expected, u32::max);
        let sent = self.commands.entry(command.itt.0).or_default();
        sent.count += 1;
        sent.most_in = sent.most_in.max(most_in);
        sent.most_out = sent.most_out.max(command.expected);
    }

    /// Bytes that the target sent.
    pub(super) fn heard(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            match self.to_initiator.next(&mut rest) {
                Ok(Some(PduPiece::Header(bhs))) => {
                    assert!(bhs.data_len() <= self.longest, "{bhs:?}");
                    self.response(&bhs);
                }
                Ok(Some(PduPiece::Data { .. })) => {}
                Ok(None) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn response(&mut self, bhs: &Bhs) {
        assert!(bhs.ahs_len() == 0 && !bhs.opcode().is_request(), "{bhs:?}");
        // At the same place in every response.
        let stamps = NopIn::decode(bhs).stamps;
        self.numbers(bhs, stamps);
        match bhs.opcode() {
            Opcode::ScsiResponse => self.answered(bhs.itt()),
            Opcode::DataIn => self.data_in(bhs),
            Opcode::R2t => self.r2t(bhs),
            Opcode::TaskResponse => assert_ne!(TaskResponse::decode(bhs).itt, Itt::NONE),
            _ => {}
        }
    }

    /// StatSN counts numbered responses, ExpCmdSN and MaxCmdSN never move back, and the window is
    /// within its limit (RFC 7143 §4.2.2).
    fn numbers(&mut self, bhs: &Bhs, stamps: Stamps) {
        let (is_told, counts) = match bhs.opcode() {
            Opcode::DataIn if DataIn::decode(bhs).status.is_none() => (false, false),
            Opcode::R2t => (true, false),
            Opcode::NopIn if bhs.itt() == Itt::NONE => (true, false),
            _ => (true, true),
        };
        assert!(
            !is_told || stamps.stat_sn.0 == self.stat_sn,
            "StatSN of {bhs:?}"
        );
        self.stat_sn = self.stat_sn.wrapping_add(counts.into());
        let (expected, max) = (stamps.exp_cmd_sn, stamps.max_cmd_sn);
        assert!(!expected.is_before(self.expected), "ExpCmdSN moved back");
        assert!(!max.is_before(self.max), "MaxCmdSN moved back");
        let width = max.next().since(expected);
        assert!(width <= self.limit, "a window of {width}");
        (self.expected, self.max) = (expected, max);
        self.widest = self.widest.max(width);
    }

    /// At most one response for each command that was sent.
    fn answered(&mut self, itt: Itt) {
        let sent = self.commands.entry(itt.0).or_default();
        sent.answered += 1;
        assert!(sent.answered <= sent.count, "{itt:?}: {sent:?}");
    }

    fn data_in(&mut self, bhs: &Bhs) {
        let pdu = DataIn::decode(bhs);
        let end = u64::from(pdu.offset) + u64::from(bhs.data_len());
        let sent = self.commands.entry(pdu.itt.0).or_default();
        assert!(
            end <= u64::from(sent.most_in),
            "{pdu:?} beyond what is expected"
        );
        assert!(bhs.data_len() > 0, "an empty Data-In");
        if pdu.status.is_some() {
            assert!(pdu.last);
            self.answered(pdu.itt);
        }
    }

    fn r2t(&mut self, bhs: &Bhs) {
        let pdu = R2t::decode(bhs);
        let end = u64::from(pdu.offset) + u64::from(pdu.desired);
        let sent = self.commands.entry(pdu.itt.0).or_default();
        assert!(
            end <= u64::from(sent.most_out),
            "{pdu:?} beyond what is expected"
        );
        assert!((1..=self.keys.max_burst).contains(&pdu.desired), "{pdu:?}");
        self.r2ts.push(pdu);
    }

    /// Nothing is under way, so the window is as wide as it ever was.
    pub(super) fn all_free(&self) {
        let width = self.max.next().since(self.expected);
        assert_eq!(
            width, self.widest,
            "places of the window are lost: {self:?}"
        );
    }
}

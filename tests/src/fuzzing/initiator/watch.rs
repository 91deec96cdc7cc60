//! What an initiator sends, held against what it was told: the window, the lengths that were
//! agreed upon, and the bytes of its leases.

use std::collections::{BTreeMap, BTreeSet};

use iscsi::parameters::{DEFAULT_DATA_SEGMENT, Operational};
use iscsi::test_support::pdus;
use iscsi::wire::bhs::{Bhs, Itt, Opcode, Ttt};
use iscsi::wire::control::NopIn;
use iscsi::wire::data::{DataOut, R2t};
use iscsi::wire::framer::{Framer, PduPiece};
use iscsi::wire::scsi_command::ScsiCommand;
use iscsi::wire::serial::CmdSn;

/// The byte of a write at this place.
pub(super) fn pattern(at: usize) -> u8 {
    (at / 251 + at) as u8
}

/// A command as the target knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) command: ScsiCommand,
    /// Bytes that came without having been asked for.
    unsolicited: u32,
}

/// What was sent, and what was said to that.
pub(super) struct Watch {
    discovery: bool,
    keys: Operational,
    out: Framer,
    back: Framer,
    login: (Bhs, Vec<u8>),
    pub(super) cmd_sn: CmdSn,
    /// Every ExpCmdSN of a discovery session, which may follow one that counts immediate requests.
    counted: Vec<CmdSn>,
    max_cmd_sn: CmdSn,
    pub(super) commands: Vec<Seen>,
    /// Requests that are no commands.
    pub(super) others: Vec<Bhs>,
    ids: BTreeSet<u64>,
    /// R2Ts by task and transfer tag: where the next byte belongs, and how many are left.
    granted: BTreeMap<(u32, u32), Vec<(u32, u32)>>,
    logged_in: bool,
}

impl Watch {
    pub(super) fn new(cmd_sn: u32, discovery: bool) -> Self {
        Self {
            discovery,
            keys: Operational::default(),
            out: Framer::new(1 << 20),
            back: Framer::new(DEFAULT_DATA_SEGMENT),
            login: (Bhs::new(Opcode::LoginRequest), Vec::new()),
            cmd_sn: CmdSn(cmd_sn),
            counted: Vec::new(),
            max_cmd_sn: CmdSn(cmd_sn).minus(1),
            commands: Vec::new(),
            others: Vec::new(),
            ids: BTreeSet::new(),
            granted: BTreeMap::new(),
            logged_in: false,
        }
    }

    pub(super) fn logged_in(&mut self, keys: &Operational) {
        self.keys = *keys;
        self.logged_in = true;
        self.out.set_digests(keys.header_digest, keys.data_digest);
        self.back = Framer::new(keys.own_data_segment);
        self.back.set_digests(keys.header_digest, keys.data_digest);
    }

    /// The last login request.
    pub(super) fn login(&self) -> (&Bhs, &[u8]) {
        (&self.login.0, &self.login.1)
    }

    /// Whether the command left.
    pub(super) fn saw(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    /// What the initiator took from the wire.
    pub(super) fn given(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Ok(Some(piece)) = self.back.next(&mut rest) {
            let PduPiece::Header(bhs) = piece else {
                continue;
            };
            let stamps = NopIn::decode(&bhs).stamps;
            if self.discovery {
                self.counted.push(stamps.exp_cmd_sn);
            }
            let sound = !stamps.max_cmd_sn.next().is_before(stamps.exp_cmd_sn);
            if sound && self.max_cmd_sn.is_before(stamps.max_cmd_sn) {
                self.max_cmd_sn = stamps.max_cmd_sn;
            }
            if bhs.opcode() == Opcode::R2t {
                let r2t = R2t::decode(&bhs);
                let grants = self.granted.entry((r2t.itt.0, r2t.ttt.0)).or_default();
                grants.push((r2t.offset, r2t.desired));
            }
        }
    }

    /// What the initiator sends: whole PDUs.
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        for (bhs, data) in pdus(&mut self.out, bytes) {
            self.pdu(&bhs, &data);
        }
    }

    fn pdu(&mut self, bhs: &Bhs, data: &[u8]) {
        let limit = if self.logged_in {
            self.keys.peer_data_segment.max(DEFAULT_DATA_SEGMENT)
        } else {
            DEFAULT_DATA_SEGMENT
        };
        assert!(bhs.data_len() <= limit, "{} bytes in a PDU", bhs.data_len());
        match bhs.opcode() {
            Opcode::LoginRequest => {
                assert!(!self.logged_in, "a login in the full-feature phase");
                self.login = (*bhs, data.to_vec());
            }
            Opcode::ScsiCommand => self.command(&ScsiCommand::decode(bhs), data),
            Opcode::DataOut => self.data_out(&DataOut::decode(bhs), data),
            Opcode::NopOut | Opcode::TextRequest | Opcode::LogoutRequest => self.others.push(*bhs),
            Opcode::TaskRequest => {
                assert!(!self.discovery);
                self.others.push(*bhs);
            }
            other => panic!("an initiator sends {other:?}"),
        }
        if bhs.opcode() != Opcode::DataOut && bhs.opcode() != Opcode::ScsiCommand {
            assert!(bhs.is_immediate());
            let follows = self.counted.contains(&bhs.cmd_sn());
            assert!(follows || bhs.cmd_sn() == self.cmd_sn, "CmdSN");
        }
    }

    fn command(&mut self, command: &ScsiCommand, data: &[u8]) {
        assert!(self.logged_in && !self.discovery);
        assert_eq!(command.cmd_sn, self.cmd_sn, "CmdSN");
        assert!(
            !self.max_cmd_sn.is_before(self.cmd_sn),
            "a command beyond the window"
        );
        self.cmd_sn = self.cmd_sn.next();
        let id = command.cdb[8..].try_into().map(u64::from_be_bytes);
        assert!(
            self.ids.insert(id.expect("8 bytes")),
            "a command is sent twice"
        );
        assert!(!command.read || !command.write);
        let immediate = data.len() as u32;
        assert!(immediate == 0 || (command.write && self.keys.immediate_data));
        check_bytes(0, data);
        self.commands.push(Seen {
            command: *command,
            unsolicited: immediate,
        });
        self.bounded(self.commands.len() - 1);
    }

    /// MaxRecvDataSegmentLength of the target, which declares another one by text.
    fn segment(&self) -> u32 {
        let declared = self.keys.peer_data_segment;
        let text = |bhs: &Bhs| bhs.opcode() == Opcode::TextRequest;
        if self.others.iter().any(text) {
            declared.max(DECLARED_LATER)
        } else {
            declared
        }
    }

    /// What comes without having been asked for is within the first burst.
    fn bounded(&self, at: usize) {
        let seen = &self.commands[at];
        let most = self.keys.first_burst.min(seen.command.expected);
        assert!(
            seen.unsolicited <= most,
            "{} of {most} bytes",
            seen.unsolicited
        );
    }

    fn data_out(&mut self, pdu: &DataOut, data: &[u8]) {
        let len = data.len() as u32;
        assert!(len > 0 && len <= self.segment());
        let named = |seen: &Seen| seen.command.itt == pdu.itt;
        let at = self.commands.iter().rposition(named).expect("a command");
        let seen = &mut self.commands[at];
        assert!(seen.command.write && pdu.offset + len <= seen.command.expected);
        check_bytes(pdu.offset, data);
        if pdu.ttt == Ttt::NONE {
            assert!(!self.keys.initial_r2t, "data that nobody asked for");
            assert_eq!(pdu.offset, seen.unsolicited);
            seen.unsolicited += len;
            assert!(!pdu.last || !seen.command.last);
            return self.bounded(at);
        }
        let key = (pdu.itt.0, pdu.ttt.0);
        let grants = self.granted.get_mut(&key).expect("an R2T");
        let fits = |grant: &&mut (u32, u32)| grant.0 == pdu.offset && len <= grant.1;
        let grant = grants
            .iter_mut()
            .find(fits)
            .expect("bytes that were asked for");
        *grant = (grant.0 + len, grant.1 - len);
        assert_eq!(pdu.last, grant.1 == 0, "the F bit");
    }

    /// The tag of something that was sent, or anything.
    pub(super) fn tag(&self, number: usize) -> Itt {
        let commands = self.commands.iter().rev().map(|seen| seen.command.itt);
        let others = self.others.iter().rev().map(Bhs::itt);
        let all: Vec<Itt> = commands.take(8).chain(others.take(4)).collect();
        all.get(number).copied().unwrap_or(Itt(number as u32))
    }
}

/// See `Target::text_response`.
const DECLARED_LATER: u32 = 1024;

fn check_bytes(offset: u32, data: &[u8]) {
    for (byte, at) in data.iter().zip(offset as usize..) {
        assert_eq!(*byte, pattern(at), "byte {at} of a write");
    }
}

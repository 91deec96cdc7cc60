//! A unit that answers as it is told, and writes down what it was asked.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Cache, Client, ClientOutput, CommandStatus, Data, UnitRequest};
use crate::medium::{Extent, HeapLease, Lease, MediumError, MediumOp, MediumResult, Now};
use crate::wire::sense::Status;
use crate::wire::sense::{Format, Sense, SenseKey};

pub(super) const BLOCK: u32 = 512;

/// What is done for anybody, whoever has reserved the unit.
const ALWAYS: [u8; 4] = [0x00, 0x12, 0x5e, 0x5f];

/// How the CDBs begin that ask a unit what it is, but for TEST UNIT READY.
const ABOUT: [&str; 5] = ["12", "1a", "25", "9e10", "a3"];

/// What the unit says of itself. Tests change it.
#[derive(Clone)]
pub(super) struct Unit {
    pub(super) blocks: u64,
    pub(super) serial: &'static str,
    pub(super) write_cache: bool,
    pub(super) dpofua: bool,
    pub(super) write_protected: bool,
    pub(super) max_transfer: u32,
    /// Blocks of an atomic write; 0: it knows none.
    pub(super) max_atomic: u32,
    pub(super) unmaps: bool,
    /// WRITE SAME unmaps too, ...
    pub(super) write_same_unmaps: bool,
    /// ... and needs no block for it.
    pub(super) ndob: bool,
    /// What was unmapped reads as zeros.
    pub(super) zeros: bool,
    /// Registrants only are let in, of whom we are one by a key that is not 0; both persist.
    pub(super) reserved: bool,
    pub(super) key: u64,
    pub(super) persists: bool,
    /// Its caching page can be saved.
    pub(super) saves: bool,
    /// It takes another WCE, and does not mean it.
    pub(super) silent_cache: bool,
    /// Opcodes that it does not know.
    pub(super) unknown: Vec<u8>,
    /// Opcodes that it does not answer.
    pub(super) silent: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

impl Default for Unit {
    fn default() -> Self {
        Self {
            blocks: 2048,
            serial: "s1",
            write_cache: true,
            dpofua: true,
            write_protected: false,
            max_transfer: 0,
            max_atomic: 0,
            unmaps: true,
            write_same_unmaps: true,
            ndob: true,
            zeros: true,
            reserved: false,
            key: 0,
            persists: false,
            saves: false,
            silent_cache: false,
            unknown: Vec::new(),
            silent: Vec::new(),
            bytes: vec![0; 2048 * BLOCK as usize],
        }
    }
}

/// A client and its unit.
pub(super) struct Rig {
    pub(super) client: Client<HeapLease>,
    pub(super) cache: Arc<Cache>,
    pub(super) unit: Unit,
    pub(super) now: Now,
    /// Endings that come before any other.
    pub(super) endings: VecDeque<(Status, Option<Sense>)>,
    /// They are for this opcode only.
    pub(super) ends_only: Option<u8>,
    /// CDBs that were asked, as hex, without what tells nothing.
    pub(super) asked: Vec<String>,
    /// Commands that were not answered.
    pub(super) unanswered: Vec<u32>,
    pub(super) told: Vec<String>,
    pub(super) results: Vec<(u64, MediumResult<HeapLease>)>,
    next_id: u64,
}

impl Default for Rig {
    fn default() -> Self {
        Self::ready(Unit::default())
    }
}

impl Rig {
    /// A client that has not begun.
    pub(super) fn new(unit: Unit) -> Self {
        Self {
            client: Client::default(),
            cache: Arc::default(),
            unit,
            now: Duration::ZERO,
            endings: VecDeque::new(),
            ends_only: None,
            asked: Vec::new(),
            unanswered: Vec::new(),
            told: Vec::new(),
            results: Vec::new(),
            next_id: 0,
        }
    }

    /// A client that knows its unit.
    pub(super) fn ready(unit: Unit) -> Self {
        let mut rig = Self::new(unit);
        rig.begin();
        rig.tells(["ready"]);
        let facts = rig.client.facts().unwrap().clone();
        rig.client = Client::of(facts, Arc::clone(&rig.cache));
        rig.begin();
        rig.tells(["ready"]);
        rig.asked.clear();
        rig
    }

    /// A client that knows its unit, of which something differs.
    pub(super) fn with(change: impl FnOnce(&mut Unit)) -> Self {
        Self::ready(Unit::with(change))
    }

    /// A nexus is there.
    pub(super) fn begin(&mut self) {
        self.client.begin();
        self.run();
    }

    /// Time goes by until the client does something by itself.
    pub(super) fn wait(&mut self) {
        self.now = self.client.next_deadline().unwrap();
        self.client.expire(self.now);
        self.run();
    }

    pub(super) fn submit(&mut self, op: MediumOp<HeapLease>) -> u64 {
        self.next_id += 1;
        let mut memory = |len| Some(HeapLease::from_bytes(vec![0; len]));
        self.client.submit(self.next_id, op, &mut memory);
        self.next_id
    }

    /// Submits, and lets everything happen.
    pub(super) fn go(&mut self, op: MediumOp<HeapLease>) -> MediumResult<HeapLease> {
        let id = self.submit(op);
        self.run();
        let (done, result) = self.results.pop().unwrap();
        assert_eq!((done, self.results.len()), (id, 0));
        result
    }

    pub(super) fn write(&mut self, lba: u64, data: &[u8], fua: bool) -> MediumResult<HeapLease> {
        let blocks = data.len() as u64 / u64::from(BLOCK);
        self.go(MediumOp::Write {
            extent: Extent::new(lba, blocks),
            data: HeapLease::from_bytes(data.to_vec()),
            fua,
            atomic: false,
        })
    }

    /// Carries out what the client wants until it waits.
    pub(super) fn run(&mut self) {
        while let Some(output) = self.client.poll() {
            match output {
                ClientOutput::Execute(request) => self.execute(request),
                ClientOutput::Done(id, result) => self.results.push((id, result)),
                ClientOutput::Ready => self.told.push("ready".into()),
                ClientOutput::Refused(refusal) => self.told.push(format!("refused: {refusal}")),
                ClientOutput::NotNow(refusal) => self.told.push(format!("not now: {refusal}")),
                ClientOutput::Changed => self.told.push(self.changed()),
                ClientOutput::CacheLost => self.told.push("cache lost".into()),
                ClientOutput::Conflict => self.told.push("conflict".into()),
                ClientOutput::Fenced => self.told.push("fenced".into()),
                ClientOutput::Departed => self.told.push("departed".into()),
            }
        }
    }

    fn changed(&self) -> String {
        let traits = &self.client.facts().unwrap().traits;
        let cached = if traits.write_cache { ", cached" } else { "" };
        let protected = if traits.read_only { ", protected" } else { "" };
        format!("{} blocks{cached}{protected}", traits.blocks)
    }

    pub(super) fn take_told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.told)
    }

    pub(super) fn take_asked(&mut self) -> Vec<String> {
        std::mem::take(&mut self.asked)
    }

    /// Without what asks the unit what it is.
    pub(super) fn take_work(&mut self) -> Vec<String> {
        let mut asked = self.take_asked();
        asked.retain(|cdb| !ABOUT.iter().any(|about| cdb.starts_with(about)) && !cdb.is_empty());
        asked
    }

    #[track_caller]
    pub(super) fn tells<const N: usize>(&mut self, told: [&str; N]) {
        assert_eq!(self.take_told(), told);
    }

    #[track_caller]
    pub(super) fn asks<const N: usize>(&mut self, asked: [&str; N]) {
        assert_eq!(self.take_asked(), asked);
    }

    /// Without what asks the unit what it is.
    #[track_caller]
    pub(super) fn works<const N: usize>(&mut self, asked: [&str; N]) {
        assert_eq!(self.take_work(), asked);
    }

    /// Takes the last command that was not answered, which the transport has sent.
    pub(super) fn sent(&mut self) -> u32 {
        let id = self.unanswered.pop().unwrap();
        self.client.sent(id);
        id
    }

    /// A command that was not answered ends after all, without sense data.
    pub(super) fn answers(&mut self, id: u32, status: Status, moved: usize) {
        self.answer(id, status, &[], moved);
        self.run();
    }

    /// What the last operation that ended failed with.
    #[track_caller]
    pub(super) fn error(&mut self) -> MediumError {
        let (_, result) = self.results.pop().expect("an operation has ended");
        result.expect_err("it failed")
    }

    /// Ends the next commands with this.
    pub(super) fn ends(&mut self, key: SenseKey, code: u16) {
        let ending = (Status::CheckCondition, Some(Sense::new(key, code)));
        self.endings.push_back(ending);
    }

    fn execute(&mut self, request: UnitRequest<HeapLease>) {
        let UnitRequest { id, cdb, data } = request;
        let hex: Vec<String> = cdb.iter().map(|byte| format!("{byte:02x}")).collect();
        self.asked.push(hex.join("").trim_end_matches("00").into());
        if self.unit.silent.contains(&cdb[0]) {
            return self.unanswered.push(id);
        }
        if self.ends_only.is_none_or(|opcode| opcode == cdb[0])
            && let Some((status, sense)) = self.endings.pop_front()
        {
            let sense = sense.map(|sense| sense.encode(Format::Fixed));
            let sense = sense.as_ref().map_or(&[][..], |sense| sense.as_slice());
            let moved = match (status, data) {
                (Status::Good, Data::Out(from)) => from.len(),
                _ => 0,
            };
            return self.answer(id, status, sense, moved);
        }
        if self.unit.reserved && self.unit.key == 0 && !ALWAYS.contains(&cdb[0]) {
            return self.answer(id, Status::ReservationConflict, &[], 0);
        }
        if self.unit.unknown.contains(&cdb[0]) {
            let sense = Sense::new(SenseKey::IllegalRequest, 0x2000).encode(Format::Descriptor);
            return self.answer(id, Status::CheckCondition, sense.as_slice(), 0);
        }
        let moved = match data {
            Data::None => {
                if cdb[0] == 0x93 {
                    self.unit.zero(&cdb);
                }
                0
            }
            Data::In(mut into) => {
                let bytes = self.unit.data_in(&cdb);
                let len = bytes.len().min(into.len());
                into.copy_in(0, &bytes[..len]);
                len
            }
            Data::Out(from) => {
                self.unit.data_out(&cdb, &from);
                from.len()
            }
        };
        self.answer(id, Status::Good, &[], moved);
    }

    fn answer(&mut self, id: u32, status: Status, sense: &[u8], moved: usize) {
        let answer = CommandStatus {
            status: status as u8,
            sense,
            moved,
        };
        self.client.answered(self.now, id, &answer);
    }
}

impl Unit {
    pub(super) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut unit = Self::default();
        change(&mut unit);
        unit
    }

    fn data_in(&self, cdb: &[u8; 16]) -> Vec<u8> {
        match cdb[0] {
            0x12 => self.inquiry(cdb[1], cdb[2]),
            0x1a => vec![
                23,
                0,
                u8::from(self.write_protected) << 7 | u8::from(self.dpofua) << 4,
                0,
                0x08 | u8::from(self.saves) << 7,
                0x12,
                u8::from(self.write_cache) << 2,
            ],
            0x5e => vec![0, 8, 0x1c, 0xb0 | u8::from(self.persists), 0, 0, 0, 0],
            0x25 => [
                ((self.blocks - 1) as u32).to_be_bytes(),
                BLOCK.to_be_bytes(),
            ]
            .concat(),
            0xa3 => [
                &[0, 3, 0, 16, 0x93, 0x18 | u8::from(self.ndob)][..],
                &[0; 14],
            ]
            .concat(),
            0x9e if cdb[1] == 0x10 => {
                let mut bytes = vec![0; 32];
                bytes[..8].copy_from_slice(&(self.blocks - 1).to_be_bytes());
                bytes[8..12].copy_from_slice(&BLOCK.to_be_bytes());
                bytes[14] = u8::from(self.unmaps) << 7;
                bytes
            }
            0x9e => {
                let mut bytes = vec![0; 24];
                bytes[8..16].copy_from_slice(&cdb[2..10]);
                bytes[16..20].copy_from_slice(&8_u32.to_be_bytes());
                bytes[20] = 1;
                bytes
            }
            _ => self.bytes[self.range(cdb)].to_vec(),
        }
    }

    fn inquiry(&self, evpd: u8, page: u8) -> Vec<u8> {
        let paged = |bytes: &[u8]| [&[0, page, 0, bytes.len() as u8], bytes].concat();
        match (evpd, page) {
            (0, _) => b"\0\0\x06\x02\x5b\0\0\x02LUNAR   DISK            0.1 ".to_vec(),
            (_, 0x00) => paged(&[0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2]),
            (_, 0x80) => paged(self.serial.as_bytes()),
            (_, 0x83) => {
                // A target port's name, the unit's T10 name, then its NAA name.
                let name = [&[1, 3, 0, 8, 0x30], &[7; 7][..]].concat();
                let t10 = [&[2, 1, 0, 2], self.serial.as_bytes()].concat();
                paged(&[&[0x51, 0x94, 0, 4, 0, 0, 0, 1][..], &t10, &name].concat())
            }
            (_, 0xb0) => {
                let mut bytes = [0; 60];
                bytes[4..8].copy_from_slice(&self.max_transfer.to_be_bytes());
                bytes[16..20].copy_from_slice(&64_u32.to_be_bytes());
                bytes[24..28].copy_from_slice(&8_u32.to_be_bytes());
                bytes[32..40].copy_from_slice(&256_u64.to_be_bytes());
                bytes[40..44].copy_from_slice(&self.max_atomic.to_be_bytes());
                paged(&bytes)
            }
            (_, 0xb1) => paged(&[0, 1, 0, 0]),
            _ => paged(&[
                0,
                u8::from(self.unmaps) << 7
                    | u8::from(self.write_same_unmaps) << 6
                    | u8::from(self.zeros) << 2,
                0,
                0,
            ]),
        }
    }

    fn data_out(&mut self, cdb: &[u8; 16], from: &HeapLease) {
        let mut bytes = vec![0; from.len()];
        from.copy_out(0, &mut bytes);
        match cdb[0] {
            0x5f => {
                self.key = bytes[8..16]
                    .iter()
                    .fold(0, |key, byte| key << 8 | u64::from(*byte));
                self.persists = bytes[20] & 1 == 1;
                return;
            }
            0x15 if self.silent_cache => return,
            0x15 => {
                assert_eq!(bytes[4] & 0x80, 0, "PS is reserved there");
                self.write_cache = bytes[6] & 0x04 > 0;
                return;
            }
            _ => {}
        }
        let range = self.range(cdb);
        let times = range.len() / bytes.len();
        self.bytes[range].copy_from_slice(&bytes.repeat(times));
    }

    fn zero(&mut self, cdb: &[u8; 16]) {
        let range = self.range(cdb);
        self.bytes[range].fill(0);
    }

    fn range(&self, cdb: &[u8; 16]) -> std::ops::Range<usize> {
        let number = |range: std::ops::Range<usize>| {
            cdb[range]
                .iter()
                .fold(0, |value, byte| value << 8 | usize::from(*byte))
        };
        let (lba, blocks) = match cdb[0] {
            0x28 | 0x2a => (number(2..6), number(7..9)),
            0x9c => (number(2..10), number(12..14)),
            _ => (number(2..10), number(10..14)),
        };
        let size = BLOCK as usize;
        let end = ((lba + blocks) * size).min(self.bytes.len());
        (lba * size).min(end)..end
    }
}

/// A write of one block.
pub(super) fn write() -> MediumOp<HeapLease> {
    write_at(1, false)
}

pub(super) fn write_at(lba: u64, fua: bool) -> MediumOp<HeapLease> {
    MediumOp::Write {
        extent: Extent::new(lba, 1),
        data: HeapLease::from_bytes(vec![5; BLOCK as usize]),
        fua,
        atomic: false,
    }
}

/// Zeros in this many blocks from the first on.
pub(super) fn zeros(blocks: u64) -> MediumOp<HeapLease> {
    MediumOp::WriteSame {
        extent: Extent::new(0, blocks),
        pattern: None,
    }
}

pub(super) fn flush() -> MediumOp<HeapLease> {
    MediumOp::Flush {
        extent: Extent::new(0, 0),
    }
}

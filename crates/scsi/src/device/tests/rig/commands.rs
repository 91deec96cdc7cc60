//! Commands as a story sends them, and how they end.

use super::{BLOCK, End, Rig};
use crate::nexus::NexusId;
use crate::task::{Attribute, Command, Completed, Function, FunctionResult, Tag};
use crate::wire::lun::Lun;
use crate::wire::sense::Status;

/// Bytes that a command's initiator expects, and the data that it sends.
pub(in crate::device::tests) struct Moves(usize, Vec<u8>);

impl From<()> for Moves {
    fn from((): ()) -> Self {
        Self(0, Vec::new())
    }
}

impl From<usize> for Moves {
    fn from(expected: usize) -> Self {
        Self(expected, Vec::new())
    }
}

impl From<Vec<u8>> for Moves {
    fn from(data: Vec<u8>) -> Self {
        Self(0, data)
    }
}

impl From<(usize, Vec<u8>)> for Moves {
    fn from((expected, data): (usize, Vec<u8>)) -> Self {
        Self(expected, data)
    }
}

impl Rig {
    /// Sends a command and lets everything happen that can.
    pub(in crate::device::tests) fn send_to(
        &mut self,
        nexus: NexusId,
        lun: u16,
        cdb: &[u8],
        attribute: Attribute,
        moves: impl Into<Moves>,
    ) -> Tag {
        let lun = Lun::from_index(lun);
        self.send_to_lun((nexus, lun), cdb, attribute, moves)
    }

    pub(in crate::device::tests) fn send_to_lun(
        &mut self,
        (nexus, lun): (NexusId, Lun),
        cdb: &[u8],
        attribute: Attribute,
        moves: impl Into<Moves>,
    ) -> Tag {
        self.tag += 1;
        let tag = Tag(self.tag);
        let Moves(expected_in, data_out) = moves.into();
        let mut padded = [0; 32];
        padded[..cdb.len()].copy_from_slice(cdb);
        let expected_out = data_out.len() as u32;
        self.data_out.insert((nexus, tag), data_out);
        self.server.execute(Command {
            nexus,
            tag,
            lun,
            cdb: padded,
            cdb_len: 16,
            attribute,
            priority: 0,
            expected_in: expected_in as u32,
            expected_out,
        });
        self.run();
        tag
    }

    /// A SIMPLE command of nexus 0 to LUN 0.
    pub(in crate::device::tests) fn send(&mut self, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        self.send_by(NexusId(0), cdb, moves)
    }

    /// A SIMPLE command to LUN 0.
    pub(in crate::device::tests) fn send_by(
        &mut self,
        nexus: NexusId,
        cdb: &[u8],
        moves: impl Into<Moves>,
    ) -> Tag {
        self.send_to(nexus, 0, cdb, Attribute::Simple, moves)
    }

    /// A command that ends with GOOD.
    #[track_caller]
    pub(in crate::device::tests) fn good(&mut self, cdb: &[u8], moves: impl Into<Moves>) -> Tag {
        self.good_by(NexusId(0), cdb, moves)
    }

    #[track_caller]
    pub(in crate::device::tests) fn good_by(
        &mut self,
        nexus: NexusId,
        cdb: &[u8],
        moves: impl Into<Moves>,
    ) -> Tag {
        let tag = self.send_by(nexus, cdb, moves);
        assert_eq!(self.completed(nexus, tag).status, Status::Good);
        tag
    }

    /// A command that ends with CHECK CONDITION: sense key and additional sense code.
    #[track_caller]
    pub(in crate::device::tests) fn refuses(
        &mut self,
        cdb: &[u8],
        moves: impl Into<Moves>,
        sense: (u8, u16),
    ) -> Tag {
        self.refuses_by(NexusId(0), cdb, moves, sense)
    }

    #[track_caller]
    pub(in crate::device::tests) fn refuses_by(
        &mut self,
        nexus: NexusId,
        cdb: &[u8],
        moves: impl Into<Moves>,
        sense: (u8, u16),
    ) -> Tag {
        let tag = self.send_by(nexus, cdb, moves);
        assert_eq!(self.sense(nexus, tag), sense, "{cdb:02x?}");
        tag
    }

    /// A function that is carried out at once.
    #[track_caller]
    pub(in crate::device::tests) fn manages(&mut self, nexus: NexusId, function: Function) {
        let id = self.manage(nexus, function);
        assert_eq!(self.answer_to(id), Some(FunctionResult::Complete));
    }

    pub(in crate::device::tests) fn manage(&mut self, nexus: NexusId, function: Function) -> u32 {
        self.tag += 1;
        self.server
            .manage(nexus, self.tag, Lun::from_index(0), function);
        self.run();
        self.tag
    }

    pub(in crate::device::tests) fn answer_to(&self, id: u32) -> Option<FunctionResult> {
        self.managed
            .iter()
            .find(|managed| managed.1 == id)
            .map(|managed| managed.2)
    }

    pub(in crate::device::tests) fn completed(&self, nexus: NexusId, tag: Tag) -> &Completed {
        match self.ended.get(&(nexus, tag)) {
            Some(End::Completed(completed)) => completed,
            other => panic!("{tag:?} of {nexus:?}: {other:?}"),
        }
    }

    pub(in crate::device::tests) fn status(&self, tag: Tag) -> Status {
        self.completed(NexusId(0), tag).status
    }

    pub(in crate::device::tests) fn data(&self, tag: Tag) -> &[u8] {
        self.data_in
            .get(&(NexusId(0), tag))
            .map_or(&[], Vec::as_slice)
    }

    /// Sense key and additional sense code of a CHECK CONDITION with fixed format sense data.
    pub(in crate::device::tests) fn sense(&self, nexus: NexusId, tag: Tag) -> (u8, u16) {
        let completed = self.completed(nexus, tag);
        assert_eq!(completed.status, Status::CheckCondition);
        let sense = completed.sense.as_slice();
        (sense[2] & 0x0f, u16::from_be_bytes([sense[12], sense[13]]))
    }

    /// INFORMATION of fixed format sense data.
    pub(in crate::device::tests) fn information(&self, tag: Tag) -> Option<u32> {
        let sense = &self.completed(NexusId(0), tag).sense;
        let sense = sense.as_slice();
        (sense[0] & 0x80 != 0).then(|| u32::from_be_bytes([sense[3], sense[4], sense[5], sense[6]]))
    }
}

/// Bytes that differ from block to block.
pub(in crate::device::tests) fn pattern(blocks: usize, seed: u8) -> Vec<u8> {
    let byte = |at| (at / BLOCK) as u8 ^ at as u8 ^ seed;
    (0..blocks * BLOCK).map(byte).collect()
}

/// READ(10), WRITE(10) and their like.
pub(in crate::device::tests) fn cdb10(opcode: u8, flags: u8, lba: u32, blocks: u16) -> [u8; 10] {
    let [a, b, c, d] = lba.to_be_bytes();
    let [e, f] = blocks.to_be_bytes();
    [opcode, flags, a, b, c, d, 0, e, f, 0]
}

/// COMPARE AND WRITE.
pub(in crate::device::tests) fn swap_cdb(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = cdb16(0x89, 0, lba, 0);
    cdb[13] = blocks;
    cdb
}

/// READ(16), WRITE(16) and their like.
pub(in crate::device::tests) fn cdb16(opcode: u8, flags: u8, lba: u64, blocks: u32) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h] = lba.to_be_bytes();
    let [i, j, k, l] = blocks.to_be_bytes();
    [opcode, flags, a, b, c, d, e, f, g, h, i, j, k, l, 0, 0]
}

//! Commands that do more with blocks than to move them: VERIFY, WRITE AND VERIFY, ORWRITE,
//! COMPARE AND WRITE, WRITE ATOMIC (SBC-4 §5).
//!
//! Each is a program: steps that are taken once, then steps that are taken for each piece of at
//! most a segment. One step is in flight at a time, and no data goes to the medium that was not
//! received whole.

mod program;

use self::program::{
    COMPARE_AND_WRITE, LONG_OR_WRITE, OR_WRITE, PieceProgram, PieceStep, VERIFY, VERIFY_BLOCK,
    VERIFY_DATA, WRITE_AND_COMPARE, WRITE_AND_VERIFY, WRITE_ATOMIC,
};
use super::begin::too_long;
use super::tasks::{TaskEnd, TaskPhase, TaskSlot};
use super::transfer::forces_unit_access;
use super::{DeviceServer, TaskJob};
use crate::commands::{Handler, Medium};
use crate::limits;
use crate::medium::{Extent, Lease, MediumOp, MediumOutcome, ReadMemory, SEGMENT_BYTES, Traits};
use crate::owner::UnitChange;
use crate::task::CommandFailure;
use crate::wire::asc;
use crate::wire::cdb::byte;
use crate::wire::sense::{Sense, SenseKey};

/// A program that is being carried out.
#[derive(Debug)]
pub(super) struct Pieces<L> {
    program: &'static PieceProgram,
    /// Which step, counted through `once` and `each`.
    step: usize,
    extent: Extent,
    /// Blocks in a piece; the last may have fewer.
    stride: u64,
    /// The first block of the piece, from the beginning of the extent.
    at: u64,
    received: Option<L>,
    read: Option<L>,
    fua: bool,
    atomic: bool,
}

impl<L> Pieces<L> {
    fn current(&self) -> Option<PieceStep> {
        let once = self.program.once.get(self.step);
        let each = || self.program.each.get(self.step - self.program.once.len());
        once.or_else(each).copied()
    }

    /// The blocks of the piece.
    pub(super) fn piece(&self) -> Extent {
        let blocks = self.stride.min(self.extent.blocks - self.at);
        Extent::new(self.extent.lba + self.at, blocks)
    }

    /// Goes on to the next step; returns whether there is one.
    fn next_step(&mut self) -> bool {
        self.step += 1;
        if self.current().is_some() {
            return true;
        }
        self.at += self.stride.min(self.extent.blocks - self.at);
        self.step = self.program.once.len();
        // The lent memory is not kept: the task that has locked the next piece may wait for it.
        self.read = None;
        self.at < self.extent.blocks
    }

    /// Whether it keeps others from changing one piece at a time only.
    pub(super) fn goes_by_pieces(&self) -> bool {
        self.program.goes_by_pieces()
    }

    /// Whether the next step is the first of a piece.
    fn is_between_pieces(&self) -> bool {
        self.step == self.program.once.len()
    }
}

impl<L: Lease> DeviceServer<L> {
    /// VERIFY.
    pub(super) fn verify(&mut self, slot: TaskSlot) {
        match byte_check(&self.tasks[slot as usize].cdb) {
            0b00 => self.run_program(slot, &VERIFY, u32::MAX),
            0b01 => self.run_program(slot, &VERIFY_DATA, self.transfer_limit(slot)),
            0b11 => self.run_program(slot, &VERIFY_BLOCK, u32::MAX),
            _ => self.fail(slot, RESERVED_BYTE_CHECK),
        }
    }

    /// WRITE AND VERIFY.
    pub(super) fn write_and_verify(&mut self, slot: TaskSlot) {
        let limit = self.transfer_limit(slot);
        match byte_check(&self.tasks[slot as usize].cdb) {
            0b00 => self.run_program(slot, &WRITE_AND_VERIFY, limit),
            0b01 => self.run_program(slot, &WRITE_AND_COMPARE, limit),
            _ => self.fail(slot, RESERVED_BYTE_CHECK),
        }
    }

    /// ORWRITE.
    pub(super) fn or_write(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let bytes = task
            .row
            .blocks(&task.cdb)
            .saturating_mul(self.block_size(slot));
        let program = if bytes <= SEGMENT_BYTES {
            &OR_WRITE
        } else {
            &LONG_OR_WRITE
        };
        self.run_program(slot, program, self.transfer_limit(slot));
    }

    /// COMPARE AND WRITE.
    pub(super) fn compare_and_write(&mut self, slot: TaskSlot) {
        let traits = &self.state(self.tasks[slot as usize].unit).traits;
        let limit = u32::from(limits::compare_and_write(traits));
        self.run_program(slot, &COMPARE_AND_WRITE, limit);
    }

    /// WRITE ATOMIC.
    pub(super) fn write_atomic(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        let traits = &self.state(task.unit).traits;
        let extent = task.row.extent(&task.cdb);
        let limit = limits::atomic(traits);
        match check_atomic(traits, extent) {
            Ok(()) => self.run_program(slot, &WRITE_ATOMIC, limit),
            Err(sense) => self.fail(slot, sense),
        }
    }

    fn transfer_limit(&self, slot: TaskSlot) -> u32 {
        limits::transfer(&self.state(self.tasks[slot as usize].unit).traits)
    }

    fn run_program(&mut self, slot: TaskSlot, program: &'static PieceProgram, limit: u32) {
        let block_size = self.block_size(slot);
        let stride = SEGMENT_BYTES / block_size;
        let Some(extent) = self.check_blocks(slot, limit) else {
            return;
        };
        let task = &mut self.tasks[slot as usize];
        let out = program.data_out(extent.blocks) * block_size;
        task.length_out = out;
        let mut extent = extent;
        if program.uses(PieceStep::TakeBoth) && out < u64::from(task.expected_out) {
            // Other writes ignore what is too much. Here the number of blocks tells which half is
            // compared and which is written, and 256 blocks are 0 in its one byte.
            let sense = too_long(task.row);
            return self.fail(slot, sense);
        }
        let expected = u64::from(task.expected_out);
        if out > expected {
            if !program.may_be_cut() || !expected.is_multiple_of(block_size) {
                return self.fail(slot, WRONG_DATA_LENGTH);
            }
            extent.blocks = expected / block_size;
        }
        if extent.blocks == 0 {
            return self.finish(slot, TaskEnd::Good);
        }
        let mut first = extent;
        if program.goes_by_pieces() {
            if !self.is_settled(slot, limit) {
                return;
            }
            first.blocks = stride.min(extent.blocks);
        }
        // Those that lock wait for other locks by asking for their own.
        if !program.uses(PieceStep::Lock) && !self.gate(slot, first) {
            return;
        }
        let task = &mut self.tasks[slot as usize];
        let verifies =
            program.uses(PieceStep::Write) && program.each.last() != Some(&PieceStep::Write);
        task.job = TaskJob::Pieces(Box::new(Pieces {
            program,
            step: 0,
            extent,
            stride,
            at: 0,
            received: None,
            read: None,
            fua: verifies || forces_unit_access(&task.cdb),
            atomic: matches!(task.row.handler, Handler::Medium(Medium::WriteAtomic)),
        }));
        self.take_step(slot);
    }

    /// Takes steps until one has to wait.
    fn take_step(&mut self, slot: TaskSlot) {
        loop {
            let block_size = self.block_size(slot);
            let through = self.state(self.tasks[slot as usize].unit).writes_through();
            let TaskJob::Pieces(pieces) = &mut self.tasks[slot as usize].job else {
                return;
            };
            let extent = pieces.piece();
            let bytes = (extent.blocks * block_size) as u32;
            match pieces.current() {
                None => return,
                Some(PieceStep::Take) => return self.operate(slot, 0, MediumOp::Buffer { bytes }),
                Some(PieceStep::TakeBlock) => {
                    let bytes = block_size as u32;
                    return self.operate(slot, 0, MediumOp::Buffer { bytes });
                }
                Some(PieceStep::TakeBoth) => {
                    let bytes = 2 * bytes;
                    return self.operate(slot, 0, MediumOp::Buffer { bytes });
                }
                Some(PieceStep::Lock) => return self.lock(slot),
                Some(PieceStep::Read) => {
                    // The task holds these blocks until it is done with them, so that no other task
                    // changes them.
                    let memory = ReadMemory::Lent;
                    return self.operate(slot, 0, MediumOp::Read { extent, memory });
                }
                Some(PieceStep::Write) => {
                    let Some(data) = pieces.to_write(bytes as usize) else {
                        return;
                    };
                    let (fua, atomic) = (pieces.fua || through, pieces.atomic);
                    let op = MediumOp::Write {
                        extent,
                        data,
                        fua,
                        atomic,
                    };
                    return self.operate(slot, 0, op);
                }
                Some(PieceStep::Compare | PieceStep::CompareEach | PieceStep::Or) => {
                    if let Some(offset) = pieces.compute(block_size as usize) {
                        return self.fail(slot, miscompare(offset));
                    }
                }
            }
            if !self.step_done(slot) {
                return;
            }
        }
    }

    /// Goes on after a step; returns whether there is another.
    fn step_done(&mut self, slot: TaskSlot) -> bool {
        let TaskJob::Pieces(pieces) = &mut self.tasks[slot as usize].job else {
            return false;
        };
        let more = pieces.next_step();
        if !more {
            self.finish(slot, TaskEnd::Good);
            return false;
        }
        if !pieces.goes_by_pieces() || !pieces.is_between_pieces() {
            return true;
        }
        let piece = pieces.piece();
        self.look_at_pending(slot);
        self.gate(slot, piece)
    }

    /// Goes on with a piece that was locked.
    pub(super) fn pieces_on(&mut self, slot: TaskSlot) {
        let TaskJob::Pieces(pieces) = &self.tasks[slot as usize].job else {
            return;
        };
        let piece = pieces.piece();
        if self.gate(slot, piece) {
            self.take_step(slot);
        }
    }

    /// Has a task ask for its extent alone.
    pub(super) fn lock(&mut self, slot: TaskSlot) {
        let extent = self.tasks[slot as usize].extent;
        self.ask_for_task(slot, UnitChange::Lock(extent));
        let task = &mut self.tasks[slot as usize];
        task.lock = task.ask;
    }

    /// The lock was granted.
    pub(super) fn pieces_granted(&mut self, slot: TaskSlot) {
        self.tasks[slot as usize].phase = TaskPhase::Running;
        if self.step_done(slot) {
            self.take_step(slot);
        }
    }

    pub(super) fn pieces_progressed(&mut self, slot: TaskSlot, outcome: MediumOutcome<L>) {
        let block_size = self.block_size(slot);
        let TaskJob::Pieces(pieces) = &mut self.tasks[slot as usize].job else {
            return;
        };
        if let MediumOutcome::Lease(lease) = outcome {
            if pieces.current() != Some(PieceStep::Read) {
                let offset = match pieces.current() {
                    Some(PieceStep::Take) => pieces.at * block_size,
                    _ => 0,
                };
                return self.receive(slot, offset as u32, lease);
            }
            pieces.read = Some(lease);
        }
        if self.step_done(slot) {
            self.take_step(slot);
        }
    }

    pub(super) fn pieces_received(&mut self, slot: TaskSlot, data: L) {
        if let TaskJob::Pieces(pieces) = &mut self.tasks[slot as usize].job {
            pieces.received = Some(data);
        }
        if self.step_done(slot) {
            self.take_step(slot);
        }
    }
}

impl<L: Lease> Pieces<L> {
    /// What is to be written: the last of what was received.
    fn to_write(&self, bytes: usize) -> Option<L> {
        let data = self.received.as_ref()?;
        Some(data.slice(data.len().checked_sub(bytes)?, bytes))
    }

    /// Compares or combines; gives the offset in Data-Out of the first byte that differs.
    fn compute(&mut self, block_size: usize) -> Option<u64> {
        // Memory that was lent is not held while data of the next piece is waited for.
        let (Some(received), Some(read)) = (&mut self.received, self.read.take()) else {
            return None;
        };
        let once = &self.program.once;
        match self.program.each.get(self.step.checked_sub(once.len())?) {
            Some(PieceStep::Or) => {
                received.or_with(&read);
                None
            }
            Some(PieceStep::CompareEach) => (0..read.len() / block_size)
                .find_map(|block| received.difference(&read.slice(block * block_size, block_size)))
                .map(|offset| offset as u64),
            _ => {
                let offset = received.slice(0, read.len()).difference(&read)?;
                Some(self.at * block_size as u64 + offset as u64)
            }
        }
    }
}

/// BYTCHK.
fn byte_check(cdb: &[u8]) -> u8 {
    byte(cdb, 1) >> 1 & 0b11
}

/// SBC-4 §5.48: alignment and granularity of an atomic write.
fn check_atomic(traits: &Traits, extent: Extent) -> Result<(), Sense> {
    let Some(atomic) = traits.atomic else {
        return Ok(());
    };
    if !extent
        .lba
        .is_multiple_of(u64::from(atomic.alignment.max(1)))
    {
        return Err(Sense::cdb_field(2, None));
    }
    if !extent
        .blocks
        .is_multiple_of(u64::from(atomic.granularity.max(1)))
    {
        return Err(Sense::cdb_field(12, None));
    }
    Ok(())
}

/// The offset in Data-Out of the first byte that differs is told in INFORMATION (SBC-4 §5.3).
fn miscompare(offset: u64) -> CommandFailure {
    CommandFailure::Check(Sense {
        information: Some(offset),
        ..Sense::new(SenseKey::Miscompare, asc::MISCOMPARE_DURING_VERIFY)
    })
}

const RESERVED_BYTE_CHECK: CommandFailure = CommandFailure::Check(Sense::cdb_field(1, Some(2)));

/// INVALID FIELD IN COMMAND INFORMATION UNIT, as FCP-4 has it for a command whose data is cut short
/// (FCP_DL; EDTL in iSCSI): nothing is transferred. A command that can work on its first blocks
/// alone does so, unless the data that was announced ends inside a block.
pub(super) const WRONG_DATA_LENGTH: CommandFailure = CommandFailure::Check(Sense::new(
    SenseKey::IllegalRequest,
    asc::INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT,
));

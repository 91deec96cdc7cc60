//! FORMAT UNIT and SANITIZE (SBC-4 §5.4, §5.30).
//!
//! Both first lock the whole unit, so that everything else has ended, then tell all cores that the
//! unit is not ready, and then go over the medium. FORMAT UNIT leaves zeros.

use super::ask::Asker;
use super::sweep::{Act, Sweep};
use super::tasks::{Ending, Phase, Slot, Task};
use super::{DeviceServer, Job};
use crate::medium::{Extent, Lease, MediumOp, Sanitize, Traits};
use crate::operation::{Operation, OperationState, Step};
use crate::owner::Change;
use crate::task::Failure;
use crate::wire::cdb::{be16, be32, bit, octet};
use crate::wire::sense::Sense;

/// A long operation that is being carried out.
#[derive(Debug)]
pub(super) struct Long<L> {
    operation: Operation,
    stage: Stage,
    immediate: bool,
    /// What to do over the whole medium, the next last.
    passes: Vec<Act<L>>,
    sweep: Sweep<L>,
    /// Blocks in all passes.
    total: u64,
    /// What was told of the progress, in 1/65,536.
    told: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits until everything else on the unit has ended.
    Locking,
    /// Waits until every core knows of it.
    Beginning,
    /// Goes over the medium.
    Working,
    /// Makes stable what a pass has done.
    Flushing,
    /// Waits until every core knows of its end.
    Ending,
}

/// Progress is told in steps of 1/64: each goes through the owner to every core.
const PROGRESS_STEP: u32 = 10;

impl<L: Lease> DeviceServer<L> {
    /// How long the parameter list of FORMAT UNIT is: its CDB does not tell.
    pub(super) fn format_parameters(&self, slot: Slot) -> u32 {
        let cdb = &self.tasks[slot as usize].cdb;
        match (bit(cdb, 1, FMTDATA), bit(cdb, 1, LONGLIST)) {
            (false, _) => 0,
            (true, false) => 4,
            (true, true) => 8,
        }
    }

    /// FORMAT UNIT, its parameter list header received.
    pub(super) fn format_unit(&mut self, slot: Slot, header: &[u8]) {
        let needed = self.format_parameters(slot) as usize;
        let task = &self.tasks[slot as usize];
        let traits = &self.state(task.unit).traits;
        let act = match traits.unmap_granularity {
            Some(_) => Act::Unmap { anchor: false },
            None => Act::Fill(None),
        };
        match format_header(header, needed) {
            Err(sense) => self.finish(slot, Ending::Failed(Failure::Check(sense))),
            Ok(immediate) => self.start_long(slot, Operation::Format, immediate, vec![act]),
        }
    }

    /// SANITIZE, its parameter list received.
    pub(super) fn sanitize(&mut self, slot: Slot, parameters: &[u8]) {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let length = usize::from(be16(&task.cdb, 7));
        let lasting = !bit(&task.cdb, 1, AUSE);
        let passes = match octet(&task.cdb, 1) & 0x1f {
            OVERWRITE => overwrite_passes(&state.traits, length, parameters),
            BLOCK_ERASE if length == 0 => Ok(vec![Act::Sanitize(Sanitize::BlockErase)]),
            EXIT_FAILURE_MODE if length == 0 => return self.exit_failure_mode(slot),
            _ => Err(Sense::cdb_field(7, None)),
        };
        let immediate = bit(&task.cdb, 1, IMMEDIATE);
        match passes {
            Err(sense) => self.finish(slot, Ending::Failed(Failure::Check(sense))),
            Ok(passes) => {
                self.start_long(slot, Operation::Sanitize { lasting }, immediate, passes);
            }
        }
    }

    /// EXIT FAILURE MODE: only where the SANITIZE that failed allowed it by AUSE.
    fn exit_failure_mode(&mut self, slot: Slot) {
        let task = &self.tasks[slot as usize];
        match self.state(task.unit).operation {
            OperationState::Failed(Operation::Sanitize { lasting: true }) => {
                let sense = Sense::cdb_field(1, Some(4));
                self.finish(slot, Ending::Failed(Failure::Check(sense)));
            }
            OperationState::Failed(Operation::Sanitize { lasting: false }) => {
                self.tasks[slot as usize].job = Job::Change { flush: false };
                self.ask_for_task(slot, Change::Operation(Step::Forget));
            }
            _ => self.finish(slot, Ending::Good),
        }
    }

    fn start_long(
        &mut self,
        slot: Slot,
        operation: Operation,
        immediate: bool,
        mut passes: Vec<Act<L>>,
    ) {
        let state = self.state(self.tasks[slot as usize].unit);
        if let OperationState::Running { .. } = state.operation
            && let Err(failure) = state.operation.ready()
        {
            return self.finish(slot, Ending::Failed(failure));
        }
        let whole = Extent::new(0, state.traits.blocks);
        let total = whole.blocks * passes.len() as u64;
        let Some(first) = passes.pop() else {
            return self.finish(slot, Ending::Good);
        };
        let sweep = Sweep::new(first, vec![whole], &state.traits);
        let task = &mut self.tasks[slot as usize];
        task.extent = whole;
        task.job = Job::Long(Box::new(Long {
            operation,
            stage: Stage::Locking,
            immediate,
            passes,
            sweep,
            total,
            told: 0,
        }));
        self.lock(slot);
    }

    /// The owner agreed to the next stage.
    pub(super) fn long_granted(&mut self, slot: Slot) {
        let Job::Long(long) = &mut self.tasks[slot as usize].job else {
            return;
        };
        match long.stage {
            Stage::Locking => {
                long.stage = Stage::Beginning;
                let change = Change::Operation(Step::Begin(long.operation));
                self.ask_for_task(slot, change);
            }
            Stage::Beginning => {
                long.stage = Stage::Working;
                if long.immediate {
                    self.detach(slot, Ending::Good);
                }
                self.tasks[slot as usize].phase = Phase::Running;
                self.long_progressed(slot);
            }
            Stage::Working | Stage::Flushing => {}
            Stage::Ending => self.finish(slot, Ending::Good),
        }
    }

    /// An operation of it ended well.
    pub(super) fn long_progressed(&mut self, slot: Slot) {
        self.tell_progress(slot);
        let whole = Extent::new(0, self.tasks[slot as usize].extent.blocks);
        let unit = self.tasks[slot as usize].unit;
        let traits = self.state(unit).traits.clone();
        let Job::Long(long) = &mut self.tasks[slot as usize].job else {
            return;
        };
        if long.stage == Stage::Flushing {
            let Some(act) = long.passes.pop() else {
                long.stage = Stage::Ending;
                return self.ask_for_task(slot, Change::Operation(Step::End(true)));
            };
            long.stage = Stage::Working;
            long.sweep = Sweep::new(act, vec![whole], &traits);
        }
        let op = long.sweep.next().unwrap_or_else(|| {
            long.stage = Stage::Flushing;
            MediumOp::Flush {
                extent: Extent::new(0, 0),
            }
        });
        self.operate(slot, 0, op);
    }

    fn tell_progress(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot as usize];
        let (unit, nexus) = (task.unit, task.nexus);
        let Job::Long(long) = &mut task.job else {
            return;
        };
        let left = long.sweep.left() + long.passes.len() as u64 * task.extent.blocks;
        let done = u128::from(long.total - left) << 16;
        let progress = (done / u128::from(long.total.max(1))).min(0xffff) as u16;
        if progress >> PROGRESS_STEP != long.told >> PROGRESS_STEP {
            long.told = progress;
            let change = Change::Operation(Step::Progress(progress));
            self.ask(unit, nexus, Asker::Nobody, change);
        }
    }

    /// Ends the operation of a task that ends otherwise than well.
    pub(super) fn abandon_long(&mut self, task: &Task<L>) {
        let Job::Long(long) = &task.job else {
            return;
        };
        let step = match long.stage {
            Stage::Locking | Stage::Ending => return,
            // Nothing was touched.
            Stage::Beginning => Step::End(true),
            Stage::Working | Stage::Flushing => Step::End(false),
        };
        self.ask(
            task.unit,
            task.nexus,
            Asker::Nobody,
            Change::Operation(step),
        );
    }
}

impl<L: Lease> Long<L> {
    /// See [`Sweep::fill_instead`].
    pub(super) fn fill_instead(&mut self) -> bool {
        self.stage == Stage::Working && self.sweep.fill_instead()
    }
}

impl<L> Long<L> {
    /// Whether aborting the task leaves the operation going on: a SANITIZE that has begun ends
    /// only by itself (SBC-4 §4.11.3).
    pub(super) const fn outlives_task(&self) -> bool {
        matches!(self.operation, Operation::Sanitize { .. })
            && matches!(self.stage, Stage::Working | Stage::Flushing | Stage::Ending)
    }
}

const LONGLIST: u8 = 0x20;
const FMTDATA: u8 = 0x10;
const IMMEDIATE: u8 = 0x80;
const AUSE: u8 = 0x20;
const OVERWRITE: u8 = 0x01;
const BLOCK_ERASE: u8 = 0x02;
const EXIT_FAILURE_MODE: u8 = 0x1f;

/// SBC-4 §5.4.2: there are no defects to be listed, and no initialization pattern but zeros.
/// Returns IMMED.
fn format_header(header: &[u8], needed: usize) -> Result<bool, Sense> {
    if header.len() < needed {
        return Err(Sense::parameter_length());
    }
    if needed == 0 {
        return Ok(false);
    }
    if octet(header, 0) & 0x07 != 0 {
        return Err(Sense::parameter_field(0, Some(2)));
    }
    // FOV says whether DPRY, DCRT, STPF and IP are to be looked at.
    let options = octet(header, 1) & 0x78;
    if options & 0x08 != 0 || (options != 0 && !bit(header, 1, 0x80)) {
        return Err(Sense::parameter_field(1, Some(options.ilog2() as u8)));
    }
    let (at, defects) = match needed {
        4 => (2, u32::from(be16(header, 2))),
        _ => (4, be32(header, 4)),
    };
    if defects != 0 {
        return Err(Sense::parameter_field(at, None));
    }
    Ok(bit(header, 1, 0x02))
}

/// SBC-4 §5.30.2.2. A pattern shorter than a block is repeated in it. INVERT has every second pass
/// write the complement. The pass to begin with comes last.
fn overwrite_passes<L: Lease>(
    traits: &Traits,
    length: usize,
    list: &[u8],
) -> Result<Vec<Act<L>>, Sense> {
    let block = traits.block_size as usize;
    if !(5..=block + 4).contains(&length) {
        return Err(Sense::cdb_field(7, None));
    }
    let count = octet(list, 0) & 0x1f;
    let pattern_length = usize::from(be16(list, 2));
    let pattern = list.get(4..4 + pattern_length);
    // SBC-4 has these two in the CDB's sense code, though they are in the parameter list.
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty() && count > 0) else {
        return Err(Sense::cdb_field(7, None));
    };
    let invert = bit(list, 0, 0x80);
    let pass = |number: u8| {
        let flip = if invert && number % 2 == 1 { 0xff } else { 0 };
        let octets = pattern.iter().map(|octet| octet ^ flip);
        let pattern = L::from_bytes(octets.cycle().take(block).collect());
        Act::Sanitize(Sanitize::Overwrite { pattern })
    };
    Ok((0..count).rev().map(pass).collect())
}

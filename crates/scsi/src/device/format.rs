//! FORMAT UNIT and SANITIZE (SBC-4 §5.4, §5.30).
//!
//! Both first lock the whole unit, so that everything else has ended, then tell all cores that the
//! unit is not ready, and then go over the medium. FORMAT UNIT leaves zeros.

use super::ask::RequestOrigin;
use super::block_scan::{BlockScan, ScanAction};
use super::tasks::{DeviceTask, TaskEnd, TaskPhase, TaskSlot};
use super::{DeviceServer, TaskJob};
use crate::long_operation::{LongOperationKind, LongOperationStep, OperationState};
use crate::medium::{Extent, Lease, MediumOp, Sanitize, Traits};
use crate::owner::UnitChange;
use crate::wire::cdb::{be16, be32, bit, byte};
use crate::wire::sense::Sense;

/// A long operation that is being carried out.
#[derive(Debug)]
pub(super) struct LongOperation<L> {
    operation: LongOperationKind,
    stage: FormatStage,
    immediate: bool,
    /// What to do over the whole medium, the next last.
    passes: Vec<ScanAction<L>>,
    sweep: BlockScan<L>,
    /// Blocks in all passes.
    total: u64,
    /// What was told of the progress, in 1/65,536.
    told: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormatStage {
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
    pub(super) fn format_parameters(&self, slot: TaskSlot) -> u32 {
        let cdb = &self.tasks[slot as usize].cdb;
        match (bit(cdb, 1, FMTDATA), bit(cdb, 1, LONGLIST)) {
            (false, _) => 0,
            (true, false) => 4,
            (true, true) => 8,
        }
    }

    /// FORMAT UNIT, its parameter list header received.
    pub(super) fn format_unit(&mut self, slot: TaskSlot, header: &[u8]) {
        let needed = self.format_parameters(slot) as usize;
        let task = &self.tasks[slot as usize];
        let traits = &self.state(task.unit).traits;
        let act = match traits.unmap_granularity {
            Some(_) => ScanAction::Unmap { anchor: false },
            None => ScanAction::Fill(None),
        };
        match format_header(header, needed) {
            Err(sense) => self.fail(slot, sense),
            Ok(immediate) => self.start_long(slot, LongOperationKind::Format, immediate, vec![act]),
        }
    }

    /// SANITIZE, its parameter list received.
    pub(super) fn sanitize(&mut self, slot: TaskSlot, parameters: &[u8]) {
        let task = &self.tasks[slot as usize];
        let state = self.state(task.unit);
        let length = usize::from(be16(&task.cdb, 7));
        let lasting = !bit(&task.cdb, 1, AUSE);
        let passes = match byte(&task.cdb, 1) & 0x1f {
            OVERWRITE => overwrite_passes(&state.traits, length, parameters),
            BLOCK_ERASE if length == 0 => Ok(vec![ScanAction::Sanitize(Sanitize::BlockErase)]),
            EXIT_FAILURE_MODE if length == 0 => return self.exit_failure_mode(slot),
            _ => Err(Sense::cdb_field(7, None)),
        };
        let immediate = bit(&task.cdb, 1, IMMEDIATE);
        match passes {
            Err(sense) => self.fail(slot, sense),
            Ok(passes) => {
                self.start_long(
                    slot,
                    LongOperationKind::Sanitize { lasting },
                    immediate,
                    passes,
                );
            }
        }
    }

    /// EXIT FAILURE MODE: only where the SANITIZE that failed allowed it by AUSE.
    fn exit_failure_mode(&mut self, slot: TaskSlot) {
        let task = &self.tasks[slot as usize];
        match self.state(task.unit).operation {
            OperationState::Failed(LongOperationKind::Sanitize { lasting: true }) => {
                let sense = Sense::cdb_field(1, Some(4));
                self.fail(slot, sense);
            }
            OperationState::Failed(LongOperationKind::Sanitize { lasting: false }) => {
                self.tasks[slot as usize].job = TaskJob::Change { flush: false };
                self.ask_for_task(slot, UnitChange::Operation(LongOperationStep::Forget));
            }
            _ => self.finish(slot, TaskEnd::Good),
        }
    }

    fn start_long(
        &mut self,
        slot: TaskSlot,
        operation: LongOperationKind,
        immediate: bool,
        mut passes: Vec<ScanAction<L>>,
    ) {
        let state = self.state(self.tasks[slot as usize].unit);
        if let OperationState::Running { .. } = state.operation
            && let Err(failure) = state.operation.ready()
        {
            return self.fail(slot, failure);
        }
        let whole = Extent::new(0, state.traits.blocks);
        let total = whole.blocks * passes.len() as u64;
        let Some(first) = passes.pop() else {
            return self.finish(slot, TaskEnd::Good);
        };
        let sweep = BlockScan::new(first, vec![whole], &state.traits);
        let task = &mut self.tasks[slot as usize];
        task.extent = whole;
        task.job = TaskJob::Long(Box::new(LongOperation {
            operation,
            stage: FormatStage::Locking,
            immediate,
            passes,
            sweep,
            total,
            told: 0,
        }));
        self.lock(slot);
    }

    /// The owner agreed to the next stage.
    pub(super) fn long_granted(&mut self, slot: TaskSlot) {
        let TaskJob::Long(long) = &mut self.tasks[slot as usize].job else {
            return;
        };
        match long.stage {
            FormatStage::Locking => {
                long.stage = FormatStage::Beginning;
                let change = UnitChange::Operation(LongOperationStep::Begin(long.operation));
                self.ask_for_task(slot, change);
            }
            FormatStage::Beginning => {
                long.stage = FormatStage::Working;
                if long.immediate {
                    self.go_on_in_background(slot, TaskEnd::Good);
                }
                self.tasks[slot as usize].phase = TaskPhase::Running;
                self.long_progressed(slot);
            }
            FormatStage::Working | FormatStage::Flushing => {}
            FormatStage::Ending => self.finish(slot, TaskEnd::Good),
        }
    }

    /// An operation of it ended well.
    pub(super) fn long_progressed(&mut self, slot: TaskSlot) {
        self.tell_progress(slot);
        let whole = Extent::new(0, self.tasks[slot as usize].extent.blocks);
        let unit = self.tasks[slot as usize].unit;
        let traits = self.state(unit).traits.clone();
        let TaskJob::Long(long) = &mut self.tasks[slot as usize].job else {
            return;
        };
        if long.stage == FormatStage::Flushing {
            let Some(act) = long.passes.pop() else {
                long.stage = FormatStage::Ending;
                return self
                    .ask_for_task(slot, UnitChange::Operation(LongOperationStep::End(true)));
            };
            long.stage = FormatStage::Working;
            long.sweep = BlockScan::new(act, vec![whole], &traits);
        }
        let op = long.sweep.next().unwrap_or_else(|| {
            long.stage = FormatStage::Flushing;
            MediumOp::Flush {
                extent: Extent::new(0, 0),
            }
        });
        self.operate(slot, 0, op);
    }

    fn tell_progress(&mut self, slot: TaskSlot) {
        let task = &mut self.tasks[slot as usize];
        let (unit, nexus) = (task.unit, task.nexus);
        let TaskJob::Long(long) = &mut task.job else {
            return;
        };
        let left = long.sweep.left() + long.passes.len() as u64 * task.extent.blocks;
        let done = u128::from(long.total - left) << 16;
        let progress = (done / u128::from(long.total.max(1))).min(0xffff) as u16;
        if progress >> PROGRESS_STEP != long.told >> PROGRESS_STEP {
            long.told = progress;
            let change = UnitChange::Operation(LongOperationStep::Progress(progress));
            self.ask(unit, nexus, RequestOrigin::NotAwaited, change);
        }
    }

    /// Ends the operation of a task that ends otherwise than well.
    pub(super) fn abandon_long(&mut self, task: &DeviceTask<L>) {
        let TaskJob::Long(long) = &task.job else {
            return;
        };
        let step = match long.stage {
            FormatStage::Locking | FormatStage::Ending => return,
            // Nothing was touched.
            FormatStage::Beginning => LongOperationStep::End(true),
            FormatStage::Working | FormatStage::Flushing => LongOperationStep::End(false),
        };
        self.ask(
            task.unit,
            task.nexus,
            RequestOrigin::NotAwaited,
            UnitChange::Operation(step),
        );
    }
}

impl<L: Lease> LongOperation<L> {
    /// See [`BlockScan::fill_instead`].
    pub(super) fn fill_instead(&mut self) -> bool {
        self.stage == FormatStage::Working && self.sweep.fill_instead()
    }
}

impl<L> LongOperation<L> {
    /// Whether aborting the task leaves the operation going on: a SANITIZE that has begun ends
    /// only by itself (SBC-4 §4.11.3).
    pub(super) const fn outlives_task(&self) -> bool {
        matches!(self.operation, LongOperationKind::Sanitize { .. })
            && matches!(
                self.stage,
                FormatStage::Working | FormatStage::Flushing | FormatStage::Ending
            )
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
    if byte(header, 0) & 0x07 != 0 {
        return Err(Sense::parameter_field(0, Some(2)));
    }
    // FOV says whether DPRY, DCRT, STPF and IP are to be looked at.
    let options = byte(header, 1) & 0x78;
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
) -> Result<Vec<ScanAction<L>>, Sense> {
    let block = traits.block_size as usize;
    if !(5..=block + 4).contains(&length) {
        return Err(Sense::cdb_field(7, None));
    }
    let count = byte(list, 0) & 0x1f;
    let pattern_length = usize::from(be16(list, 2));
    let pattern = list.get(4..4 + pattern_length);
    // SBC-4 has these two in the CDB's sense code, though they are in the parameter list.
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty() && count > 0) else {
        return Err(Sense::cdb_field(7, None));
    };
    let invert = bit(list, 0, 0x80);
    let pass = |number: u8| {
        let flip = if invert && number % 2 == 1 { 0xff } else { 0 };
        let bytes = pattern.iter().map(|byte| byte ^ flip);
        let pattern = L::from_bytes(bytes.cycle().take(block).collect());
        ScanAction::Sanitize(Sanitize::Overwrite { pattern })
    };
    Ok((0..count).rev().map(pass).collect())
}

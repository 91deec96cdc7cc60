//! Several parts, as one core works on them.

use std::ops::Range;
use std::sync::Arc;

use ::io::memory::{Buffer, Pool, Recall};
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning,
    ReadMemory,
};
use slab::Slab;

use super::Layout;
use crate::child::{Child, in_flight};
use crate::lease::BlockLease;
use crate::size::BlockSize;
use crate::volume::{Context, Handle, HandleEvent, HandleId};

pub(super) struct PartsHandle {
    parts: Vec<Child>,
    rules: PartsRules,
    pool: Pool,
    /// What has pieces in flight.
    wholes: Slab<SplitOperation>,
}

/// What holds for all operations.
pub(super) struct PartsRules {
    pub(super) layout: Arc<dyn Layout>,
    pub(super) block_size: BlockSize,
    pub(super) read_only: bool,
}

/// An operation that was handed on to parts.
struct SplitOperation {
    id: u64,
    /// Pieces started, and those that have ended.
    started: u32,
    ended: u32,
    /// The first that was met.
    error: Option<MediumError>,
    kind: JoinKind,
}

/// What comes out of the pieces.
enum JoinKind {
    /// What the only piece says.
    Pass(Option<MediumOutcome<BlockLease>>),
    /// That all is done.
    Join,
    /// What was read, put together here.
    Gather(Extent, Buffer),
    /// How the first blocks are provisioned.
    Status(Extent, StatusSurvey),
}

/// How far the blocks of each state may reach, while parts answer in any order.
struct StatusSurvey {
    /// The lowest block that was met in each state.
    first: [u64; 3],
    /// The lowest block at which a run of each state ended.
    end: [u64; 3],
    /// The state of the very first block.
    state: Provisioning,
}

impl PartsHandle {
    pub(super) fn new(parts: Vec<Child>, rules: PartsRules, pool: Pool) -> Self {
        Self {
            parts,
            rules,
            pool,
            wholes: Slab::new(),
        }
    }

    fn start(
        &mut self,
        cx: &mut Context<'_>,
        op: MediumOp<BlockLease>,
        slot: usize,
    ) -> PartsStarted {
        match op {
            MediumOp::Read { extent, memory } => self.read(cx, slot, extent, memory),
            MediumOp::Buffer { bytes } => self.buffer(bytes as usize).map(Some),
            MediumOp::Status { extent } => self.status(cx, slot, extent),
            MediumOp::Prefetch { extent } => {
                self.each(cx, slot, extent, |extent| MediumOp::Prefetch { extent })
            }
            MediumOp::Flush { extent } if extent.blocks == 0 => self.flush_all(cx, slot),
            MediumOp::Flush { extent } => {
                self.each(cx, slot, extent, |extent| MediumOp::Flush { extent })
            }
            _ if self.rules.read_only => Err(MediumError::ReadOnly),
            MediumOp::PrepareWrite { extent } => self.lend(cx, slot, extent),
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic,
            } => self.write(cx, slot, extent, data, WriteMode { fua, atomic }),
            MediumOp::WriteSame { extent, pattern } => {
                self.each(cx, slot, extent, |extent| MediumOp::WriteSame {
                    extent,
                    pattern: pattern.clone(),
                })
            }
            MediumOp::Unmap { extent, anchor } => self.each(cx, slot, extent, |extent| {
                MediumOp::Unmap { extent, anchor }
            }),
            MediumOp::Sanitize { extent, method } => {
                self.each(cx, slot, extent, |extent| MediumOp::Sanitize {
                    extent,
                    method: method.clone(),
                })
            }
        }
    }

    fn read(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        extent: Extent,
        memory: ReadMemory,
    ) -> PartsStarted {
        if let Some((part, extent)) = self.rules.within(extent) {
            return self.pass(cx, slot, part, MediumOp::Read { extent, memory });
        }
        let buffer = self.pool.buffer(self.rules.block_size.len(extent));
        let buffer = buffer.ok_or(MediumError::Busy)?;
        self.wholes[slot].kind = JoinKind::Gather(extent, buffer);
        // It is copied here.
        let memory = ReadMemory::Lent;
        self.each(cx, slot, extent, |extent| MediumOp::Read { extent, memory })
    }

    fn lend(&mut self, cx: &mut Context<'_>, slot: usize, extent: Extent) -> PartsStarted {
        match self.rules.within(extent) {
            Some((part, extent)) => self.pass(cx, slot, part, MediumOp::PrepareWrite { extent }),
            None => self.buffer(self.rules.block_size.len(extent)).map(Some),
        }
    }

    fn buffer(&self, len: usize) -> Result<MediumOutcome<BlockLease>, MediumError> {
        let buffer = self.pool.buffer(len).ok_or(MediumError::Busy)?;
        Ok(MediumOutcome::Lease(buffer.into()))
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        extent: Extent,
        data: BlockLease,
        WriteMode { fua, atomic }: WriteMode,
    ) -> PartsStarted {
        let op = |extent, data| MediumOp::Write {
            extent,
            data,
            fua,
            atomic,
        };
        if let Some((part, extent)) = self.rules.within(extent) {
            return self.pass(cx, slot, part, op(extent, data));
        }
        if atomic {
            return Err(MediumError::Unsupported);
        }
        let mut at = extent.lba;
        while at < extent.end() {
            let place = self.rules.layout.place(at);
            let run = place.run.min(extent.end() - at);
            let (before, piece) = (
                Extent::new(extent.lba, at - extent.lba),
                Extent::new(at, run),
            );
            let len = self.rules.block_size.len(piece);
            let data = data.slice(self.rules.block_size.len(before), len);
            let op = op(Extent::new(place.lba, run), data);
            self.piece(cx, slot, place.part, op);
            at += run;
        }
        Ok(None)
    }

    fn status(&mut self, cx: &mut Context<'_>, slot: usize, extent: Extent) -> PartsStarted {
        self.wholes[slot].kind = JoinKind::Status(extent, StatusSurvey::new(extent));
        self.each(cx, slot, extent, |extent| MediumOp::Status { extent })
    }

    fn flush_all(&mut self, cx: &mut Context<'_>, slot: usize) -> PartsStarted {
        let extent = Extent::new(0, 0);
        for part in 0..self.parts.len() {
            self.piece(cx, slot, part, MediumOp::Flush { extent });
        }
        Ok(None)
    }

    /// Hands on to one part what lies there whole.
    fn pass(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        part: usize,
        op: MediumOp<BlockLease>,
    ) -> PartsStarted {
        self.wholes[slot].kind = JoinKind::Pass(None);
        self.piece(cx, slot, part, op);
        Ok(None)
    }

    /// Hands on to each part what of the extent lies there, in one piece.
    fn each(
        &mut self,
        cx: &mut Context<'_>,
        slot: usize,
        extent: Extent,
        op: impl Fn(Extent) -> MediumOp<BlockLease>,
    ) -> PartsStarted {
        for part in 0..self.parts.len() {
            let inside = self.rules.layout.on(part, extent);
            if inside.blocks > 0 {
                self.piece(cx, slot, part, op(inside));
            }
        }
        match self.wholes[slot].started {
            0 => Ok(Some(MediumOutcome::Done)),
            _ => Ok(None),
        }
    }

    /// Pieces are told apart by number, as some parts may need that.
    fn piece(&mut self, cx: &mut Context<'_>, slot: usize, part: usize, op: MediumOp<BlockLease>) {
        let whole = &mut self.wholes[slot];
        let id = (slot as u64) << 32 | u64::from(whole.started);
        whole.started += 1;
        self.parts[part].submit(cx, id, op);
    }

    fn owner_of(&mut self, node: HandleId) -> Option<&mut Child> {
        self.parts.iter_mut().find(|part| part.owns(node))
    }

    /// Takes what the parts have done. What was started has been counted, so nothing is told early.
    fn drain(&mut self, cx: &mut Context<'_>) {
        for part in 0..self.parts.len() {
            while let Some((id, result)) = self.parts[part].next() {
                self.ended(cx, part, (id >> 32) as usize, result);
            }
        }
    }

    fn ended(
        &mut self,
        cx: &mut Context<'_>,
        part: usize,
        slot: usize,
        result: MediumResult<BlockLease>,
    ) {
        let Some(whole) = self.wholes.get_mut(slot) else {
            return;
        };
        whole.ended += 1;
        match result {
            Ok(outcome) => whole.kind.take(&self.rules, part, outcome),
            // That a part may have been written says more than that others were not.
            Err(MediumError::Unknown) => whole.error = Some(MediumError::Unknown),
            Err(error) => whole.error = whole.error.or(Some(error)),
        }
        if whole.ended == whole.started {
            let whole = self.wholes.remove(slot);
            cx.done(whole.id, whole.result());
        }
    }
}

impl Handle for PartsHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>) {
        let slot = self.wholes.insert(SplitOperation {
            id,
            started: 0,
            ended: 0,
            error: None,
            kind: JoinKind::Join,
        });
        match self.start(cx, op, slot) {
            Ok(None) => self.drain(cx),
            Ok(Some(outcome)) => {
                self.wholes.remove(slot);
                cx.done(id, Ok(outcome));
            }
            Err(error) => {
                self.wholes.remove(slot);
                cx.done(id, Err(error));
            }
        }
    }

    fn event(&mut self, cx: &mut Context<'_>, node: HandleId, slot: u32, event: HandleEvent<'_>) {
        if let Some(part) = self.owner_of(node) {
            part.event(cx, node, slot, event);
            self.drain(cx);
        }
    }

    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        for whole in in_flight(&self.wholes, ids, |whole| whole.id) {
            let pieces = whole.start << 32..whole.end << 32;
            for part in &mut self.parts {
                part.cancel(cx, &pieces);
            }
        }
        self.drain(cx);
    }

    fn recall(&mut self) -> Option<Recall> {
        let recalls = self.parts.iter_mut().filter_map(Child::recall);
        recalls.reduce(Recall::and)
    }

    fn resume(&mut self, cx: &mut Context<'_>) {
        for part in &mut self.parts {
            part.resume(cx);
        }
        self.drain(cx);
    }

    fn leave(&mut self, cx: &mut Context<'_>) {
        for part in &mut self.parts {
            part.leave(cx);
        }
    }

    fn has_left(&self) -> bool {
        self.parts.iter().all(Child::has_left)
    }
}

/// What an operation came to: its outcome now, or later, when its pieces have ended.
type PartsStarted = Result<Option<MediumOutcome<BlockLease>>, MediumError>;

/// How a write is to be done.
struct WriteMode {
    fua: bool,
    atomic: bool,
}

impl PartsRules {
    /// The part that an extent lies on whole, and where.
    fn within(&self, extent: Extent) -> Option<(usize, Extent)> {
        let place = self.layout.place(extent.lba);
        let inside = Extent::new(place.lba, extent.blocks);
        (extent.blocks <= place.run).then_some((place.part, inside))
    }

    /// Copies what was read of a part to where it belongs.
    fn gather(&self, part: usize, extent: Extent, data: &Buffer, into: &Buffer) {
        let inside = self.layout.on(part, extent);
        let mut at = inside.lba;
        while at < inside.end() {
            let lba = self.layout.back(part, at);
            let run = self.layout.place(lba).run.min(inside.end() - at);
            let len = |blocks| self.block_size.len(Extent::new(0, blocks));
            let piece = data.slice(len(at - inside.lba), len(run));
            into.copy_from(len(lba - extent.lba), &piece);
            at += run;
        }
    }
}

impl SplitOperation {
    fn result(self) -> MediumResult<BlockLease> {
        match (self.error, self.kind) {
            (Some(error), _) => Err(error),
            (None, JoinKind::Pass(outcome)) => Ok(outcome.unwrap_or(MediumOutcome::Done)),
            (None, JoinKind::Join) => Ok(MediumOutcome::Done),
            (None, JoinKind::Gather(_, buffer)) => Ok(MediumOutcome::Lease(buffer.into())),
            (None, JoinKind::Status(extent, survey)) => Ok(survey.outcome(extent)),
        }
    }
}

impl JoinKind {
    /// Takes what a piece came to.
    fn take(&mut self, rules: &PartsRules, part: usize, outcome: MediumOutcome<BlockLease>) {
        match (self, outcome) {
            (Self::Pass(passed), outcome) => *passed = Some(outcome),
            (Self::Gather(extent, buffer), MediumOutcome::Lease(lease)) => {
                rules.gather(part, *extent, lease.buffer(), buffer);
            }
            (Self::Status(extent, survey), MediumOutcome::Provisioning { blocks, state }) => {
                survey.note(rules, part, *extent, (blocks, state));
            }
            _ => {}
        }
    }
}

impl StatusSurvey {
    fn new(extent: Extent) -> Self {
        Self {
            first: [extent.end(); 3],
            end: [extent.end(); 3],
            state: Provisioning::Mapped,
        }
    }

    /// The first `blocks` blocks that a part has of the extent are in a state.
    fn note(
        &mut self,
        rules: &PartsRules,
        part: usize,
        extent: Extent,
        (blocks, state): (u64, Provisioning),
    ) {
        let inside = rules.layout.on(part, extent);
        let first = rules.layout.back(part, inside.lba);
        if first == extent.lba {
            self.state = state;
        }
        let known = &mut self.first[state as usize];
        *known = first.min(*known);
        if blocks < inside.blocks {
            let end = rules.layout.back(part, inside.lba + blocks);
            let known = &mut self.end[state as usize];
            *known = end.min(*known);
        }
    }

    /// Blocks are alike until the first one in another state, or of which it is not known.
    fn outcome(&self, extent: Extent) -> MediumOutcome<BlockLease> {
        let own = self.state as usize;
        let others = self.first.iter().enumerate();
        let others = others.filter(|(state, _)| *state != own);
        let end = others.fold(self.end[own], |end, (_, first)| end.min(*first));
        MediumOutcome::Provisioning {
            blocks: end - extent.lba,
            state: self.state,
        }
    }
}

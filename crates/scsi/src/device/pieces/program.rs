//! What commands on pieces consist of, step by step.

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Receive the Data-Out that belongs to the piece.
    Take,
    /// Receive one block of Data-Out that stands for every block.
    TakeBlock,
    /// Receive what to compare with, and what to write (COMPARE AND WRITE).
    TakeBoth,
    /// Have the extent alone, on all cores.
    Lock,
    /// Read the piece.
    Read,
    /// Compare what was received with what was read.
    Compare,
    /// Compare the one block received with each that was read.
    CompareEach,
    /// Set what was received to itself OR what was read.
    Or,
    /// Write what was received.
    Write,
}

/// What a command does.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) once: &'static [Step],
    pub(super) each: &'static [Step],
}

impl Program {
    pub(super) fn uses(&self, step: Step) -> bool {
        self.once.contains(&step) || self.each.contains(&step)
    }

    /// How many blocks of Data-Out it takes.
    pub(super) fn data_out(&self, blocks: u64) -> u64 {
        if self.uses(Step::Take) {
            blocks
        } else if self.uses(Step::TakeBoth) {
            2 * blocks
        } else {
            u64::from(self.uses(Step::TakeBlock) && blocks > 0)
        }
    }

    /// Whether each piece is for itself, and nothing is written: VERIFY, which may take hours.
    pub(super) fn goes_by_pieces(&self) -> bool {
        !self.uses(Step::Lock) && !self.uses(Step::Write)
    }

    /// Whether it may do its work on the first blocks only, where the initiator sends no more.
    pub(super) fn may_be_cut(&self) -> bool {
        self.uses(Step::Take) && !self.uses(Step::Lock)
    }
}

pub(super) static VERIFY: Program = Program {
    once: &[],
    each: &[Step::Read],
};
pub(super) static VERIFY_DATA: Program = Program {
    once: &[],
    each: &[Step::Take, Step::Read, Step::Compare],
};
pub(super) static VERIFY_BLOCK: Program = Program {
    once: &[Step::TakeBlock],
    each: &[Step::Read, Step::CompareEach],
};
pub(super) static WRITE_AND_VERIFY: Program = Program {
    once: &[],
    each: &[Step::Take, Step::Write, Step::Read],
};
pub(super) static WRITE_AND_COMPARE: Program = Program {
    once: &[],
    each: &[Step::Take, Step::Write, Step::Read, Step::Compare],
};
/// Of one piece: the lock is held for a moment only.
pub(super) static OR_WRITE: Program = Program {
    once: &[],
    each: &[Step::Take, Step::Lock, Step::Read, Step::Or, Step::Write],
};
/// Of several pieces: it is to be one uninterrupted action (SBC-4 §5.26), which costs others the
/// wait for the initiator's data.
pub(super) static LONG_OR_WRITE: Program = Program {
    once: &[Step::Lock],
    each: &[Step::Take, Step::Read, Step::Or, Step::Write],
};
pub(super) static COMPARE_AND_WRITE: Program = Program {
    once: &[],
    each: &[
        Step::TakeBoth,
        Step::Lock,
        Step::Read,
        Step::Compare,
        Step::Write,
    ],
};
pub(super) static WRITE_ATOMIC: Program = Program {
    once: &[],
    each: &[Step::Take, Step::Lock, Step::Write],
};

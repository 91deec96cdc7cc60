//! What commands on pieces consist of, step by step.

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceStep {
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
pub(super) struct PieceProgram {
    pub(super) once: &'static [PieceStep],
    pub(super) each: &'static [PieceStep],
}

impl PieceProgram {
    pub(super) fn uses(&self, step: PieceStep) -> bool {
        self.once.contains(&step) || self.each.contains(&step)
    }

    /// How many blocks of Data-Out it takes.
    pub(super) fn data_out(&self, blocks: u64) -> u64 {
        if self.uses(PieceStep::Take) {
            blocks
        } else if self.uses(PieceStep::TakeBoth) {
            2 * blocks
        } else {
            u64::from(self.uses(PieceStep::TakeBlock) && blocks > 0)
        }
    }

    /// Whether each piece is for itself, and nothing is written: VERIFY, which may take hours.
    pub(super) fn goes_by_pieces(&self) -> bool {
        !self.uses(PieceStep::Lock) && !self.uses(PieceStep::Write)
    }

    /// Whether it may do its work on the first blocks only, where the initiator sends no more.
    pub(super) fn may_be_cut(&self) -> bool {
        self.uses(PieceStep::Take) && !self.uses(PieceStep::Lock)
    }
}

pub(super) static VERIFY: PieceProgram = PieceProgram {
    once: &[],
    each: &[PieceStep::Read],
};
pub(super) static VERIFY_DATA: PieceProgram = PieceProgram {
    once: &[],
    each: &[PieceStep::Take, PieceStep::Read, PieceStep::Compare],
};
pub(super) static VERIFY_BLOCK: PieceProgram = PieceProgram {
    once: &[PieceStep::TakeBlock],
    each: &[PieceStep::Read, PieceStep::CompareEach],
};
pub(super) static WRITE_AND_VERIFY: PieceProgram = PieceProgram {
    once: &[],
    each: &[PieceStep::Take, PieceStep::Write, PieceStep::Read],
};
pub(super) static WRITE_AND_COMPARE: PieceProgram = PieceProgram {
    once: &[],
    each: &[
        PieceStep::Take,
        PieceStep::Write,
        PieceStep::Read,
        PieceStep::Compare,
    ],
};
/// Of one piece: the lock is held for a moment only.
pub(super) static OR_WRITE: PieceProgram = PieceProgram {
    once: &[],
    each: &[
        PieceStep::Take,
        PieceStep::Lock,
        PieceStep::Read,
        PieceStep::Or,
        PieceStep::Write,
    ],
};
/// Of several pieces: it is to be one uninterrupted action (SBC-4 §5.26), which costs others the
/// wait for the initiator's data.
pub(super) static LONG_OR_WRITE: PieceProgram = PieceProgram {
    once: &[PieceStep::Lock],
    each: &[
        PieceStep::Take,
        PieceStep::Read,
        PieceStep::Or,
        PieceStep::Write,
    ],
};
pub(super) static COMPARE_AND_WRITE: PieceProgram = PieceProgram {
    once: &[],
    each: &[
        PieceStep::TakeBoth,
        PieceStep::Lock,
        PieceStep::Read,
        PieceStep::Compare,
        PieceStep::Write,
    ],
};
pub(super) static WRITE_ATOMIC: PieceProgram = PieceProgram {
    once: &[],
    each: &[PieceStep::Take, PieceStep::Lock, PieceStep::Write],
};

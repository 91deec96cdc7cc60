//! What is left of a command's data. The device server tells what a CDB asks to move; what was
//! announced beside it, and how the difference is told, are the transport's: `device_ending` and
//! `condition_ending` of `iscsi/src/session/task.rs`, `device_ending` and `refusal` of
//! `fc/src/target/command.rs`.

/// The difference between the bytes that were announced and those that the command asked to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Residual {
    /// As many bytes were transferred as were announced.
    #[default]
    Exact,
    /// This many bytes were not transferred, as fewer were announced.
    Overflow(u32),
    /// This many bytes fewer than announced were transferred.
    Underflow(u32),
}

impl Residual {
    /// What is left when `expected` bytes were announced and the command asks to move `presented`.
    /// An overflow that 32 bits cannot hold is told as their greatest value.
    #[must_use]
    pub fn of(expected: u32, presented: u64) -> Self {
        let wide = u64::from(expected);
        if presented > wide {
            Self::Overflow(u32::try_from(presented - wide).unwrap_or(u32::MAX))
        } else if presented < wide {
            Self::Underflow((wide - presented) as u32)
        } else {
            Self::Exact
        }
    }

    /// As two flags and a count say it. Both flags at once are an error of the target's, and read
    /// as an overflow, which is told to the user.
    #[must_use]
    pub const fn from_flags(overflow: bool, underflow: bool, count: u32) -> Self {
        match (overflow, underflow) {
            (true, _) => Self::Overflow(count),
            (false, true) => Self::Underflow(count),
            (false, false) => Self::Exact,
        }
    }

    /// That of two flags which says it, or 0.
    #[must_use]
    pub const fn flag(self, overflow: u8, underflow: u8) -> u8 {
        match self {
            Self::Exact => 0,
            Self::Overflow(_) => overflow,
            Self::Underflow(_) => underflow,
        }
    }

    /// The bytes.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Exact => 0,
            Self::Overflow(count) | Self::Underflow(count) => count,
        }
    }

    /// Of `expected` bytes those that were moved; `None` if more are left than there were.
    #[must_use]
    pub const fn moved(self, expected: u32) -> Option<u32> {
        match self {
            Self::Underflow(left) => expected.checked_sub(left),
            Self::Exact | Self::Overflow(_) => Some(expected),
        }
    }
}

#[cfg(test)]
mod tests;

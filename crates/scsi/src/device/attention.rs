//! Unit attention conditions that wait for one nexus on one unit (SAM-5 §5.14).

use crate::wire::asc;

/// At most one condition of a code, the most urgent first.
#[derive(Debug, Default)]
pub(super) struct Attentions {
    codes: Vec<u16>,
    /// One was told by parameter data, which may not have come.
    unsure: bool,
}

impl Attentions {
    pub(super) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Whether the initiator has heard of all conditions, losses of nexuses aside: the next nexus
    /// tells those again.
    pub(super) fn are_heard(&self) -> bool {
        !self.unsure && self.codes.iter().all(|&code| code == asc::NEXUS_LOSS)
    }

    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    /// The condition that is reported next.
    pub(super) fn first(&self) -> Option<u16> {
        self.codes.first().copied()
    }

    /// Establishes a condition; returns whether it is news. A reset makes known what lesser resets
    /// would, so those give way to it.
    pub(super) fn establish(&mut self, code: u16) -> bool {
        let level = level(code);
        if self.codes.contains(&code)
            || level < ORDINARY
                && self
                    .first()
                    .is_some_and(|first| self::level(first) <= level)
        {
            return false;
        }
        if level < ORDINARY {
            self.codes.retain(|&other| self::level(other) == ORDINARY);
        }
        let at = self
            .codes
            .partition_point(|&other| self::level(other) <= level);
        self.codes.insert(at, code);
        true
    }

    /// Clears the condition that parameter data report. Unlike with sense data, it is unknown
    /// whether those come.
    pub(super) fn clear(&mut self, code: u16) {
        self.unsure |= code != asc::NEXUS_LOSS && self.codes.contains(&code);
        self.codes.retain(|&other| other != code);
    }

    /// Takes the condition to report.
    pub(super) fn take(&mut self) -> Option<u16> {
        (!self.codes.is_empty()).then(|| self.codes.remove(0))
    }
}

/// Of those that no reset stands above.
const ORDINARY: u8 = 7;

/// SAM-5 table 46: precedence levels, 0 the highest.
const fn level(code: u16) -> u8 {
    match code {
        asc::POWER_ON | asc::DEVICE_INTERNAL_RESET => 0,
        asc::POWER_ON_OR_RESET => 1,
        asc::BUS_RESET => 2,
        asc::BUS_DEVICE_RESET => 3,
        asc::MICROCODE_HAS_BEEN_CHANGED => 4,
        asc::NEXUS_LOSS => 5,
        asc::COMMANDS_CLEARED_BY_POWER_LOSS_NOTIFICATION => 6,
        _ => ORDINARY,
    }
}

#[cfg(test)]
mod tests;

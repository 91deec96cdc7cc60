//! Asymmetric logical unit access (SPC-5 §5.17): one target port group holds every port.

use crate::commands::{Answer, Query};
use crate::task::Failure;
use crate::wire::sense::{Key, Sense};

/// TPGS of standard INQUIRY data: explicit transitions, by SET TARGET PORT GROUPS. There are no
/// implicit ones, as a process that runs serves all its ports alike.
pub const TPGS: u8 = 0b10;

/// The number of the one TARGET PORT GROUP.
pub const GROUP: u16 = 1;

/// ASYMMETRIC ACCESS STATE (SPC-5 §5.17.2), as far as one process can be in it and still answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessState {
    /// Active/optimized.
    #[default]
    Optimized,
    /// Active/non-optimized: everything is served, but hosts are asked to prefer another path.
    NonOptimized,
}

/// REPORT TARGET PORT GROUPS.
#[must_use]
pub fn report_target_port_groups(_query: &Query<'_>) -> Answer {
    refused()
}

/// PARAMETER LIST LENGTH of SET TARGET PORT GROUPS.
#[must_use]
pub fn set_target_port_groups_length(_cdb: &[u8]) -> u32 {
    0
}

/// SET TARGET PORT GROUPS.
#[must_use]
pub fn set_target_port_groups(_query: &Query<'_>) -> Answer {
    refused()
}

fn refused() -> Answer {
    Answer::Fail(Failure::Check(Sense::new(Key::IllegalRequest, 0x2000)))
}

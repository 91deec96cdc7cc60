//! The control sub-TLV of CEE (DCBX Base Specification 1.01): each end numbers the changes of what
//! it tells, and repeats the number that it has heard last as an acknowledgement.

use super::neighbour::LldpNeighbour;
use crate::wire::lldp::cee::{CeeDcb, Control};

/// Where the numbers stand. They begin again when the link does.
#[derive(Debug, Default)]
pub(super) struct SequenceNumbers {
    control: Control,
    told: Option<CeeDcb>,
}

impl SequenceNumbers {
    /// What is told next: the same number if it is the same.
    pub(super) fn tell(&mut self, features: CeeDcb) -> CeeDcb {
        if self.told.as_ref() != Some(&features) {
            self.control.seq_no = self.control.seq_no.wrapping_add(1);
            self.told = Some(features.clone());
        }
        CeeDcb {
            control: self.control,
            ..features
        }
    }

    /// Takes the number of the only neighbour. Whether it is another one, so is to be repeated.
    pub(super) fn hear(&mut self, neighbours: &[LldpNeighbour]) -> bool {
        let heard = match neighbours {
            [one] => one.cee.as_ref().map_or(0, |cee| cee.control.seq_no),
            _ => 0,
        };
        let is_other = heard != self.control.ack_no;
        self.control.ack_no = heard;
        is_other && heard != 0
    }

    /// Whether what was told last has been taken.
    pub(super) const fn is_acknowledged(&self, by: &CeeDcb) -> bool {
        self.control.seq_no != 0 && by.control.ack_no == self.control.seq_no
    }
}

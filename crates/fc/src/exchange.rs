//! Exchanges and sequences (FC-FS-3, exchange and sequence management; FCP-4), as far as target and
//! initiator have them in common.
//!
//! An exchange is a command: its originator, the initiator, names it by an OX_ID, its responder by
//! an RX_ID. Each information unit is a sequence of frames. Nothing here relies on frames coming in
//! order, once, or at all:
//!
//! - **Where data belongs** is told by the relative offset of each frame, never by how many came
//!   before. Which bytes came is kept ([`scsi::received::ReceivedBytes`]), so that a repeated
//!   frame does no harm and what is missing is known.
//! - **An identifier is used again as late as can be** ([`Ids`]): a frame of an exchange that
//!   is over names nothing, and is dropped. After an abort it is held back for R_A_TOV.
//! - **What was sent is kept as a description** ([`data::DataSequence`]: a lease and a range), so
//!   that it can be sent again.
//!
//! The OX_IDs of an N_Port are shared out: those below [`FCP_OX_IDS`] are FCP's own, for commands
//! and for what recovers them, the others belong to the port's link services.

pub(crate) mod data;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::remote::FcpPeer;

/// OX_IDs below this one are those of commands, and of the link services that recover them.
pub const FCP_OX_IDS: u16 = 0xf000;

/// Bytes that an N_Port asks others for at once, unless it is told otherwise: half of the ring
/// that frames come into, so that it takes them even when this end is kept from it for a while.
pub(crate) const WINDOW: u64 = 8 << 20;

impl FcpPeer {
    /// REC_TOV: how long an exchange may be silent before it is looked after. FCP-4 has it at least
    /// a second above E_D_TOV, which is what this is at the default of 2 s; where both ends have
    /// lowered E_D_TOV it shrinks with it.
    pub(crate) fn rec_tov(&self) -> Duration {
        self.e_d_tov + self.e_d_tov / 2
    }
}

/// Exchange identifiers, as one end of an N_Port gives them out, OX_IDs or RX_IDs: what each of
/// them names.
///
/// They are given out in turn, so that each rests as long as can be before it is used again, and a
/// frame that comes late or twice names nothing instead of another exchange. The price is a table
/// of two bytes for each.
#[derive(Debug)]
pub(crate) struct Ids {
    named: Vec<u16>,
    next: u16,
}

/// Names nothing.
const FREE: u16 = 0xffff;

/// Names nothing, and must not be used yet.
const HELD: u16 = 0xfffe;

/// What an identifier may name: places below this one.
pub(crate) const MAX_PLACES: u16 = HELD;

impl Ids {
    /// Identifiers from 0 to below `count`.
    pub(crate) fn new(count: u16) -> Self {
        Self {
            named: vec![FREE; usize::from(count)],
            next: 0,
        }
    }

    /// An identifier for `place`; `None` when all are in use or held.
    pub(crate) fn assign(&mut self, place: u16) -> Option<u16> {
        for _ in 0..self.named.len() {
            let id = self.next;
            self.next += 1;
            if usize::from(self.next) == self.named.len() {
                self.next = 0;
            }
            let named = &mut self.named[usize::from(id)];
            if *named == FREE {
                *named = place;
                return Some(id);
            }
        }
        None
    }

    /// What it names.
    pub(crate) fn find(&self, id: u16) -> Option<u16> {
        let place = *self.named.get(usize::from(id))?;
        (place < MAX_PLACES).then_some(place)
    }

    /// It names nothing any more.
    pub(crate) fn release(&mut self, id: u16) {
        self.set(id, FREE);
    }

    /// It names nothing any more, and is not given out before it is released.
    pub(crate) fn hold(&mut self, id: u16) {
        self.set(id, HELD);
    }

    fn set(&mut self, id: u16, what: u16) {
        if let Some(named) = self.named.get_mut(usize::from(id)) {
            *named = what;
        }
    }
}

//! On which core a new session lives: where its packets come in, unless that has clearly more
//! sessions than another.
//!
//! Where packets are taken by the CPU that also does their I/O, they and the state of their
//! connection are in its cache, and nothing wakes another CPU. That is worth a part of what an I/O
//! costs, where half of a core is worth half: so the core near the packets is taken as long as its
//! sessions have at least [`NEAR`] of what each would have on the core with the fewest. A session
//! stays where it is: its initiator comes in anew by another connection, and is placed anew.

use std::collections::BTreeMap;

use scsi::unit::CoreId;

/// How large a part of a core a session must have near its packets, compared with the part that it
/// would have elsewhere: 5 of 6. What being near saves has not been measured on hardware.
const NEAR: (u32, u32) = (5, 6);

/// Spreads the sessions over the cores.
pub(super) struct SessionBalancer {
    /// Sessions on each core.
    loads: Vec<u32>,
    /// On which core each session lives.
    cores_by_tsih: BTreeMap<u16, CoreId>,
}

impl SessionBalancer {
    pub(super) fn new(cores: u16) -> Self {
        Self {
            loads: vec![0; usize::from(cores)],
            cores_by_tsih: BTreeMap::new(),
        }
    }

    pub(super) fn cores(&self) -> u16 {
        self.loads.len() as u16
    }

    pub(super) fn sessions(&self) -> usize {
        self.cores_by_tsih.len()
    }

    pub(super) fn core_of(&self, tsih: u16) -> Option<CoreId> {
        self.cores_by_tsih.get(&tsih).copied()
    }

    /// Gives a session its core. Its packets come in near `near`, where that is known.
    pub(super) fn assign(&mut self, tsih: u16, near: Option<CoreId>) {
        let least = self.loads.iter().enumerate();
        let Some((least, _)) = least.min_by_key(|(_, load)| **load) else {
            return;
        };
        let near = near.map(|core| usize::from(core.0));
        let core = near.filter(|near| self.is_near_enough(*near, least));
        let core = core.unwrap_or(least);
        self.loads[core] += 1;
        self.cores_by_tsih.insert(tsih, CoreId(core as u16));
    }

    /// Whether a session has enough of this core, compared with the one that has the fewest.
    fn is_near_enough(&self, near: usize, least: usize) -> bool {
        let with_it = |core: usize| self.loads.get(core).map(|load| load + 1);
        let (part, whole) = NEAR;
        with_it(near)
            .zip(with_it(least))
            .is_some_and(|(near, least)| near * part <= least * whole)
    }

    pub(super) fn leave(&mut self, tsih: u16) {
        if let Some(core) = self.cores_by_tsih.remove(&tsih) {
            self.loads[usize::from(core.0)] -= 1;
        }
    }
}

#[cfg(test)]
mod tests;

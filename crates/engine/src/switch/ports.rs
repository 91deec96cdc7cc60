//! The ports of one core, and what all cores may know of all ports.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::ether::Drops;
use fc::fabric::PortCounters;
use fc::wire::els::LinkErrors;
use runtime::n_port::FrameLosses;

use super::port::{SwitchPort, carrier_errors};

/// What a core has of each port of the switch, by its number: the port itself if it lives there,
/// and else what sends there.
#[derive(Debug)]
pub(super) struct CorePorts {
    core: usize,
    ports: Vec<SwitchPort>,
}

/// What is known of all ports, by their number.
#[derive(Clone, Debug)]
pub(super) struct PortBoard(Arc<[Mutex<PortFacts>]>);

/// What cores tell of a port.
#[derive(Debug, Default)]
pub(super) struct PortFacts {
    /// What came in there, as far as the machine has not counted it itself.
    pub(super) counters: PortCounters,
    /// Frames can pass.
    pub(super) is_usable: bool,
    /// Frames that were lost at the Ethernet port since it was opened, if the kernel tells.
    lost: Option<FrameLosses>,
    /// Frames that other cores could not send there, by core.
    unsent: BTreeMap<usize, Drops>,
    /// Errors that an interface has counted since the port was opened, if the kernel tells.
    pub(super) carrier: Option<LinkErrors>,
}

impl CorePorts {
    /// Of all ports of the switch.
    pub(super) const fn new(core: usize, ports: Vec<SwitchPort>) -> Self {
        Self { core, ports }
    }

    pub(super) const fn count(&self) -> usize {
        self.ports.len()
    }

    pub(super) fn get(&mut self, at: usize) -> Option<&mut SwitchPort> {
        self.ports.get_mut(at)
    }

    /// A port, if it lives on this core.
    pub(super) fn own(&mut self, at: usize) -> Option<&mut SwitchPort> {
        self.get(at).filter(|port| !port.is_sender())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &SwitchPort)> {
        self.ports.iter().enumerate()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut SwitchPort)> {
        self.ports.iter_mut().enumerate()
    }

    /// Whether something has not left yet.
    pub(super) fn has_more(&self) -> bool {
        self.iter().any(|(_, port)| port.has_more())
    }

    /// Tells what is known of them now. The kernel is asked by another thread, so what interfaces
    /// have counted is that of the time before.
    pub(super) fn tell(&mut self, board: &PortBoard) {
        for (at, port) in self.ports.iter_mut().enumerate() {
            let (drops, is_usable) = (port.drops(), port.is_usable());
            let mut facts = board.at(at);
            if port.is_sender() {
                facts.unsent.extend(drops.map(|drops| (self.core, drops)));
                continue;
            }
            let of_interface = drops.as_ref().filter(|_| !port.is_cable());
            facts.carrier = of_interface.map(carrier_errors);
            (facts.is_usable, facts.lost) = (is_usable, drops.map(FrameLosses::new));
        }
    }
}

impl PortFacts {
    /// Frames that were lost at the Ethernet port since it was opened, if the kernel tells.
    pub(super) fn lost(&self) -> Option<FrameLosses> {
        let unsent = self.unsent.values();
        self.lost
            .map(|own| unsent.fold(own, FrameLosses::and_unsent))
    }
}

impl PortBoard {
    /// For as many ports.
    pub(super) fn new(ports: usize) -> Self {
        Self((0..ports).map(|_| Mutex::default()).collect())
    }

    /// What is known of a port. The lock is held for moments only, and never while anything waits.
    pub(super) fn at(&self, port: usize) -> MutexGuard<'_, PortFacts> {
        self.0[port].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The ports that live on one core, and what all cores may know of all ports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fc::fabric::PortCounters;
use fc::wire::els::LinkErrors;
use runtime::n_port::FrameLosses;

use super::port::SwitchPort;

/// Ports by their number in the switch; those of other cores are not there.
#[derive(Debug)]
pub(super) struct OwnPorts(Vec<Option<SwitchPort>>);

/// What is known of all ports, by their number.
#[derive(Clone, Debug)]
pub(super) struct PortBoard(Arc<[Mutex<PortFacts>]>);

/// What the core of a port tells of it.
#[derive(Debug, Default)]
pub(super) struct PortFacts {
    /// What came in there, as far as the machine has not counted it itself.
    pub(super) counters: PortCounters,
    /// Frames can pass.
    pub(super) is_usable: bool,
    /// Frames that were lost at the Ethernet port since it was opened, if the kernel tells.
    pub(super) lost: Option<FrameLosses>,
    /// Errors that an interface has counted since the port was opened, if the kernel tells.
    pub(super) carrier: Option<LinkErrors>,
}

impl OwnPorts {
    pub(super) const fn new(ports: Vec<Option<SwitchPort>>) -> Self {
        Self(ports)
    }

    /// How many ports the switch has, on whichever cores.
    pub(super) const fn count(&self) -> usize {
        self.0.len()
    }

    /// A port, if it lives on this core.
    pub(super) fn get(&mut self, at: usize) -> Option<&mut SwitchPort> {
        self.0.get_mut(at)?.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &SwitchPort)> {
        let ports = self.0.iter().enumerate();
        ports.filter_map(|(at, port)| Some((at, port.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut SwitchPort)> {
        let ports = self.0.iter_mut().enumerate();
        ports.filter_map(|(at, port)| Some((at, port.as_mut()?)))
    }

    /// Whether something has not left yet.
    pub(super) fn has_more(&self) -> bool {
        self.iter().any(|(_, port)| port.has_more())
    }

    /// Tells what is known of them now. The kernel is asked by another thread, so what interfaces
    /// have counted is that of the time before.
    pub(super) fn tell(&mut self, board: &PortBoard) {
        for (at, port) in self.iter_mut() {
            let (lost, carrier) = (port.losses(), port.carrier_errors());
            let is_usable = port.is_usable();
            let mut facts = board.at(at);
            (facts.is_usable, facts.lost, facts.carrier) = (is_usable, lost, carrier);
        }
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

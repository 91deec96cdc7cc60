//! What a switch has counted, at its ports and of those behind them.

use super::{DropReason, FcfStatistics, PortCounters, PortNumber, Switch, UndeliveredFrame};
use crate::wire::els::LinkErrors;

impl Switch {
    /// A frame that was to be forwarded did not leave after all.
    pub fn count_undelivered(&mut self, reason: DropReason, frame: &UndeliveredFrame) {
        if let Some(port) = self.ports.get_mut(&frame.ingress) {
            port.counters.count_undelivered(reason, frame);
        }
    }

    /// Errors that the carrier of a port has counted since the port was added: symbol errors as
    /// invalid words, frames with a wrong FCS as invalid CRCs, and what else it knows of. What the
    /// switch counts itself is added to them; RLS asks for the sum.
    pub fn set_carrier_errors(&mut self, number: PortNumber, errors: LinkErrors) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.carrier_errors = errors;
        }
    }

    /// The link error status block of a port, as FC-BB-6 has it for FCoE: link failures, virtual
    /// link failures, missed keep alives, symbol errors, errored blocks, and frames with a wrong
    /// check sequence. A cable and a veth have no FCS, so FC frames with a wrong CRC are counted
    /// as such.
    #[must_use]
    pub fn link_errors(&self, number: PortNumber) -> LinkErrors {
        let Some(port) = self.ports.get(&number) else {
            return LinkErrors::default();
        };
        let (link_downs, silences) = self.fcf.link_errors(number);
        let damaged = u32::try_from(port.counters.dropped(DropReason::Crc)).unwrap_or(u32::MAX);
        let carrier = port.carrier_errors;
        LinkErrors {
            link_failures: carrier.link_failures.saturating_add(link_downs),
            sync_losses: carrier.sync_losses.saturating_add(silences),
            signal_losses: carrier.signal_losses.saturating_add(silences),
            invalid_crcs: carrier.invalid_crcs.saturating_add(damaged),
            ..carrier
        }
    }

    /// What came in at each port, by the counts of [`Self::receive`].
    pub fn counters(&self) -> impl Iterator<Item = (PortNumber, &str, &PortCounters)> {
        let ports = self.ports.iter();
        ports.map(|(number, port)| (*number, &*port.config.place, &port.counters))
    }

    /// What came in at one port.
    #[must_use]
    pub fn counted(&self, number: PortNumber) -> Option<&PortCounters> {
        self.ports.get(&number).map(|port| &port.counters)
    }

    /// What was counted of FIP.
    #[must_use]
    pub const fn fip_statistics(&self) -> FcfStatistics {
        self.fcf.statistics()
    }

    /// How many records are kept of those behind the ports, of all kinds: what a message costs
    /// depends on this, not on how many came before it.
    #[must_use]
    pub fn records(&self) -> usize {
        let ports = self.ports.values();
        let of_ports = ports.map(|port| port.counters.pairs().count() + port.outgoing.len());
        self.fcf.records() + self.servers.records() + of_ports.sum::<usize>()
    }
}

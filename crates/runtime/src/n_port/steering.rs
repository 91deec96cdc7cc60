//! Which core the kernel hands the frames of an initiator to.

use std::collections::BTreeMap;

use fc::port::Fc4Layer;
use fc::wire::names::FcId;

use super::NPort;

/// Initiators with a nexus by the low 16 bits of their N_Port_IDs, which is what the kernel looks
/// at. Those of two domains may have the same: then the port gets what both send, and hands it on.
#[derive(Debug, Default)]
pub(super) struct SteeredPorts {
    places: BTreeMap<u16, Vec<(FcId, u32)>>,
}

impl SteeredPorts {
    /// Notes where the nexus with a port is, if there is one. Gives the place to which frames with
    /// the low bits of its N_Port_ID are to go.
    fn note(&mut self, port: FcId, place: Option<u32>) -> u32 {
        let low = port.0 as u16;
        let all = self.places.entry(low).or_default();
        all.retain(|(other, _)| *other != port);
        all.extend(place.map(|place| (port, place)));
        let to = match all[..] {
            [(_, place)] => place,
            _ => 0,
        };
        if all.is_empty() {
            self.places.remove(&low);
        }
        to
    }
}

impl<F: Fc4Layer> NPort<F> {
    /// Has the kernel hand what an initiator sends to the core of its nexus, which is at this place
    /// among those that share the Ethernet port; `None`: it has no nexus any more. Where that
    /// fails, the port gets it.
    pub fn steer(&mut self, initiator: FcId, place: Option<u32>) {
        let to = self.steered.note(initiator, place);
        if let Err(cause) = self.ether.steer(initiator.0 as u16, to) {
            tracing::warn!(
                "{}: cannot steer frames of {initiator}: {cause}",
                self.place
            );
        }
    }
}

#[cfg(test)]
mod tests;

//! Frames that leave: from the machines of a port to its transmit ring.

use ::io::ether::{EtherPort, Place};
use fc::frames::FrameSink;
use fc::port::Fc4Layer;

use super::NPort;

impl<F: Fc4Layer> NPort<F> {
    /// Sends as much as the Ethernet port takes, up to [`TURN`] frames; it becomes ready when it
    /// takes more.
    pub fn transmit(&mut self) {
        let port = &mut self.port;
        send(&mut self.ether, &self.place, |frames| port.transmit(frames));
    }
}

/// Sends what `fill` puts into the transmit ring as long as it says that there was anything, as
/// much as the Ethernet port takes, up to [`TURN`] frames.
pub(super) fn send(
    ether: &mut EtherPort,
    place: &Place,
    mut fill: impl FnMut(&mut TransmitFrames<'_>) -> bool,
) {
    let mut is_empty = false;
    let mut left = TURN;
    loop {
        let mut frames = TransmitFrames {
            ether,
            left: &mut left,
            is_full: false,
        };
        let more = fill(&mut frames);
        // What found no slot has one when all of them have left; no later event reports that.
        let again = more || frames.is_full && !is_empty;
        match ether.flush() {
            Ok(true) if left == 0 => break,
            Ok(all) if all && again => is_empty = true,
            Ok(_) => return,
            Err(cause) => return tracing::error!("{place}: cannot send: {cause}"),
        }
    }
    if let Err(cause) = ether.more_to_send() {
        tracing::error!("{place}: cannot wait for room to send: {cause}");
    }
}

/// Frames that are sent in one turn. On veth the sender's core carries out what the receiver does
/// in the kernel, so that a full queue of 16 MiB could hold it for 10 ms.
pub(super) const TURN: usize = 1024;

/// A transmit ring, as ports fill it.
pub(super) struct TransmitFrames<'a> {
    pub(super) ether: &'a mut EtherPort,
    /// Frames that may be sent yet.
    pub(super) left: &'a mut usize,
    /// There was no slot.
    pub(super) is_full: bool,
}

impl FrameSink for TransmitFrames<'_> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let slot = match self.left {
            0 => None,
            _ => self.ether.slot(len),
        };
        self.is_full = slot.is_none();
        slot
    }

    fn commit(&mut self, len: usize) {
        self.ether.commit(len);
        *self.left -= 1;
    }
}

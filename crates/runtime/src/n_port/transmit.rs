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
) -> SentFrames {
    let mut is_empty = false;
    let mut sent = SentFrames::default();
    loop {
        let mut frames = TransmitFrames {
            ether,
            sent: &mut sent,
            is_full: false,
        };
        let more = fill(&mut frames);
        // What found no slot has one when all of them have left; no later event reports that.
        let again = more || frames.is_full && !is_empty;
        match ether.flush() {
            Ok(true) if sent.frames >= TURN => break,
            Ok(all) if all && again => is_empty = true,
            Ok(_) => return sent,
            Err(cause) => {
                tracing::error!("{place}: cannot send: {cause}");
                return sent;
            }
        }
    }
    if let Err(cause) = ether.more_to_send() {
        tracing::error!("{place}: cannot wait for room to send: {cause}");
    }
    sent
}

/// Frames that are sent in one turn. On veth the sender's core carries out what the receiver does
/// in the kernel, so that a full queue of 16 MiB could hold it for 10 ms.
const TURN: usize = 1024;

/// Frames that were sent in a turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentFrames {
    pub(super) frames: usize,
    /// Bytes of them, from the Ethernet header on.
    pub(super) bytes: u64,
}

/// A transmit ring, as ports fill it.
pub(super) struct TransmitFrames<'a> {
    pub(super) ether: &'a mut EtherPort,
    /// What was sent in this turn before.
    pub(super) sent: &'a mut SentFrames,
    /// There was no slot.
    pub(super) is_full: bool,
}

impl FrameSink for TransmitFrames<'_> {
    fn slot(&mut self, len: usize) -> Option<&mut [u8]> {
        let slot = match self.sent.frames {
            TURN.. => None,
            _ => self.ether.slot(len),
        };
        self.is_full = slot.is_none();
        slot
    }

    fn commit(&mut self, len: usize) {
        self.ether.commit(len);
        self.sent.frames += 1;
        self.sent.bytes += len as u64;
    }
}

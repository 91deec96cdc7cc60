//! What an N_Port tells.

use crate::remote::{NexusEnd, PeerAddress, RemoteId};
use crate::wire::ethernet::Mac;
use crate::wire::names::Wwn;
use scsi::violation::Violation;

/// What an N_Port tells. `E` is what the machine above it tells.
#[derive(Debug)]
pub enum PortEvent<E> {
    /// The port has an address; frames to that are to be received too.
    Online(PeerAddress),
    /// It has none any more. The end of all nexuses has been told before.
    Offline,
    /// There is an I_T nexus with a remote port; [`super::Port::remote`] tells of it.
    Up(RemoteId),
    /// There is none any more, and the machine above has let go all that was of it. At a target,
    /// [`super::Port::ended`] has to follow.
    Down(RemoteId, NexusEnd),
    /// What the machine above tells.
    Fc4(E),
    /// Worth a line in the log, though all goes on.
    Remark {
        /// From which Ethernet address it came.
        from: Mac,
        /// From the port of which name, if that is known.
        wwpn: Option<Wwn>,
        /// The rule that was broken.
        violation: Violation,
    },
}

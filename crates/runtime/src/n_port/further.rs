//! Further N_Ports of an initiator (NPIV): each logs in by FDISC under a WWPN that is given, and so
//! sees what the zones of that name show.
//!
//! The ENode of such a port has to be logged in by FLOGI all the while. That is another N_Port with
//! the same MAC address, with which nobody logs in, on a thread of its own: it sleeps but for keep
//! alives, and may end later than the port that a core drops.

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::io::cpu;
use fc::initiator::{FcpInitiator, FcpInitiatorConfig};
use fc::remote::Partners;
use fc::wire::names::Wwn;
use scsi::medium::{HeapLease, Now};

use super::claim::ClaimDir;
use super::{Attachment, BlockingPort, NPort, NoPort, PortOwner};
use crate::lockfile::{Attempt, LockFile};

/// WWPNs of further ports, of which one is taken.
pub type FurtherPlaces = [Option<Wwn>; 8];

/// What a further N_Port lives by: the right to its WWPN, and the login of its ENode.
#[derive(Debug)]
pub(super) struct FurtherLogin {
    _claim: LockFile,
    enode: EnodeThread,
}

impl Attachment {
    /// Makes a further port of it, with the first of these WWPNs that no other port of this user
    /// has. `site` opens the same Ethernet port again, for its ENode.
    pub(super) fn make_further(
        &mut self,
        names: FurtherPlaces,
        site: impl FnOnce(&PortOwner) -> Result<Attachment, NoPort>,
    ) -> Result<(), NoPort> {
        let failed = |cause| NoPort::Io(self.place.clone(), cause);
        let (wwpn, claim) =
            claim(&ClaimDir::of_this_user().map_err(failed)?, names).map_err(failed)?;
        let mut enode = site(&PortOwner::Again(Arc::clone(&self.names)))?;
        enode.config.partners = Partners::Only([].into());
        enode.wait_for(self.gate());
        self.further = Some(FurtherLogin {
            _claim: claim,
            enode: EnodeThread::begin(enode).map_err(failed)?,
        });
        (self.config.wwpn, self.config.further) = (wwpn, Some(NUMBER));
        Ok(())
    }
}

/// The first of these names that is free.
fn claim(folder: &ClaimDir, names: FurtherPlaces) -> io::Result<(Wwn, LockFile)> {
    let mut holder = None;
    for wwpn in names.into_iter().flatten() {
        match folder.take(&format!("npiv-{:016x}", wwpn.0))? {
            Attempt::Locked(claim) => return Ok((wwpn, claim)),
            Attempt::HeldBy(other) => holder = Some((wwpn, other)),
        }
    }
    let held = holder.map_or_else(String::new, |(wwpn, other)| format!("{other} has {wwpn}: "));
    Err(io::Error::other(format!(
        "{held}a WWPN is one port, so npiv= needs one for each core and thread that uses the unit \
         (npiv=WWPN+WWPN)"
    )))
}

impl FurtherLogin {
    /// Has the ENode log out. Returns whether that is done.
    pub(super) fn end(&mut self) -> bool {
        self.enode.stop = None;
        self.enode.thread.is_finished()
    }
}

/// The thread of an ENode, which logs out and ends when this is dropped.
#[derive(Debug)]
struct EnodeThread {
    /// Until it is closed, the ENode stays.
    stop: Option<UnixStream>,
    thread: JoinHandle<()>,
}

impl EnodeThread {
    fn begin(site: Attachment) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        stopped.set_nonblocking(true)?;
        site.ether.wait_for(&stopped)?;
        let place = site.place.clone();
        let thread = cpu::spawn_helper("enode", move || {
            if let Err(cause) = stay(site, stopped) {
                tracing::error!("{place}: the ENode of a further port ends: {cause}");
            }
        })?;
        Ok(Self {
            stop: Some(stop),
            thread,
        })
    }
}

/// Stays logged in until the other end is closed.
fn stay(site: Attachment, mut stopped: UnixStream) -> io::Result<()> {
    let fcp = FcpInitiator::<HeapLease>::new(FcpInitiatorConfig::default());
    let n_port = NPort::begin(site, fcp, Now::ZERO);
    let mut port = BlockingPort::new(n_port, Instant::now())?;
    while !matches!(stopped.read(&mut [0]), Ok(0)) {
        port.turn(LONG)?;
    }
    // The Ethernet port waits for this one no more.
    drop(stopped);
    port.leave()
}

/// Each ENode has one further port.
const NUMBER: u16 = 1;

/// Keep alives come sooner.
const LONG: Duration = Duration::from_secs(60);

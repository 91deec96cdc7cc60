//! The way of another core to the Ethernet of an N_Port, and which core the kernel hands the frames
//! of an initiator to.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::io::ether::{BATCH, Drops, EtherOptions, EtherPort, Place};
use fc::port::Fc4Layer;
use fc::target::branch::FcpBranch;
use fc::wire::names::FcId;
use scsi::medium::{Lease, Now};

use super::problems::LoggedLosses;
use super::transmit::{SentFrames, send};
use super::{Attachment, FrameLosses, NPort, NoPort, PollInterest, STREAM, VID};

/// A core's own way to the Ethernet port of an N_Port that lives on another core: it sends what the
/// nexuses say that are on this one. What is for them comes from there, or, where the kernel steers
/// it, right from here.
#[derive(Debug)]
pub struct PortBranch {
    place: Place,
    ether: EtherPort,
    /// Bytes of the ring that frames come into, if they may come in.
    ring: Option<usize>,
    /// Frames came in, and many more are to come.
    streams: bool,
    is_deaf: bool,
    counts: Arc<BranchCounts>,
    told: LoggedLosses,
}

/// What a branch has counted, for its port to tell.
#[derive(Debug, Default)]
pub(super) struct BranchCounts {
    pub(super) tx_frames: AtomicU64,
    pub(super) tx_bytes: AtomicU64,
    pub(super) rx_frames: AtomicU64,
    pub(super) rx_bytes: AtomicU64,
    /// Frames received that belong to no nexus of the branch.
    pub(super) unknown: AtomicU64,
}

impl BranchCounts {
    fn received(&self, frames: usize, bytes: u64, unknown: u64) {
        if frames > 0 {
            self.rx_frames.fetch_add(frames as u64, Relaxed);
            self.rx_bytes.fetch_add(bytes, Relaxed);
        }
        if unknown > 0 {
            self.unknown.fetch_add(unknown, Relaxed);
        }
    }

    fn sent(&self, sent: SentFrames) {
        if sent.frames > 0 {
            self.tx_frames.fetch_add(sent.frames as u64, Relaxed);
            self.tx_bytes.fetch_add(sent.bytes, Relaxed);
        }
    }
}

impl Attachment {
    /// Opens ways for so many other cores, at most [`OTHERS_MAX`]; fewer, where the machine has no
    /// more to give. The kernel hands each core what is for it, if it can; else the port does.
    pub fn open_branches(&mut self, cores: u16) {
        let cores = cores.min(OTHERS_MAX);
        if cores == 0 {
            return;
        }
        match self.share(cores) {
            Ok(branches) => self.branches = branches,
            Err(cause) => {
                if matches!(self.place, Place::Interface(_)) {
                    let place = &self.place;
                    tracing::info!(
                        "{place}: one core hands frames on to the others, as the kernel does not: \
                         {cause}"
                    );
                }
                self.open_senders(cores);
            }
        }
        let counts = self.branches.iter().map(|one| Arc::clone(&one.counts));
        self.branch_counts = counts.collect();
    }

    fn share(&mut self, cores: u16) -> Result<Vec<PortBranch>, NoPort> {
        let options = EtherOptions::default();
        let ring = (options.ring / usize::from(cores + 1)).max(RING_MIN);
        let options = EtherOptions { ring, ..options };
        let others = (0..cores).map(|_| self.ether.sharer(&options));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        let shared = self.ether.share(&others.iter().collect::<Vec<_>>());
        shared.map_err(|cause| NoPort::Io(self.place.clone(), cause))?;
        let branch = |ether| PortBranch::new(self.place.clone(), ether, Some(ring));
        Ok(others.into_iter().map(branch).collect())
    }

    fn open_senders(&mut self, cores: u16) {
        for core in 0..cores {
            match self.open_branch() {
                Ok(branch) => self.branches.push(branch),
                Err(cause) => {
                    let cores = core + 1;
                    tracing::warn!(
                        "{}: its initiators share {cores} cores, as there is no socket for \
                         another: {cause}",
                        self.place
                    );
                    return;
                }
            }
        }
    }

    fn open_branch(&self) -> Result<PortBranch, NoPort> {
        let ether = self.ether.sender(&EtherOptions::default())?;
        Ok(PortBranch::new(self.place.clone(), ether, None))
    }

    /// What [`Self::open_branches`] has opened.
    pub fn take_branches(&mut self) -> Vec<PortBranch> {
        std::mem::take(&mut self.branches)
    }
}

impl PortBranch {
    /// A way by this Ethernet port. Where frames come in too, `ring` is how many bytes of them it
    /// has room for.
    #[must_use]
    pub fn new(place: Place, ether: EtherPort, ring: Option<usize>) -> Self {
        Self {
            place,
            ether,
            ring,
            streams: false,
            is_deaf: false,
            counts: Arc::default(),
            told: LoggedLosses::default(),
        }
    }

    /// Whether frames may come in.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.ring.is_some()
    }

    /// Bytes that initiators may be asked for at once: half of what its own ring has room for, or
    /// any number where frames come by way of the port.
    #[must_use]
    pub fn window_max(&self) -> u64 {
        self.ring.map_or(u64::MAX, |ring| ring as u64 / 2)
    }

    /// How to wait for [`Self::poll_fd`].
    #[must_use]
    pub const fn listen(&self) -> PollInterest {
        if self.streams {
            PollInterest::Later
        } else {
            PollInterest::Now
        }
    }

    /// The interface or cable.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What becomes readable when there is room to send, or news of the interface.
    #[must_use]
    pub fn poll_fd(&self) -> &Arc<OwnedFd> {
        self.ether.waited()
    }

    /// It has become readable: takes what has come, as much as a batch has; returns whether that
    /// was all. How the link is, the port itself tells; here it is learned alone which frames fit.
    pub fn receive<L: Lease>(&mut self, now: Now, machine: &mut FcpBranch<L>) -> bool {
        let mut bytes = 0;
        let count = self.ether.receive(|frame, tci| {
            bytes += frame.len() as u64;
            machine.receive_ethernet(now, frame, tci.map(|tci| tci & VID));
        });
        self.counts.received(count, bytes, machine.take_unknown());
        self.streams = (1..BATCH).contains(&count) && machine.target().expected() >= STREAM;
        if let Err(cause) = self.ether.news() {
            tracing::error!("{}: cannot read its link: {cause}", self.place);
        }
        count < BATCH
    }

    /// Sends what a machine has to say, as much as the Ethernet port takes.
    pub fn transmit(&mut self, machine: &mut impl Fc4Layer) {
        let sent = send(&mut self.ether, &self.place, |frames| {
            machine.transmit(frames)
        });
        self.counts.sent(sent);
    }

    /// Whether all that was given to [`Self::transmit`] has left, so that what another core sends
    /// from now on comes behind it. It costs a system call.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        self.ether.has_sent_all()
    }

    /// The ring does or does not wait for [`Self::poll_fd`] now.
    pub fn is_watched(&mut self, watched: &io::Result<()>) {
        let was_deaf = std::mem::replace(&mut self.is_deaf, watched.is_err());
        if let Err(cause) = watched
            && !was_deaf
        {
            tracing::error!("{}: cannot wait for frames: {cause}", self.place);
        }
    }

    /// Frames that were lost at this core's socket, if the kernel tells. What the interface has
    /// lost, the port itself tells.
    pub fn lost(&mut self) -> Option<FrameLosses> {
        own_losses(&mut self.ether)
    }

    /// When [`Self::look_for_drops`] wants to be called.
    #[must_use]
    pub fn next_look(&self) -> Now {
        self.told.next_look()
    }

    /// Has the log tell of such frames, at most once a minute.
    pub fn look_for_drops(&mut self, now: Now) {
        let ether = &mut self.ether;
        if let Some(lost) = self.told.news(now, || own_losses(ether)) {
            tracing::warn!("{}: frames lost: {lost}", self.place);
        }
    }
}

fn own_losses(ether: &mut EtherPort) -> Option<FrameLosses> {
    let drops = ether.recent_drops().ok()?;
    Some(FrameLosses(Drops {
        missed: 0,
        received: 0,
        transmitted: 0,
        ..drops
    }))
}

/// Initiators with a nexus by the low 16 bits of their N_Port_IDs, which is what the kernel looks
/// at. Those of two domains may have the same: then the port gets what both send, and forwards it.
#[derive(Debug, Default)]
pub(super) struct SteeredPorts(BTreeMap<u16, SameLowHalf>);

/// Initiators that the kernel does not tell apart.
#[derive(Debug, Default)]
struct SameLowHalf {
    /// With the branch of each nexus, or 0 for the port itself.
    nexuses: Vec<(FcId, u32)>,
    /// There were several at once, so that the port gets what they send. This lasts until all of
    /// them have gone: a frame that waits for the port would be overtaken by a later one that the
    /// kernel hands to the branch itself. The other way round none is, as a branch takes what the
    /// kernel has handed it before what the port forwards.
    were_several: bool,
}

impl SteeredPorts {
    /// Notes which branch the nexus with a port is at, if there is one. Gives the branch to which
    /// frames with the low bits of its N_Port_ID are to go, or 0 for the port itself.
    fn note(&mut self, port: FcId, branch: Option<u32>) -> u32 {
        let low = port.0 as u16;
        let same = self.0.entry(low).or_default();
        same.nexuses.retain(|(other, _)| *other != port);
        same.nexuses.extend(branch.map(|branch| (port, branch)));
        same.were_several |= same.nexuses.len() > 1;
        let to = match same.nexuses[..] {
            [(_, branch)] if !same.were_several => branch,
            _ => 0,
        };
        if same.nexuses.is_empty() {
            self.0.remove(&low);
        }
        to
    }
}

impl<F: Fc4Layer> NPort<F> {
    /// Has the kernel hand what an initiator sends to the branch of its nexus, or the port itself,
    /// 0; `None`: it has no nexus any more. Where that fails, the port gets it.
    pub fn steer(&mut self, initiator: FcId, branch: Option<u32>) {
        let to = self.steered.note(initiator, branch);
        if let Err(cause) = self.ether.steer(initiator.0 as u16, to) {
            tracing::warn!(
                "{}: cannot steer frames of {initiator}: {cause}",
                self.place
            );
        }
    }
}

/// Cores that have a part of a port beside its own: each has a socket with a ring, and a part of
/// what one initiator may have under way.
const OTHERS_MAX: u16 = 7;

/// The least ring of a core: what a link of 10 Gbit/s carries in 3 ms.
const RING_MIN: usize = 4 << 20;

#[cfg(test)]
mod tests;

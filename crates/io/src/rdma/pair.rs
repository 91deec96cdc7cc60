//! A queue pair of a device: work in the order in which it was posted, and what came of it.
//!
//! | what | file |
//! |---|---|
//! | the libraries' objects | `pair/wire.rs` |
//! | work that waits, and how it is cut into requests | `pair/work.rs`, `pair/cut.rs` |
//! | what is complete | `pair/complete.rs` |
//! | receives | `pair/receives.rs` |
//! | memory of the pair itself | `pair/own.rs` |

mod complete;
mod cut;
mod own;
mod receives;
mod transit;
mod wire;
mod work;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use self::own::OwnMemory;
use self::receives::Receives;
use self::wire::{QueueSizes, Wire};
use self::work::{Part, WaitingWork};
use super::channel::CmId;
use super::domain::RdmaDomain;
use super::memory::{DomainMemory, RdmaMemory};
use super::staging::Staging;
use super::sys::cm::{RdmaCmId, RdmaConnParam};
use super::{
    RdmaCompletion, RdmaEnd, RdmaError, RdmaLibrary, RdmaWork, RemoteAccess, RemoteAddress,
};
use crate::memory::{Buffer, drain_stores};

pub use self::transit::RdmaPairInTransit;

/// How large a pair's messages and queues are.
#[derive(Clone, Copy, Debug)]
pub struct RdmaPairOptions {
    /// The longest message that is received, in bytes.
    pub max_receive: u32,
    /// The longest message that is sent, in bytes, its header included; at most 256 KiB.
    pub max_send: u32,
    /// Receives to begin with.
    pub receives: u16,
    /// Receives at the most.
    pub receives_max: u16,
}

/// What a pair can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdmaLimits {
    /// Reads of ours that may be outstanding at once; the device holds back what is above.
    pub ord: u16,
    /// Reads of the peer that may be outstanding at once.
    pub ird: u16,
    /// Operations that may be posted now.
    pub room: usize,
    /// Whether the device can have the peer invalidate a key. Whether the peer can, its private
    /// data says.
    pub can_invalidate: bool,
    /// The longest message that can be received, in bytes.
    pub max_receive: u32,
}

/// A queue pair on a connection.
pub struct RdmaPair {
    memory: Rc<DomainMemory>,
    inner: Box<PairInner>,
}

/// What of a pair is not of a core.
struct PairInner {
    /// Goes first: then no device reaches the memory of the others.
    wire: Wire,
    own: OwnMemory,
    receives: Receives,
    /// Of initiators alone.
    staging: Option<Staging>,
    limits: RdmaLimits,
    send_pieces: usize,
    read_pieces: usize,
    max_send: usize,
    /// What the device does not know yet.
    waiting: VecDeque<WaitingWork>,
    /// What it knows, in the order in which it completes.
    in_flight: VecDeque<Part>,
    /// The number of the first of these.
    first: u64,
    told: VecDeque<RdmaCompletion>,
    /// Memory of messages, given back.
    spare: Vec<Vec<u8>>,
    /// The connection is over, but what came before that was not taken yet.
    parting: Option<RdmaEnd>,
    has_ended: bool,
}

/// Operations that may be posted before some are complete: for each command of a window of 128, its
/// data and its response.
const ROOM: usize = 256;

impl RdmaPair {
    /// Makes a pair on an identifier that is bound to the domain's device; for `reads` of either
    /// end: (ORD, IRD).
    pub(super) fn new(
        id: CmId,
        domain: &Arc<RdmaDomain>,
        memory: &RdmaMemory,
        options: &RdmaPairOptions,
        reads: (u8, u8),
    ) -> Result<Self, RdmaError> {
        let device = domain.limits();
        let most = device.requests.min(device.completions / 2).max(1);
        let send_pieces = device.send_pieces.min(1 + work::PIECES_MAX);
        let sizes = QueueSizes {
            sends: most.min(ROOM as u32),
            receives: most.min(u32::from(options.receives_max)),
            send_pieces: send_pieces as u32,
        };
        let wire = Wire::new(id, domain, sizes)?;
        let max_send = (options.max_send as usize).min(work::PIECES_MAX * super::memory::PIECE);
        let own = OwnMemory::new(domain, sizes.sends as usize, max_send)?;
        let receives = Receives::new(options.max_receive, sizes.receives);
        let (ord, ird) = (u16::from(reads.0), u16::from(reads.1));
        let mut pair = Self {
            memory: memory.of(domain),
            inner: Box::new(PairInner {
                wire,
                own,
                receives,
                staging: None,
                limits: RdmaLimits {
                    ord,
                    ird,
                    room: sizes.sends as usize,
                    can_invalidate: device.can_invalidate,
                    max_receive: options.max_receive,
                },
                send_pieces,
                read_pieces: device.read_pieces.min(send_pieces),
                max_send,
                waiting: VecDeque::new(),
                in_flight: VecDeque::new(),
                first: 0,
                told: VecDeque::new(),
                spare: Vec::new(),
                parting: None,
                has_ended: false,
            }),
        };
        pair.grow_receives(options.receives)?;
        Ok(pair)
    }

    /// Has the connection manager connect or accept, as `call` is.
    pub(super) fn start(
        &mut self,
        call: unsafe extern "C" fn(*mut RdmaCmId, *mut RdmaConnParam) -> i32,
        name: &'static str,
        parameters: RdmaConnParam,
    ) -> Result<(), RdmaError> {
        self.inner.wire.start(call, name, parameters)
    }

    pub(super) fn id(&self) -> &CmId {
        self.inner.wire.id()
    }

    pub(super) fn library(&self) -> &RdmaLibrary {
        self.inner.wire.domain().library()
    }

    /// Lets the peer reach copies of buffers, of `bytes` in all at the most.
    pub(super) fn add_staging(&mut self, bytes: usize) {
        let domain = self.inner.wire.domain();
        self.inner.staging = Some(Staging::new(domain, bytes));
    }

    /// What was agreed upon at last: (ORD, IRD).
    pub(super) fn set_reads(&mut self, ord: u8, ird: u8) {
        self.inner.limits.ord = u16::from(ord);
        self.inner.limits.ird = u16::from(ird);
    }

    /// What it can do; the room changes with each operation and completion.
    #[must_use]
    pub fn limits(&self) -> RdmaLimits {
        self.inner.limits()
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.inner.wire.id().peer()
    }

    /// Its own address.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.inner.wire.id().local()
    }

    /// The device that it is on.
    #[must_use]
    pub fn domain(&self) -> &Arc<RdmaDomain> {
        self.inner.wire.domain()
    }

    /// Readable when there is something to [`Self::wake`] for, and for ever once this is dropped.
    #[must_use]
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        self.inner.wire.fd()
    }

    /// Queues an operation, until [`Self::flush`]. Above the room it waits with the others.
    pub fn post(&mut self, work: RdmaWork) {
        if !self.inner.has_ended {
            self.inner.waiting.push_back(WaitingWork::new(work));
        }
    }

    /// Gives the device what was queued, in one chain, as far as its queue and the memory to copy
    /// through go. The rest follows by itself while completions are polled.
    pub fn flush(&mut self) {
        // A device may read memory without a system call of ours.
        drain_stores();
        self.inner.flush(&self.memory);
    }

    /// What has happened, one by one. Without a system call, but where something failed.
    pub fn poll(&mut self) -> Option<RdmaCompletion> {
        self.inner.poll(&self.memory)
    }

    /// To be called when [`Self::descriptor`] is readable, before the pair is polled.
    pub fn wake(&mut self) {
        self.inner.wire.quiet();
        self.inner.hear();
    }

    /// Has [`Self::descriptor`] become readable with the next completion, to sleep until then.
    /// Returns whether something has come in before that: then there is more to be polled.
    pub fn arm(&mut self) -> bool {
        self.inner.arm(&self.memory)
    }

    /// Gives up a read. Its memory is returned, and [`RdmaCompletion::Drained`] follows, if the
    /// device does not know of it. Else the device may still fill it, and
    /// [`RdmaCompletion::Got`] follows; where that is memory of a medium, the connection ends.
    pub fn cancel(&mut self, read: u32) -> Option<Buffer> {
        self.inner.cancel(read, &self.memory)
    }

    /// Takes the memory of a message back.
    pub fn recycle(&mut self, received: Vec<u8>) {
        self.inner.recycle(received);
    }

    /// Whether there is work that is not complete, with the device or before it.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.inner.waiting.is_empty() || !self.inner.in_flight.is_empty()
    }

    /// How many receives there may be: as the options say, or as many as the device can have.
    #[must_use]
    pub fn receives_max(&self) -> u16 {
        self.inner.receives.most()
    }

    /// Posts receives until there are `count` in all, or as many as the options allow. To be called
    /// before the peer is told that it may send so many.
    ///
    /// # Errors
    ///
    /// [`RdmaError::NoLockedMemory`]; what was posted before stays.
    pub fn grow_receives(&mut self, count: u16) -> Result<(), RdmaError> {
        let inner = &mut *self.inner;
        if !inner.has_ended {
            inner.receives.grow(count, inner.wire.domain())?;
            inner.post_receives(&self.memory);
        }
        Ok(())
    }

    /// Whether [`Self::advertise`] has memory for `len` bytes now. A target has none.
    #[must_use]
    pub fn can_advertise(&mut self, len: usize, may: RemoteAccess) -> bool {
        let staging = self.inner.staging.as_mut();
        staging.is_some_and(|staging| staging.has_room(len, may))
    }

    /// Lets the peer reach a copy of a buffer, and nothing else, in one way. What it writes is in
    /// the buffer after [`Self::withdraw`]. `None` if there is no memory for it: this end is a
    /// target, or too much is out.
    pub fn advertise(&mut self, of: &Buffer, may: RemoteAccess) -> Option<RemoteAddress> {
        self.inner.staging.as_mut()?.advertise(of, may)
    }

    /// Takes a buffer back that the peer is done with, as its response says, or its answer to an
    /// abort.
    pub fn withdraw(&mut self, key: u32) {
        if let Some(staging) = &mut self.inner.staging {
            staging.withdraw(key);
        }
    }

    /// Disconnects. What was not complete is forgotten.
    pub fn end(&mut self) {
        self.inner.end(RdmaEnd::Requested, &self.memory);
    }

    /// Gives back the memory that a busy connection needed.
    pub fn trim(&mut self) {
        self.inner.waiting.shrink_to_fit();
        self.inner.in_flight.shrink_to_fit();
        self.inner.told.shrink_to_fit();
        self.inner.spare = Vec::new();
    }
}

impl Drop for RdmaPair {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for RdmaPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (local, peer) = (self.local(), self.peer());
        write!(f, "RdmaPair({:?}, {local} to {peer})", self.domain())
    }
}

impl PairInner {
    fn limits(&self) -> RdmaLimits {
        let used = self.waiting.len() + self.in_flight.len();
        let room = if self.has_ended {
            0
        } else {
            self.limits.room.saturating_sub(used)
        };
        RdmaLimits {
            room,
            ..self.limits
        }
    }

    /// Takes notice of what the connection manager tells.
    fn hear(&mut self) {
        while let Some(event) = self.wire.event() {
            let end = RdmaEnd::of_event(event.kind);
            self.parting = self.parting.or(end);
        }
    }

    /// Ends it. Only the first cause counts.
    fn end(&mut self, why: RdmaEnd, memory: &DomainMemory) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        // Before memory is given back that the device could reach.
        self.wire.destroy_pair();
        while let Some(part) = self.in_flight.pop_front() {
            self.free_memory_of(&part, memory);
        }
        self.waiting.clear();
        self.staging = None;
        self.told.push_back(RdmaCompletion::Ended(why));
    }
}

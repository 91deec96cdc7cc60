//! What every volume is.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use ::io::memory::{Buffer, Pool, Recall};
use ::io::ring::{FileOp, SendBatch, SocketId, SocketRing, Token};
use scsi::medium::{MediumOp, MediumResult, Now, Traits};
use scsi::statistics::SpaceUsage;

use crate::error::VolumeError;
use crate::identity::Details;
use crate::lease::BlockLease;

/// How a file or device is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// Bytes in a logical block; `None`: its own.
    pub block_size: Option<u32>,
    /// Only for reading. What can be written already stays so.
    pub read_only: bool,
    /// A file past the page cache.
    pub direct: bool,
    /// Every write to a file is durable when it ends.
    pub sync: bool,
    /// No space of a file is reserved.
    pub sparse: bool,
}

/// A volume that was opened, for all cores.
pub trait Volume: Send + Sync + fmt::Debug {
    /// What it is and can do, now.
    fn traits(&self) -> Traits;

    /// Does what [`Self::attach`] would block for, once for each of this many cores. No thread of a
    /// core asks. Without it, `attach` blocks.
    ///
    /// # Errors
    ///
    /// Of whatever the volume needs for each core.
    fn prepare(&self, cores: u16) -> io::Result<()> {
        let _ = cores;
        Ok(())
    }

    /// What one core works with.
    ///
    /// # Errors
    ///
    /// Of whatever the volume needs for each core.
    fn attach(&self, core: &CoreContext) -> io::Result<Box<dyn Handle>>;

    /// Whether it forgets everything when the process ends, so that it must not come back under
    /// the same identity.
    fn is_empty_at_start(&self) -> bool {
        false
    }

    /// How much of its storage it uses now, and how much there still is for it; `None` where that
    /// is not counted. May block where [`Self::can_grow`] says that there is something to look at.
    fn usage(&self) -> Option<SpaceUsage> {
        None
    }

    /// The byte at which the volume ends now, if it was truncated or removed since it was opened.
    /// Data from there on cannot be read.
    fn shortened_to(&self) -> Option<u64> {
        None
    }

    /// Whether a file that it is made of was removed, renamed or replaced since it was opened: its
    /// address leads to another one, or to none. May block.
    fn is_removed(&self) -> bool {
        false
    }

    /// Makes a file that is shorter this many bytes long, with room reserved unless `sparse` says
    /// that it shall be taken later. [`Self::refresh`] tells of it. Other volumes stay as they are.
    /// May block.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn extend(&self, bytes: u64, sparse: bool) -> Result<(), VolumeError> {
        let _ = (bytes, sparse);
        Ok(())
    }

    /// Takes the room that [`Self::extend`] to this many bytes needs, and stays as long as it is.
    /// May block.
    ///
    /// # Errors
    ///
    /// When there is no room.
    fn reserve(&self, bytes: u64) -> Result<(), VolumeError> {
        let _ = bytes;
        Ok(())
    }

    /// Gives back the room that was taken for an extension that does not come. May block.
    fn release(&self) {}

    /// The same file or device, used in another way. It stays locked, and would not be if it were
    /// closed before. `None`: another kind of volume, which is to be opened anew. May block.
    ///
    /// # Errors
    ///
    /// It cannot be used so.
    fn reopen(&self, mode: OpenMode) -> Option<Result<Arc<dyn Volume>, VolumeError>> {
        let _ = mode;
        None
    }

    /// When each file that it is made of was written to last, in seconds since 1970 and
    /// nanoseconds. Other media do not say.
    fn written(&self) -> Vec<(i64, u64)> {
        Vec::new()
    }

    /// The same as [`Self::written`] found it when the volume was opened. Opening may extend a
    /// file, and tries what its file system supports, which can change the time.
    fn written_before(&self) -> Vec<(i64, u64)> {
        Vec::new()
    }

    /// What it says of itself.
    fn particulars(&self) -> Details {
        Details::new(self.traits(), None)
    }

    /// What it has gathered until now of what went through, in lines for people.
    fn gathered(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many commands it has sent again to a unit behind another target; `None` where it is not
    /// there. A volume around others does not tell: ask what is inside.
    fn retries(&self) -> Option<u64> {
        None
    }

    /// Whether [`Self::refresh`] may ever have something to tell, so that it is to be asked every
    /// other second or so.
    fn can_grow(&self) -> bool {
        false
    }

    /// Learns what changed outside. Returns whether [`Self::traits`] tells something new: a larger
    /// capacity, a write cache that was switched on or off elsewhere, or that it may be written
    /// now, or no more. May block: no thread of a core asks.
    ///
    /// # Errors
    ///
    /// When the volume can no longer be looked at; its traits stay as they were.
    fn refresh(&self) -> io::Result<bool> {
        Ok(false)
    }
}

/// What a core gives to the volumes that it attaches.
#[derive(Debug)]
pub struct CoreContext {
    /// Its buffers.
    pub pool: Pool,
    /// The handle that is to be called.
    pub calls: Calls,
    /// Numbers given out.
    nodes: Cell<u32>,
    /// One of a type at the most.
    common: RefCell<Vec<Rc<dyn Any>>>,
}

/// Handles of one core that are to be called, as another one of them has something for them. A
/// handle that is named here gets [`Handle::resume`] as soon as all has been handed in.
#[derive(Clone, Debug, Default)]
pub struct Calls(Rc<RefCell<Vec<HandleId>>>);

impl Calls {
    /// Has the handle called that has this node, or has it inside.
    pub fn call(&self, node: HandleId) {
        self.0.borrow_mut().push(node);
    }

    /// The next one that is to be called.
    #[must_use]
    pub fn next(&self) -> Option<HandleId> {
        self.0.borrow_mut().pop()
    }
}

/// A handle's number on its core, by which what it started finds back to it. A volume made of
/// others consists of several: each of those inside has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(pub u32);

impl CoreContext {
    /// A core with buffers of `pool`, and without volumes.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self {
            pool,
            calls: Calls::default(),
            nodes: Cell::new(0),
            common: RefCell::default(),
        }
    }

    /// What all handles of the core have in common that ask for this type.
    #[must_use]
    pub fn common<T: Any + Default>(&self) -> Rc<T> {
        let mut all = self.common.borrow_mut();
        let known = all.iter().find_map(|one| Rc::clone(one).downcast().ok());
        known.unwrap_or_else(|| {
            let new = Rc::<T>::default();
            all.push(Rc::clone(&new) as Rc<dyn Any>);
            new
        })
    }

    /// A number for one more handle that starts operations.
    #[must_use]
    pub fn node(&self) -> HandleId {
        HandleId(self.nodes.replace(self.nodes.get() + 1))
    }

    /// The number that will be given out next: all before it are in use.
    #[must_use]
    pub fn next_node(&self) -> HandleId {
        HandleId(self.nodes.get())
    }
}

/// A volume as one core sees it.
///
/// Operations that touch the same blocks at the same time end in any order; a caller that needs an
/// order waits for the outcome. When the core's pool is exhausted an operation that needs a buffer
/// ends with [`scsi::medium::MediumError::Busy`] at once: no event tells a handle when a buffer
/// comes back, so a queue here would wait without a bound.
pub trait Handle {
    /// Starts an operation. Its result comes out of `cx.done`, at once or later, under `id`.
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<BlockLease>);

    /// Gives up those of these operations that have not reached the medium: they end with
    /// [`scsi::medium::MediumError::Cancelled`], at once. What has reached it runs to its end; so
    /// does what a volume cannot tell.
    fn cancel(&mut self, cx: &mut Context<'_>, ids: &Range<u64>) {
        let _ = (cx, ids);
    }

    /// Something has happened that this handle, or one inside it, started as `node` and `slot`.
    fn event(&mut self, cx: &mut Context<'_>, node: HandleId, slot: u32, event: HandleEvent<'_>);

    /// What of the volume's own memory was lent by `Read` until now and has not come back; `None`
    /// where there is no such memory. What is lent from now on is not waited for.
    fn recall(&mut self) -> Option<Recall> {
        None
    }

    /// An instant has come that this handle, or one inside it, gave to [`Context::call_at`]; or
    /// another one: it is asked again where it is still waited for.
    fn resume(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// Nothing more will be asked of it, and nothing is in flight: it ends gracefully what it
    /// has with others, such as a session with a target. [`Self::has_left`] tells when it has.
    fn leave(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// Whether nothing is left of what [`Self::leave`] ends.
    fn has_left(&self) -> bool {
        true
    }
}

/// What has happened to something that a handle gave to the ring.
#[derive(Debug)]
pub enum HandleEvent<'a> {
    /// A file operation is over.
    File {
        /// Its value; for reads and writes, the bytes moved.
        result: io::Result<u64>,
        /// The buffer of a read or write.
        buffer: Option<Buffer>,
    },
    /// Bytes came in; none when the peer has closed.
    Received(io::Result<&'a [u8]>),
    /// A batch has left, or could not.
    Sent {
        /// It comes back empty.
        batch: Box<SendBatch>,
        /// How it went.
        result: io::Result<()>,
    },
    /// A descriptor is ready that is watched.
    Ready,
}

/// What a volume may use while it works.
pub struct Context<'a> {
    /// Starts operations on files and sockets, whose tokens are made of a node and a slot.
    pub ring: &'a mut dyn SocketRing,
    /// Where results go.
    pub done: &'a mut Vec<(u64, MediumResult<BlockLease>)>,
    /// What time it is.
    pub now: Now,
    /// The earliest instant that [`Self::call_at`] was given.
    pub call: &'a mut Option<Now>,
}

impl Context<'_> {
    /// Starts a file operation that ends by [`HandleEvent::File`] with `node` and `slot`.
    pub fn file(&mut self, node: HandleId, slot: u32, op: FileOp) {
        self.ring.file(token(node, slot), op);
    }

    /// Receives once on a socket, which ends by [`HandleEvent::Received`] with `node` and `slot`.
    pub fn receive(&mut self, node: HandleId, slot: u32, socket: SocketId) {
        self.ring.receive(socket, token(node, slot));
    }

    /// Sends on a socket, which ends by [`HandleEvent::Sent`] with `node` and `slot`.
    pub fn send(&mut self, node: HandleId, slot: u32, socket: SocketId, batch: Box<SendBatch>) {
        self.ring.send(socket, token(node, slot), batch);
    }

    /// The same at once, as far as the socket takes it: a batch that has left whole comes back.
    pub fn send_now(
        &mut self,
        node: HandleId,
        slot: u32,
        socket: SocketId,
        batch: Box<SendBatch>,
    ) -> Option<Box<SendBatch>> {
        self.ring.send_now(socket, token(node, slot), batch)
    }

    /// Waits until a descriptor can be read, which is told once, by [`HandleEvent::Ready`] with
    /// `node` and `slot`.
    ///
    /// # Errors
    ///
    /// When it cannot be waited for.
    pub fn watch(&mut self, node: HandleId, slot: u32, fd: &Arc<OwnedFd>) -> io::Result<()> {
        self.ring.watch(fd, token(node, slot))
    }

    /// As [`Self::watch`], after a pause: see [`SocketRing::watch_later`].
    ///
    /// # Errors
    ///
    /// When it cannot be waited for.
    pub fn watch_later(&mut self, node: HandleId, slot: u32, fd: &Arc<OwnedFd>) -> io::Result<()> {
        self.ring.watch_later(fd, token(node, slot))
    }

    /// Has [`Handle::resume`] called at `at`, or earlier. With `now` it is called once everything
    /// has been handed in that came together with what the handle was just given, so that it can
    /// go on with all of that at once.
    pub fn call_at(&mut self, at: Now) {
        let earlier = self.call.is_none_or(|set| at < set);
        if earlier {
            *self.call = Some(at);
        }
    }

    /// The same for a handle inside, whose results go to `done`.
    pub fn inside<'b>(
        &'b mut self,
        done: &'b mut Vec<(u64, MediumResult<BlockLease>)>,
    ) -> Context<'b> {
        Context {
            ring: &mut *self.ring,
            done,
            now: self.now,
            call: &mut *self.call,
        }
    }

    /// Tells the result of an operation.
    pub fn done(&mut self, id: u64, result: MediumResult<BlockLease>) {
        self.done.push((id, result));
    }
}

/// Which node of a volume a token belongs to, and the node's own slot.
#[must_use]
pub const fn volume_token(token: Token) -> (HandleId, u32) {
    (HandleId((token.0 >> 32) as u32), token.0 as u32)
}

/// What a volume's operation is known by: the node in the upper and the slot in the lower 32 bits.
fn token(node: HandleId, slot: u32) -> Token {
    Token(u64::from(node.0) << 32 | u64::from(slot))
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context(at {:?})", self.now)
    }
}

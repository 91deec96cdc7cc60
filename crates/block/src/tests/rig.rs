//! What a core does for its volumes, reduced to one volume.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use ::io::memory::{Buffer, Pool};
use ::io::ring::{AnyRing, Ring, RingEvent, RingKind, SocketRing, Token};
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumOutcome, MediumResult, Now, Provisioning,
    ReadMemory,
};

use super::fake::FakeRing;
use crate::lease::BlockLease;
use crate::volume::{Context, CoreContext, Handle, HandleEvent, Volume, volume_token};

/// The end of a file operation.
pub(super) type Ended = (Token, io::Result<u64>, Option<Buffer>);

/// A ring as far as volumes need one.
pub(super) trait Files {
    fn ring(&mut self) -> &mut dyn SocketRing;

    /// Waits for operations to end.
    fn ended(&mut self) -> Vec<Ended>;
}

impl Files for AnyRing {
    fn ring(&mut self) -> &mut dyn SocketRing {
        self
    }

    /// A wait may end before anything has; but something must within some seconds.
    fn ended(&mut self) -> Vec<Ended> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            self.wait(Some(PATIENCE)).unwrap();
            let ended: Vec<_> = std::iter::from_fn(|| self.next_event()).collect();
            if !ended.is_empty() {
                return ended.into_iter().filter_map(file_event).collect();
            }
        }
        panic!("nothing ends");
    }
}

const PATIENCE: Duration = Duration::from_secs(20);

fn file_event<R>(event: RingEvent<R>) -> Option<Ended> {
    match event {
        RingEvent::File {
            token,
            result,
            buffer,
        } => Some((token, result, buffer)),
        _ => None,
    }
}

/// Every ring that the machine has.
pub(super) fn rings() -> Vec<AnyRing> {
    let open = |kind| match AnyRing::open(kind) {
        Ok((ring, _)) => Some(ring),
        Err(error) => {
            eprintln!("SKIPPED on {kind:?}: {error}");
            None
        }
    };
    [RingKind::Epoll, RingKind::Uring]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// A core with several handles on one volume, as if it were several cores.
pub(super) struct Rig<R> {
    pub(super) ring: R,
    pub(super) handles: Vec<Box<dyn Handle>>,
    /// Which handle each node belongs to.
    of_node: Vec<usize>,
    pub(super) pool: Pool,
    pub(super) now: Now,
    /// The instant that a handle waits for.
    pub(super) call: Option<Now>,
    pub(super) done: Vec<(u64, MediumResult<BlockLease>)>,
    next_id: u64,
    block_size: usize,
}

impl Rig<FakeRing> {
    /// On a ring that does one operation at a time.
    pub(super) fn fake(volume: &dyn Volume) -> Self {
        Self::new(FakeRing::default(), volume)
    }
}

impl<R: Files> Rig<R> {
    pub(super) fn new(ring: R, volume: &dyn Volume) -> Self {
        Self::with_pool(ring, volume, 16 << 20)
    }

    pub(super) fn with_pool(ring: R, volume: &dyn Volume, limit: usize) -> Self {
        let pool = Pool::new(limit).unwrap();
        let core = CoreContext::new(pool.clone());
        let mut of_node = Vec::new();
        let attach = |handle| {
            let attached = volume.attach(&core).unwrap();
            of_node.resize(core.next_node().0 as usize, handle);
            attached
        };
        Self {
            ring,
            handles: (0..2).map(attach).collect(),
            of_node,
            pool,
            done: Vec::new(),
            now: Now::ZERO,
            call: None,
            next_id: 0,
            block_size: volume.traits().block_size as usize,
        }
    }

    /// Has a handle do something.
    fn on(&mut self, handle: usize, act: impl FnOnce(&mut dyn Handle, &mut Context<'_>)) {
        let mut cx = Context {
            ring: self.ring.ring(),
            done: &mut self.done,
            now: self.now,
            call: &mut self.call,
        };
        act(&mut *self.handles[handle], &mut cx);
    }

    /// Gives up operations of a handle.
    pub(super) fn cancel(&mut self, handle: usize, ids: &Range<u64>) {
        self.on(handle, |handle, cx| handle.cancel(cx, ids));
    }

    /// Starts an operation on a handle.
    pub(super) fn submit(&mut self, handle: usize, op: MediumOp<BlockLease>) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.on(handle, |handle, cx| handle.submit(cx, id, op));
        id
    }

    /// Starts a write of blocks that are full of one byte.
    pub(super) fn submit_write(&mut self, handle: usize, lba: u64, blocks: u64, byte: u8) -> u64 {
        let op = self.write_op(lba, blocks, byte, false);
        self.submit(handle, op)
    }

    /// Lets the instant come that a handle waits for; without one, operations of the ring end.
    pub(super) fn turn(&mut self) {
        match self.call {
            Some(at) => self.pass_to(at),
            None => self.end_some(),
        }
    }

    /// Lets time pass, and tells the handles if one of them waits for it.
    pub(super) fn pass_to(&mut self, now: Now) {
        self.now = now;
        if self.call.is_none_or(|at| at > now) {
            return;
        }
        self.call = None;
        for handle in 0..self.handles.len() {
            self.on(handle, |handle, cx| handle.resume(cx));
        }
        assert!(self.call.is_none_or(|at| at > now), "it would never end");
    }

    /// Lets operations of the ring end, and tells the handles.
    fn end_some(&mut self) {
        for (token, result, buffer) in self.ring.ended() {
            let (node, slot) = volume_token(token);
            let event = HandleEvent::File { result, buffer };
            let handle = self.of_node[node.0 as usize];
            self.on(handle, |handle, cx| handle.event(cx, node, slot, event));
        }
    }

    /// The result of an operation, if it is there.
    pub(super) fn result(&mut self, id: u64) -> Option<MediumResult<BlockLease>> {
        let at = self.done.iter().position(|(done, _)| *done == id)?;
        Some(self.done.remove(at).1)
    }

    /// An operation is done.
    #[track_caller]
    pub(super) fn does(&mut self, op: MediumOp<BlockLease>) {
        let result = self.run(op);
        assert!(is_done(&result), "{result:?}");
    }

    /// An operation fails.
    #[track_caller]
    pub(super) fn fails(&mut self, op: MediumOp<BlockLease>, error: MediumError) {
        match self.run(op) {
            Err(found) => assert_eq!(found, error),
            Ok(done) => panic!("{done:?} where {error:?} was expected"),
        }
    }

    /// Does an operation from begin to end.
    pub(super) fn run_on(
        &mut self,
        handle: usize,
        op: MediumOp<BlockLease>,
    ) -> MediumResult<BlockLease> {
        let id = self.submit(handle, op);
        loop {
            match self.result(id) {
                Some(result) => return result,
                None => self.turn(),
            }
        }
    }

    pub(super) fn run(&mut self, op: MediumOp<BlockLease>) -> MediumResult<BlockLease> {
        self.run_on(0, op)
    }

    pub(super) fn lease(&mut self, op: MediumOp<BlockLease>) -> BlockLease {
        match self.run(op) {
            Ok(MediumOutcome::Lease(lease)) => lease,
            other => panic!("no lease but {other:?}"),
        }
    }

    pub(super) fn read(&mut self, lba: u64, blocks: u64) -> Vec<u8> {
        let lease = self.lease(read(lba, blocks));
        assert_eq!(lease.len(), blocks as usize * self.block_size);
        bytes(&lease)
    }

    /// Writes blocks that are full of one byte.
    pub(super) fn write(&mut self, lba: u64, blocks: u64, byte: u8) -> MediumResult<BlockLease> {
        let op = self.write_op(lba, blocks, byte, false);
        self.run(op)
    }

    pub(super) fn write_op(
        &self,
        lba: u64,
        blocks: u64,
        byte: u8,
        fua: bool,
    ) -> MediumOp<BlockLease> {
        MediumOp::Write {
            extent: Extent::new(lba, blocks),
            data: BlockLease::from_bytes(vec![byte; blocks as usize * self.block_size]),
            fua,
            atomic: false,
        }
    }

    pub(super) fn status(&mut self, lba: u64, blocks: u64) -> (Provisioning, u64) {
        let extent = Extent::new(lba, blocks);
        match self.run(MediumOp::Status { extent }) {
            Ok(MediumOutcome::Provisioning { blocks, state }) => (state, blocks),
            other => panic!("no status but {other:?}"),
        }
    }

    pub(super) fn unmap(&mut self, lba: u64, blocks: u64) -> MediumResult<BlockLease> {
        self.run(unmapping(Extent::new(lba, blocks)))
    }

    pub(super) fn flush(&mut self) -> MediumResult<BlockLease> {
        self.run(FLUSH)
    }
}

pub(super) const FLUSH: MediumOp<BlockLease> = MediumOp::Flush {
    extent: Extent::new(0, 0),
};

pub(super) fn read(lba: u64, blocks: u64) -> MediumOp<BlockLease> {
    reading(Extent::new(lba, blocks))
}

pub(super) const fn reading(extent: Extent) -> MediumOp<BlockLease> {
    let memory = ReadMemory::Lent;
    MediumOp::Read { extent, memory }
}

pub(super) const fn writing(extent: Extent, data: BlockLease) -> MediumOp<BlockLease> {
    MediumOp::Write {
        extent,
        data,
        fua: false,
        atomic: false,
    }
}

pub(super) const fn same(extent: Extent, pattern: Option<BlockLease>) -> MediumOp<BlockLease> {
    MediumOp::WriteSame { extent, pattern }
}

pub(super) const fn unmapping(extent: Extent) -> MediumOp<BlockLease> {
    let anchor = false;
    MediumOp::Unmap { extent, anchor }
}

pub(super) fn bytes(lease: &BlockLease) -> Vec<u8> {
    let mut bytes = vec![0; lease.len()];
    lease.copy_out(0, &mut bytes);
    bytes
}

pub(super) fn is_done(result: &MediumResult<BlockLease>) -> bool {
    matches!(result, Ok(MediumOutcome::Done))
}

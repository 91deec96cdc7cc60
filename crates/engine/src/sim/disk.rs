//! A disk that takes its time, ends operations in any order, and fails when told to.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::io::memory::Buffer;
use ::io::ring::FileOp;
use block::lease::Lease;
use block::volume::{Context, Handle};
use scsi::medium::{
    Extent, Lease as _, MediumError, MediumOp, MediumResult, Outcome, Provisioning,
};

/// Octets in a block.
pub const BLOCK: usize = 512;

/// What each block holds; `None` where it is not allocated.
type Blocks = Vec<Option<Box<[u8]>>>;

/// A disk; clones share it.
#[derive(Clone, Debug)]
pub struct Disk {
    blocks: Arc<Mutex<Blocks>>,
}

/// One core's handle on a disk.
#[derive(Debug)]
pub(super) struct DiskHandle {
    disk: Disk,
    /// Operations under way, by slot.
    under_way: Vec<Option<(u64, MediumOp<Lease>)>>,
}

impl Disk {
    /// An empty disk of so many blocks.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self {
            blocks: Arc::new(Mutex::new(vec![None; blocks])),
        }
    }

    pub(super) fn handle(&self) -> DiskHandle {
        DiskHandle {
            disk: self.clone(),
            under_way: Vec::new(),
        }
    }

    /// What a block holds now.
    #[must_use]
    pub fn block(&self, lba: u64) -> [u8; BLOCK] {
        let mut octets = [0; BLOCK];
        if let Some(block) = &self.lock()[lba as usize] {
            octets.copy_from_slice(block);
        }
        octets
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries an operation out; of a write that fails, the first half reaches the medium.
    fn carry_out(&self, op: MediumOp<Lease>, failed: bool) -> MediumResult<Lease> {
        match op {
            MediumOp::Read { .. } | MediumOp::Prefetch { .. } if failed => Err(MediumError::Read),
            MediumOp::Read { extent } => Ok(Outcome::Lease(self.read(extent))),
            MediumOp::Write { extent, data, .. } => {
                let torn = Extent::new(extent.lba, extent.blocks / 2);
                self.write(if failed { torn } else { extent }, |at| {
                    data.slice(at, BLOCK)
                });
                done(failed)
            }
            MediumOp::WriteSame {
                extent,
                pattern: Some(pattern),
            } if !failed => {
                self.write(extent, |_| pattern.clone());
                Ok(Outcome::Done)
            }
            MediumOp::WriteSame {
                extent,
                pattern: None,
            }
            | MediumOp::Unmap { extent, .. }
                if !failed =>
            {
                let range = extent.lba as usize..extent.end() as usize;
                self.lock()[range].fill(None);
                Ok(Outcome::Done)
            }
            MediumOp::Status { extent } => {
                let mapped = self.lock()[extent.lba as usize].is_some();
                let state = if mapped {
                    Provisioning::Mapped
                } else {
                    Provisioning::Deallocated
                };
                Ok(Outcome::Provisioning { blocks: 1, state })
            }
            MediumOp::Sanitize { .. } => Err(MediumError::Unsupported),
            _ => done(failed),
        }
    }

    fn read(&self, extent: Extent) -> Lease {
        let mut octets = Vec::new();
        for lba in extent.lba..extent.end() {
            octets.extend_from_slice(&self.block(lba));
        }
        Lease::from_bytes(octets)
    }

    fn write(&self, extent: Extent, data: impl Fn(usize) -> Lease) {
        let mut blocks = self.lock();
        for number in 0..extent.blocks as usize {
            let mut octets = vec![0; BLOCK];
            data(number * BLOCK).copy_out(0, &mut octets);
            blocks[extent.lba as usize + number] = Some(octets.into());
        }
    }
}

fn done(failed: bool) -> MediumResult<Lease> {
    if failed {
        Err(MediumError::Write)
    } else {
        Ok(Outcome::Done)
    }
}

impl Handle for DiskHandle {
    fn submit(&mut self, cx: &mut Context<'_>, id: u64, op: MediumOp<Lease>) {
        if let MediumOp::Lend { extent, .. } = op {
            let memory = Lease::from_bytes(vec![0; extent.blocks as usize * BLOCK]);
            return cx.done(id, Ok(Outcome::Lease(memory)));
        }
        let slot = self
            .under_way
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.under_way.push(None);
                self.under_way.len() - 1
            });
        self.under_way[slot] = Some((id, op));
        cx.file(slot as u32, FileOp::Blocking(Box::new(|| Ok(0))));
    }

    fn completed(
        &mut self,
        cx: &mut Context<'_>,
        slot: u32,
        result: io::Result<u64>,
        _buffer: Option<Buffer>,
    ) {
        let Some((id, op)) = self.under_way.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        let result = self.disk.carry_out(op, result.is_err());
        cx.done(id, result);
    }
}

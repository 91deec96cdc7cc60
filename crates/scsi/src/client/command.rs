//! Operations on a medium as commands (SBC-4 §5).

use super::cdb::{self, CdbWithData, FUA, READ, STATUS_BYTES, WRITE};
use super::facts::Facts;
use super::{Data, PIECE_BYTES};
use crate::medium::{
    Extent, Lease, MediumError, MediumOp, MediumOutcome, MediumResult, Provisioning,
};
use crate::wire::cdb::{Field, be32, byte};

/// What is still to be done of an operation.
#[derive(Debug)]
pub(super) enum OperationWork<L> {
    Read {
        rest: RemainingBlocks,
        into: L,
    },
    Write {
        rest: RemainingBlocks,
        data: L,
        /// Stable when it ends.
        fua: bool,
        /// As one, whole or absent.
        atomic: bool,
        cached: Cached,
    },
    /// One block again and again; as ordinary writes of `instead` where WRITE SAME is unknown.
    Same {
        rest: RemainingBlocks,
        block: L,
        /// The block is zeros, and the unit need not keep them: it may give the storage back.
        unmap: bool,
        instead: Option<L>,
        cached: Cached,
    },
    Flush {
        done: bool,
    },
    Status {
        extent: Extent,
        into: L,
        answer: Option<(u64, Provisioning)>,
    },
}

/// Whether a part of it went out without FUA, and was not flushed since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cached(bool);

/// The blocks that are left, and how many of them the command in flight covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemainingBlocks {
    extent: Extent,
    done: u64,
    now: u64,
}

impl<L: Lease> OperationWork<L> {
    /// What an operation comes to, or its result where nothing is to be asked of the unit.
    pub(super) fn new(
        op: MediumOp<L>,
        facts: &Facts,
        memory: &mut dyn FnMut(usize) -> Option<L>,
    ) -> Result<Self, MediumResult<L>> {
        let bytes = |extent: Extent| (extent.blocks * u64::from(facts.traits.block_size)) as usize;
        let mut lease = |len| memory(len).ok_or(Err(MediumError::Busy));
        let lent = |lease| Err(Ok(MediumOutcome::Lease(lease)));
        match op {
            MediumOp::Read { extent, .. } => Ok(Self::Read {
                rest: RemainingBlocks::new(extent),
                into: lease(bytes(extent))?,
            }),
            MediumOp::PrepareWrite { extent } => lent(lease(bytes(extent))?),
            MediumOp::Buffer { bytes } => lent(lease(bytes as usize)?),
            MediumOp::Status { extent } if facts.provisioned => Ok(Self::Status {
                extent,
                into: L::from_bytes(vec![0; STATUS_BYTES]),
                answer: None,
            }),
            MediumOp::Status { extent } => Err(Ok(mapped(extent))),
            MediumOp::Prefetch { .. } => Err(Ok(MediumOutcome::Done)),
            MediumOp::Flush { .. } => Ok(Self::Flush { done: false }),
            _ if facts.traits.read_only => Err(Err(MediumError::ReadOnly)),
            MediumOp::Write { atomic: true, .. } if facts.traits.atomic.is_none() => {
                Err(Err(MediumError::Unsupported))
            }
            MediumOp::Write {
                extent,
                data,
                fua,
                atomic,
            } => Ok(Self::Write {
                rest: RemainingBlocks::new(extent),
                data,
                fua,
                atomic,
                cached: Cached::default(),
            }),
            MediumOp::WriteSame { extent, pattern } => {
                let block = pattern.unwrap_or_else(|| zeros(facts));
                Ok(Self::same(extent, block, false))
            }
            // UNMAP is only a hint, and what it leaves need not read as zeros (SBC-4 §4.7.3.3).
            MediumOp::Unmap {
                extent,
                anchor: false,
            } if facts.traits.unmap_granularity.is_some() => {
                Ok(Self::same(extent, zeros(facts), true))
            }
            MediumOp::Unmap { .. } | MediumOp::Sanitize { .. } => {
                Err(Err(MediumError::Unsupported))
            }
        }
    }

    fn same(extent: Extent, block: L, unmap: bool) -> Self {
        Self::Same {
            rest: RemainingBlocks::new(extent),
            block,
            unmap,
            instead: None,
            cached: Cached::default(),
        }
    }

    /// The next command; `None` when all has been done. With `keep` every write has to be stable
    /// when it ends.
    pub(super) fn next(&mut self, facts: &Facts, keep: bool) -> Option<CdbWithData<L>> {
        let block_size = u64::from(facts.traits.block_size);
        let most = facts.most_blocks(PIECE_BYTES);
        match self {
            Self::Read { rest, into } => {
                let piece = rest.take(most)?;
                let data = Data::In(part(into, rest, piece, block_size));
                Some((cdb::transfer(READ, 0, piece), data))
            }
            Self::Write {
                rest,
                data,
                fua,
                atomic,
                cached,
            } => {
                let keep = keep || *fua;
                let Some(piece) = rest.take(most) else {
                    return cached.flush(facts, keep);
                };
                let data = Data::Out(part(data, rest, piece, block_size));
                let flags = if cached.fua(facts, keep) { FUA } else { 0 };
                let cdb = if *atomic {
                    cdb::write_atomic(flags, piece)
                } else {
                    cdb::transfer(WRITE, flags, piece)
                };
                Some((cdb, data))
            }
            Self::Same {
                rest,
                block,
                unmap,
                instead,
                cached,
            } => {
                let most = match instead {
                    None => facts.write_same,
                    Some(data) => data.len() as u64 / block_size,
                };
                let Some(piece) = rest.take(most) else {
                    return cached.flush(facts, keep);
                };
                cached.0 = true;
                Some(match instead {
                    None => {
                        let data = (!*unmap || !facts.ndob).then(|| block.clone());
                        cdb::write_same(piece, *unmap, data)
                    }
                    Some(data) => {
                        let data = data.slice(0, (piece.blocks * block_size) as usize);
                        (cdb::transfer(WRITE, 0, piece), Data::Out(data))
                    }
                })
            }
            Self::Flush { done } => (!*done).then(|| (cdb::flush(), Data::None)),
            Self::Status {
                extent,
                into,
                answer,
            } => match answer {
                Some(_) => None,
                None => Some((cdb::status(*extent), Data::In(into.clone()))),
            },
        }
    }

    /// A command went well, and this many bytes came.
    ///
    /// # Errors
    /// When a read was given less than it asked for: what memory it has held before is not ours.
    pub(super) fn good(&mut self, received: usize, facts: &Facts) -> Result<(), MediumError> {
        match self {
            Self::Read { rest, .. } => {
                let bytes = rest.now * u64::from(facts.traits.block_size);
                if (received as u64) < bytes {
                    return Err(MediumError::Read);
                }
                rest.advance();
            }
            Self::Write { rest, cached, .. } | Self::Same { rest, cached, .. } => {
                // Where nothing was left to write, it was a flush.
                cached.0 &= rest.now > 0;
                rest.advance();
            }
            Self::Flush { done } => *done = true,
            Self::Status {
                extent,
                into,
                answer,
            } => *answer = Some(provisioning(into, received, *extent)),
        }
        Ok(())
    }

    /// The unit does not know the command: whether to go on in another way.
    pub(super) fn refused(&mut self) -> Result<(), MediumError> {
        match self {
            Self::Same { block, instead, .. } if instead.is_none() => {
                *instead = Some(repeated(block));
                Ok(())
            }
            Self::Status { extent, answer, .. } => {
                *answer = Some((extent.blocks.max(1), Provisioning::Mapped));
                Ok(())
            }
            Self::Flush { .. } => Err(MediumError::Unsupported),
            _ => Err(self.error()),
        }
    }

    /// What an operation ends with that the unit would not do.
    pub(super) fn error(&self) -> MediumError {
        match self {
            Self::Read { .. } | Self::Status { .. } => MediumError::Read,
            _ => MediumError::Write,
        }
    }

    /// Its blocks; a flush names none.
    pub(super) fn extent(&self) -> Option<Extent> {
        match self {
            Self::Read { rest, .. } | Self::Write { rest, .. } | Self::Same { rest, .. } => {
                Some(rest.extent)
            }
            Self::Status { extent, .. } => Some(*extent),
            Self::Flush { .. } => None,
        }
    }

    /// What an operation ends with that went well.
    pub(super) fn result(&mut self) -> MediumResult<L> {
        Ok(match self {
            Self::Read { into, .. } => MediumOutcome::Lease(into.clone()),
            Self::Status {
                answer: Some((blocks, state)),
                ..
            } => MediumOutcome::Provisioning {
                blocks: *blocks,
                state: *state,
            },
            _ => MediumOutcome::Done,
        })
    }

    /// Starts over, where what the unit did is not known to have been kept. Returns whether that
    /// was anything.
    pub(super) fn restart(&mut self) -> bool {
        match self {
            Self::Read { .. } | Self::Status { .. } => false,
            Self::Write { rest, cached, .. } | Self::Same { rest, cached, .. } => {
                std::mem::take(&mut cached.0) && rest.restart()
            }
            Self::Flush { done } => std::mem::take(done),
        }
    }

    /// Whether blocks are other ones after it.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::Same { .. })
    }

    /// Whether it leaves something in a volatile cache.
    pub(super) fn is_volatile(&self) -> bool {
        match self {
            Self::Write { cached, .. } | Self::Same { cached, .. } => cached.0,
            _ => false,
        }
    }
}

impl Cached {
    /// Whether the next part has FUA, as it must be kept.
    fn fua(&mut self, facts: &Facts, keep: bool) -> bool {
        let fua = keep && facts.traits.write_cache && facts.dpofua;
        self.0 |= !fua;
        fua
    }

    /// What makes everything stable that must be, now that it has been written.
    fn flush<L>(self, facts: &Facts, keep: bool) -> Option<CdbWithData<L>> {
        let volatile = self.0 && facts.traits.write_cache;
        (keep && volatile).then(|| (cdb::flush(), Data::None))
    }
}

impl RemainingBlocks {
    const fn new(extent: Extent) -> Self {
        Self {
            extent,
            done: 0,
            now: 0,
        }
    }

    /// The next blocks, `most` of them at the most.
    fn take(&mut self, most: u64) -> Option<Extent> {
        self.now = most.max(1).min(self.extent.blocks - self.done);
        (self.now > 0).then(|| Extent::new(self.extent.lba + self.done, self.now))
    }

    fn restart(&mut self) -> bool {
        let begun = self.done + self.now > 0;
        *self = Self::new(self.extent);
        begun
    }

    fn advance(&mut self) {
        self.done += std::mem::take(&mut self.now);
    }
}

fn mapped<L>(extent: Extent) -> MediumOutcome<L> {
    MediumOutcome::Provisioning {
        blocks: extent.blocks.max(1),
        state: Provisioning::Mapped,
    }
}

/// The part of an operation's memory that belongs to a piece of its blocks.
fn part<L: Lease>(whole: &L, rest: &RemainingBlocks, piece: Extent, block_size: u64) -> L {
    if piece.blocks == rest.extent.blocks {
        return whole.clone();
    }
    let start = (piece.lba - rest.extent.lba) * block_size;
    whole.slice(start as usize, (piece.blocks * block_size) as usize)
}

fn zeros<L: Lease>(facts: &Facts) -> L {
    L::from_bytes(vec![0; facts.traits.block_size as usize])
}

/// A block again and again, for units that do not know WRITE SAME.
fn repeated<L: Lease>(block: &L) -> L {
    let mut bytes = vec![0; block.len()];
    block.copy_out(0, &mut bytes);
    L::from_bytes(bytes.repeat((INSTEAD_BYTES / bytes.len().max(1)).max(1)))
}

/// What the first LBA status descriptor says of the blocks from the start of `extent`.
fn provisioning<L: Lease>(into: &L, received: usize, extent: Extent) -> (u64, Provisioning) {
    let mut bytes = [0; STATUS_BYTES];
    into.copy_out(0, &mut bytes);
    let lba = Field::new(8, 8).read(&bytes);
    let end = lba.saturating_add(u64::from(be32(&bytes, 16)));
    if received < STATUS_BYTES || lba > extent.lba || end <= extent.lba {
        return (extent.blocks.max(1), Provisioning::Mapped);
    }
    let state = match byte(&bytes, 20) & 0x0f {
        1 => Provisioning::Deallocated,
        2 => Provisioning::Anchored,
        _ => Provisioning::Mapped,
    };
    ((end - extent.lba).min(extent.blocks.max(1)), state)
}

/// What is written at a time in place of WRITE SAME.
const INSTEAD_BYTES: usize = 64 << 10;

//! Memory that the peer may reach: STags, what each of them allows, and where it ends (RFC 5041
//! §7.1, RFC 5040 §7.2 and §8.1.1).
//!
//! An STag is 32 random bits, so that one of a command that is over is not that of the next. It
//! counts for one stream, for one buffer, and until it is withdrawn. The first byte of a buffer has
//! the Tagged Offset 0: an address would tell the peer what it has no use for.

mod source;
#[cfg(test)]
mod tests;

use scsi::medium::Lease;
use scsi::received::ReceivedBytes;

use self::source::StagSource;
use super::terminate::TerminateCode;
use crate::verbs::{Access, Stag, Tag};

/// The STags of one stream.
#[derive(Debug)]
pub struct Tags<L> {
    /// What is searched for: the STag of each slot, [`FREE`] where there is none.
    stags: Vec<Stag>,
    slots: Vec<Option<TaggedBuffer<L>>>,
    source: StagSource,
    /// The slot that was found last: most segments go where the one before went.
    recent: usize,
}

/// A buffer that the peer may reach.
#[derive(Debug)]
struct TaggedBuffer<L> {
    lease: L,
    /// `None` when the peer has invalidated the STag.
    may: Option<Access>,
    /// Bytes that the peer has written, or was sent.
    moved: ReceivedBytes,
    /// Bytes that the peer has asked for so far, in all.
    asked: u64,
}

/// No STag is 0: some devices drop segments with it, those without data included.
const FREE: Stag = Stag(0);

/// How often the peer may read as much as the buffer holds. A target has to read it once; twice if
/// it does so for a retry of its own. More is a way to have us send for ever.
const READS_OF_A_BUFFER: u64 = 4;

/// Why a peer may not reach what it wants to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagError {
    /// The STag is not that of a buffer, or not any more.
    Invalid,
    /// The buffer may be reached in the other way only.
    Access,
    /// Tagged Offset and length pass 2^64.
    Wrap,
    /// They pass the end of the buffer.
    Bounds,
    /// The same bytes were read over and over.
    TooOften,
    /// What was written or read so far stands apart in too many pieces.
    Scattered,
}

impl TagError {
    /// The code for a tagged segment (RFC 5041 §7.2).
    #[must_use]
    pub const fn of_segment(self) -> TerminateCode {
        match self {
            // DDP has no code for the other way: the STag is not valid for this one, as siw has it.
            Self::Invalid | Self::Access => TerminateCode::INVALID_STAG,
            Self::Wrap => TerminateCode::TO_WRAP,
            Self::Bounds => TerminateCode::BOUNDS,
            Self::TooOften | Self::Scattered => TerminateCode::CATASTROPHIC_STREAM,
        }
    }

    /// The code for an RDMA Read Request (RFC 5040 §4.8).
    #[must_use]
    pub const fn of_request(self) -> TerminateCode {
        match self {
            Self::Invalid => TerminateCode::READ_INVALID_STAG,
            Self::Access => TerminateCode::ACCESS_RIGHTS,
            Self::Wrap => TerminateCode::READ_TO_WRAP,
            Self::Bounds => TerminateCode::READ_BOUNDS,
            Self::TooOften | Self::Scattered => TerminateCode::CATASTROPHIC_STREAM,
        }
    }
}

impl<L> Tags<L> {
    /// Whether nothing is advertised.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.iter().all(Option::is_none)
    }

    /// The same, without what is advertised.
    pub(super) fn with_other_memory<M>(self) -> Tags<M> {
        Tags {
            stags: Vec::new(),
            slots: Vec::new(),
            source: self.source,
            recent: 0,
        }
    }
}

impl<L: Lease> Tags<L> {
    /// None yet. `random` must not be known to the peer.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self {
            stags: Vec::new(),
            slots: Vec::new(),
            source: StagSource::new(random),
            recent: 0,
        }
    }

    /// Lets the peer reach a buffer.
    pub fn advertise(&mut self, of: &L, may: Access) -> Tag {
        let stag = self.draw();
        let buffer = Some(TaggedBuffer {
            lease: of.clone(),
            may: Some(may),
            moved: ReceivedBytes::default(),
            asked: 0,
        });
        if let Some(slot) = self.slot(FREE) {
            self.stags[slot] = stag;
            self.slots[slot] = buffer;
        } else {
            self.stags.push(stag);
            self.slots.push(buffer);
        }
        Tag { stag, offset: 0 }
    }

    /// An STag that none of the buffers has.
    pub fn draw(&mut self) -> Stag {
        loop {
            let stag = self.source.next();
            if stag != FREE && self.slot(stag).is_none() {
                return stag;
            }
        }
    }

    /// Nothing goes through this STag any more. Returns how many bytes have, from the first one on;
    /// `None` if there is no such STag.
    pub fn withdraw(&mut self, stag: Stag) -> Option<u32> {
        let slot = self.slot(stag).filter(|_| stag != FREE)?;
        self.stags[slot] = FREE;
        let buffer = self.slots[slot].take();
        buffer.map(|buffer| buffer.moved.next())
    }

    /// The peer does not want the STag used any more. Returns whether it was valid.
    pub fn invalidate(&mut self, stag: Stag) -> bool {
        let buffer = self.buffer(stag);
        buffer.is_ok_and(|buffer| buffer.may.take().is_some())
    }

    /// Withdraws all of them.
    pub fn clear(&mut self) {
        self.stags.clear();
        self.slots.clear();
    }

    /// Puts the payload of an RDMA Write where it belongs; all of it, or nothing.
    pub fn place(&mut self, to: Tag, payload: &[u8]) -> Result<(), TagError> {
        let (buffer, at) = self.reach(to, payload.len(), Access::Write)?;
        buffer.note(at, payload.len())?;
        buffer.lease.copy_in(at, payload);
        Ok(())
    }

    /// Checks what an RDMA Read Request asks for, and notes that it was asked for.
    pub fn ask(&mut self, from: Tag, len: u32) -> Result<(), TagError> {
        let (buffer, _) = self.reach(from, len as usize, Access::Read)?;
        let asked = buffer.asked + u64::from(len);
        if asked > READS_OF_A_BUFFER * buffer.lease.len() as u64 {
            return Err(TagError::TooOften);
        }
        buffer.asked = asked;
        Ok(())
    }

    /// The bytes of a buffer that an RDMA Read Response sends now.
    pub fn part(&mut self, from: Tag, len: usize) -> Result<L, TagError> {
        let (buffer, at) = self.reach(from, len, Access::Read)?;
        buffer.note(at, len)?;
        Ok(buffer.lease.slice(at, len))
    }

    /// The buffer of a tag, and where in it `len` bytes lie that are inside.
    fn reach(
        &mut self,
        tag: Tag,
        len: usize,
        way: Access,
    ) -> Result<(&mut TaggedBuffer<L>, usize), TagError> {
        let buffer = self.buffer(tag.stag)?;
        if buffer.may.ok_or(TagError::Invalid)? != way {
            return Err(TagError::Access);
        }
        let end = tag.offset.checked_add(len as u64).ok_or(TagError::Wrap)?;
        if end > buffer.lease.len() as u64 {
            return Err(TagError::Bounds);
        }
        Ok((buffer, tag.offset as usize))
    }

    fn buffer(&mut self, stag: Stag) -> Result<&mut TaggedBuffer<L>, TagError> {
        let slot = self.slot(stag).ok_or(TagError::Invalid)?;
        self.recent = slot;
        let buffer = self.slots.get_mut(slot).and_then(Option::as_mut);
        buffer.ok_or(TagError::Invalid)
    }

    fn slot(&self, stag: Stag) -> Option<usize> {
        if self.stags.get(self.recent) == Some(&stag) {
            return Some(self.recent);
        }
        self.stags.iter().position(|one| *one == stag)
    }
}

impl<L> TaggedBuffer<L> {
    /// Bytes were written, or are sent.
    fn note(&mut self, at: usize, len: usize) -> Result<(), TagError> {
        let fits = self.moved.add(at as u32, (at + len) as u32);
        fits.then_some(()).ok_or(TagError::Scattered)
    }
}

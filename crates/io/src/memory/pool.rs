//! Buffers of one core.
//!
//! A buffer is a slot of one of four sizes. Each size has an address range as large as the whole
//! limit, so that a slot is a number and the limit alone decides which sizes get the memory. A slot
//! is warm (free, with memory), cold (free, its memory given back, or never used) or counted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;

use super::buffer::Buffer;
use super::mapping::{Mapping, PageRules};

/// The longest buffer of a pool, in bytes: a segment.
pub const SLOT_MAX: usize = 256 << 10;

/// Slots of a size that are given back at once, each by a system call.
const TRIMMED: usize = 512;

/// Sizes of slots: a logical block, and what segments are when transfers are short, usual, long.
/// Where the kernel's pages are larger a slot has a whole page: the memory of a part of one cannot
/// be given back.
const SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, SLOT_MAX];

/// Buffers of one core, given out and taken back without a lock. They begin at a page boundary, as
/// O_DIRECT asks for. Clones share the pool.
#[derive(Clone)]
pub struct Pool {
    shared: Rc<PoolShared>,
}

struct PoolShared {
    limit: usize,
    /// Bytes of slots that are counted or warm.
    resident: Cell<usize>,
    /// Bytes of slots that are counted.
    in_use: Cell<usize>,
    classes: [Class; SIZES.len()],
}

struct Class {
    size: usize,
    memory: Mapping,
    slots: RefCell<SlotVectors>,
    /// Parts that devices know: their memory cannot be given back, as a device would go on with
    /// the pages that were there before.
    pinned: RefCell<Vec<usize>>,
}

/// A part of a pool's memory, as devices are told of it. It keeps the pool.
pub(crate) struct PoolPart {
    pool: Rc<PoolShared>,
    class: usize,
    number: usize,
}

impl PoolPart {
    /// Bytes of a part; it holds slots of one size whole.
    pub(crate) const BYTES: usize = 2 << 20;

    /// Where it lies, and how long it is.
    pub(crate) fn span(&self) -> (NonNull<u8>, usize) {
        let memory = &self.pool.classes[self.class].memory;
        let start = self.number * Self::BYTES;
        (memory.at(start), Self::BYTES.min(memory.len() - start))
    }

    /// Has the memory stay for as long as the pool lives. Part of it may not have been written yet.
    pub(crate) fn pin(&self) -> io::Result<()> {
        let class = &self.pool.classes[self.class];
        let (start, (_, len)) = (self.number * Self::BYTES, self.span());
        for part in class.memory.parts(start, len).into_iter().flatten() {
            class.memory.open(part)?;
        }
        class.pinned.borrow_mut().push(self.number);
        Ok(())
    }

    /// The device knows it no longer, or is about to forget it. What is unused is given back,
    /// unless another one knows it.
    pub(crate) fn unpin(&self) {
        let class = &self.pool.classes[self.class];
        let mut pinned = class.pinned.borrow_mut();
        if let Some(at) = pinned.iter().position(|number| *number == self.number) {
            pinned.swap_remove(at);
        }
        if !pinned.contains(&self.number) {
            class.discard_unused(self.number);
        }
    }
}

/// Vectors whose capacity is that of all slots ever used, so that taking a slot back never
/// allocates.
#[derive(Default)]
struct SlotVectors {
    /// How many claims there are on each slot that was ever used.
    claims: Vec<u32>,
    warm: VecDeque<u32>,
    cold: Vec<u32>,
    /// The fewest warm slots since the last trim: those that were not needed.
    idle: usize,
}

impl Pool {
    /// Address space that a pool reserves for each byte of its limit: a range for each size.
    pub const ADDRESSES: u64 = SIZES.len() as u64;

    /// A pool that holds `limit` bytes at the most. It takes memory when it is used.
    ///
    /// # Errors
    ///
    /// Of mmap.
    pub fn new(limit: usize) -> io::Result<Self> {
        Self::with_page_rules(limit, PageRules::here())
    }

    /// The same on another kernel.
    pub(super) fn with_page_rules(limit: usize, rules: PageRules) -> io::Result<Self> {
        let class = |size: usize| {
            let size = size.max(rules.page);
            let memory = Mapping::closed(limit.max(1).next_multiple_of(size), rules)?;
            // A huge page would be charged to the process that touches its first byte.
            memory.advise(0, memory.len(), rustix::mm::Advice::LinuxNoHugepage);
            let slots = RefCell::default();
            io::Result::Ok(Class {
                size,
                memory,
                slots,
                pinned: RefCell::default(),
            })
        };
        let [a, b, c, d] = SIZES.map(class);
        Ok(Self {
            shared: Rc::new(PoolShared {
                limit,
                resident: Cell::new(0),
                in_use: Cell::new(0),
                classes: [a?, b?, c?, d?],
            }),
        })
    }

    /// A buffer of `len` bytes, at most [`SLOT_MAX`]; `None` when the pool is exhausted. Its
    /// content is what was left in it.
    ///
    /// # Panics
    ///
    /// When `len` is larger than that.
    #[must_use]
    pub fn buffer(&self, len: usize) -> Option<Buffer> {
        let class = SIZES.iter().position(|size| len <= *size);
        let class = class.unwrap_or_else(|| too_long(len));
        let index = self.shared.take(class)?;
        let start = self.shared.classes[class].offset(index);
        let start = self.shared.classes[class].memory.at(start);
        let slot = PoolSlot {
            pool: Rc::clone(&self.shared),
            class: class as u32,
            index,
        };
        Some(Buffer::of_slot(start, len, slot))
    }

    /// What buffers that are held cover, in bytes of whole slots.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.shared.in_use.get()
    }

    /// The memory that the pool holds, in bytes.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.shared.resident.get()
    }

    /// Gives back memory that was not needed since the last call, not more than takes a
    /// millisecond or so. To be called every second; when idle, until [`Self::resident`] is what
    /// is in use.
    pub fn trim(&self) {
        for class in &self.shared.classes {
            let idle = {
                let mut slots = class.slots.borrow_mut();
                let idle = slots.idle.min(slots.warm.len()).min(TRIMMED);
                slots.idle = slots.warm.len() - idle;
                idle
            };
            for _ in 0..idle {
                self.shared.cool(class);
            }
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PoolShared { limit, .. } = *self.shared;
        write!(f, "Pool({} of {limit} bytes in use)", self.in_use())
    }
}

impl PoolShared {
    /// Counts a first claim on a free slot.
    fn take(&self, class: usize) -> Option<u32> {
        let class = &self.classes[class];
        let warm = class.slots.borrow_mut().take_warm();
        let index = match warm {
            Some(index) => index,
            None => {
                self.make_room(class.size)?;
                let index = class.take_cold()?;
                self.resident.set(self.resident.get() + class.size);
                index
            }
        };
        self.in_use.set(self.in_use.get() + class.size);
        Some(index)
    }

    /// Sees that `bytes` more may be resident, by giving back what other sizes have idle.
    fn make_room(&self, bytes: usize) -> Option<()> {
        while self.resident.get() + bytes > self.limit {
            let idle = |class: &&Class| !class.slots.borrow().warm.is_empty();
            let class = self.classes.iter().rev().find(idle)?;
            self.cool(class);
        }
        Some(())
    }

    /// Gives back the memory of the warm slot that was not used for the longest time.
    fn cool(&self, class: &Class) {
        let mut slots = class.slots.borrow_mut();
        let Some(index) = slots.warm.pop_front() else {
            return;
        };
        slots.cold.push(index);
        slots.idle = slots.idle.min(slots.warm.len());
        if !class.is_pinned(class.offset(index)) {
            class.memory.discard(class.offset(index), class.size);
        }
        self.resident.set(self.resident.get() - class.size);
    }
}

impl Class {
    fn offset(&self, index: u32) -> usize {
        index as usize * self.size
    }

    fn is_pinned(&self, offset: usize) -> bool {
        let pinned = self.pinned.borrow();
        pinned.contains(&(offset / PoolPart::BYTES))
    }

    /// Gives back the memory of the slots of a part that are cold or were never used, which have it
    /// as the part was pinned.
    fn discard_unused(&self, part: usize) {
        let slots = self.slots.borrow();
        let (first, all) = (part * PoolPart::BYTES, self.memory.len());
        let slots_from = first / self.size;
        let mut is_used = [false; PoolPart::BYTES / SIZES[0]];
        for (is_used, claims) in is_used.iter_mut().zip(slots.claims.iter().skip(slots_from)) {
            *is_used = *claims > 0;
        }
        for warm in &slots.warm {
            let at = (*warm as usize).checked_sub(slots_from);
            if let Some(is_used) = at.and_then(|at| is_used.get_mut(at)) {
                *is_used = true;
            }
        }
        let end = (first + PoolPart::BYTES).min(all);
        let is_used = &is_used[..(end - first) / self.size];
        let mut at = first;
        for run in is_used.chunk_by(|a, b| a == b) {
            let len = run.len() * self.size;
            if !run[0] {
                self.memory.discard(at, len);
            }
            at += len;
        }
    }

    /// There is one, as the range of each size is as large as the limit; but the kernel may have no
    /// memory for it.
    fn take_cold(&self) -> Option<u32> {
        let mut slots = self.slots.borrow_mut();
        if slots.cold.is_empty() {
            let next = slots.claims.len() * self.size;
            // A part is opened once, with its first slot: the parts are multiples of all sizes.
            let part = self.memory.parts(next, self.size);
            let is_first = |part: &Range<usize>| self.memory.part_start(part.start) == next;
            if let Some(part) = part.filter(is_first) {
                self.memory.open(part.start).ok()?;
            }
        }
        Some(slots.take_cold())
    }
}

impl SlotVectors {
    fn take_warm(&mut self) -> Option<u32> {
        let index = self.warm.pop_back()?;
        self.idle = self.idle.min(self.warm.len());
        self.claims[index as usize] = 1;
        Some(index)
    }

    fn take_cold(&mut self) -> u32 {
        if let Some(index) = self.cold.pop() {
            self.claims[index as usize] = 1;
            return index;
        }
        let index = self.claims.len();
        self.claims.push(1);
        let room = self.claims.capacity();
        self.warm.reserve(room - self.warm.len());
        self.cold.reserve(room - self.cold.len());
        index as u32
    }
}

/// One claim on a slot.
pub(super) struct PoolSlot {
    pool: Rc<PoolShared>,
    class: u32,
    index: u32,
}

impl PoolSlot {
    fn class(&self) -> &Class {
        &self.pool.classes[self.class as usize]
    }

    /// The part of the pool that it lies in.
    pub(super) fn part(&self) -> PoolPart {
        PoolPart {
            pool: Rc::clone(&self.pool),
            class: self.class as usize,
            number: self.class().offset(self.index) / PoolPart::BYTES,
        }
    }
}

impl Clone for PoolSlot {
    fn clone(&self) -> Self {
        let claims = &mut self.class().slots.borrow_mut().claims;
        let claims = &mut claims[self.index as usize];
        *claims = claims.checked_add(1).unwrap_or_else(|| too_many());
        Self {
            pool: Rc::clone(&self.pool),
            class: self.class,
            index: self.index,
        }
    }
}

impl Drop for PoolSlot {
    fn drop(&mut self) {
        let class = self.class();
        let mut slots = class.slots.borrow_mut();
        let claims = &mut slots.claims[self.index as usize];
        *claims -= 1;
        if *claims == 0 {
            slots.warm.push_back(self.index);
            self.pool.in_use.set(self.pool.in_use.get() - class.size);
        }
    }
}

fn too_long(len: usize) -> ! {
    panic!("a pool buffer of {len} bytes")
}

fn too_many() -> ! {
    panic!("4 Gi claims on a buffer")
}

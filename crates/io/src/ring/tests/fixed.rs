//! Memory of pools that the kernel knows while much is moved from and to it.

use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use super::*;
use crate::memory::{Pool, SLOT_MAX};
use crate::ring::{FileOp, FileRing, RingFile, UringRing};

super::on_every_ring! {
    what_is_written_past_the_cache_is_read_however_often
}

/// Transfers of a segment that are more than enough for their memory to be registered.
const MANY: u64 = 40;

/// A file that is read and written past the page cache; `None` where the sources are on a file
/// system without.
fn direct() -> Option<Arc<RingFile>> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::DIRECT;
    let file = rustix::fs::open(env!("CARGO_MANIFEST_DIR"), flags, Mode::RUSR | Mode::WUSR);
    let Ok(file) = file else {
        eprintln!("skipped: no O_DIRECT here");
        return None;
    };
    Some(Arc::new(RingFile::new(file)))
}

fn uring() -> AnyRing {
    open(RingKind::Uring)
}

fn registered(ring: &AnyRing) -> usize {
    match ring {
        AnyRing::Uring(ring) => UringRing::registered(ring),
        AnyRing::Epoll(_) => 0,
    }
}

fn filled(pool: &Pool, with: &[u8]) -> Buffer {
    let buffer = pool.buffer(with.len()).unwrap();
    buffer.copy_in(0, with);
    buffer
}

fn ask_write(ring: &mut AnyRing, file: &Arc<RingFile>, offset: u64, buffer: Buffer) {
    let op = FileOp::Write {
        file: Arc::clone(file),
        offset,
        buffer,
        dsync: false,
        atomic: false,
    };
    ring.file(Token(offset), op);
}

fn ask_read(ring: &mut AnyRing, file: &Arc<RingFile>, offset: u64, buffer: Buffer) {
    let file = Arc::clone(file);
    let op = FileOp::Read {
        file,
        offset,
        buffer,
    };
    ring.file(Token(offset), op);
}

#[track_caller]
fn over(ring: &mut AnyRing) -> Buffer {
    match next(ring) {
        Seen::File(_, Ok(_), Some(buffer)) => buffer,
        other => panic!("{other:?}"),
    }
}

/// Writes a segment, which differs from one to the next, and reads it into memory that held
/// something else.
#[track_caller]
fn there_and_back(ring: &mut AnyRing, file: &Arc<RingFile>, pool: &Pool, number: u64) {
    let bytes = pattern(SLOT_MAX + number as usize).split_off(number as usize);
    let offset = number % 8 * SLOT_MAX as u64;
    ask_write(ring, file, offset, filled(pool, &bytes));
    over(ring);
    ask_read(ring, file, offset, filled(pool, &[0xee; SLOT_MAX]));
    let read = over(ring);
    assert_eq!(read.difference(&Buffer::from_vec(bytes)), None, "{number}");
}

fn what_is_written_past_the_cache_is_read_however_often(ring: &mut AnyRing) {
    let (Some(file), pool) = (direct(), Pool::new(4 << 20).unwrap()) else {
        return;
    };
    for number in 0..MANY {
        there_and_back(ring, &file, &pool, number);
    }
    let expected = usize::from(ring.kind() == RingKind::Uring);
    assert_eq!(registered(ring), expected);
    assert!(ring.refusal().is_none());
}

/// Pools do not give back the memory that the kernel writes to: it would be other memory that is
/// read after that.
#[test]
fn what_a_pool_has_cold_is_read_into_while_it_is_registered() {
    let (Some(file), pool, mut ring) = (direct(), Pool::new(4 << 20).unwrap(), uring()) else {
        return;
    };
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
        pool.trim();
        pool.trim();
        assert_eq!(pool.resident(), 0);
    }
    assert_eq!(registered(&ring), 1);
    there_and_back(&mut ring, &file, &pool, MANY);
}

#[test]
fn memory_that_is_used_little_is_registered_no_longer_and_given_back() {
    let (Some(file), pool, mut ring) = (direct(), Pool::new(4 << 20).unwrap(), uring()) else {
        return;
    };
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
    }
    // The other becomes cold while it is registered.
    let other = filled(&pool, &[9; SLOT_MAX]);
    let held = filled(&pool, &[7; SLOT_MAX]);
    let other_address = other.address();
    drop(other);
    let address = held.address();
    pool.trim();
    ring.trim();
    assert_eq!(registered(&ring), 1, "it was used since the last trim");
    assert!(ring.has_idle());
    pool.trim();
    ring.trim();
    assert_eq!(registered(&ring), 0);
    assert!(!ring.has_idle(), "an idle core is not woken");

    let next_slot = pool.buffer(SLOT_MAX).unwrap();
    assert_eq!(next_slot.address(), other_address);
    assert_eq!(next_slot.difference(&Buffer::zeros(SLOT_MAX)), None);
    let sevens = Buffer::from_vec(vec![7; SLOT_MAX]);
    assert_eq!(held.difference(&sevens), None, "what is in use stays");
    assert_eq!(held.address(), address);
    drop((held, next_slot));
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
    }
    assert_eq!(registered(&ring), 1, "it is worth it again");
}

/// What is queued names registered memory, and is refused if that is registered no longer.
#[test]
fn memory_stays_registered_for_what_is_queued() {
    let (Some(file), pool, mut ring) = (direct(), Pool::new(4 << 20).unwrap(), uring()) else {
        return;
    };
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
    }
    ring.trim();
    ask_read(&mut ring, &file, 0, filled(&pool, &[0xee; SLOT_MAX]));
    ring.trim();
    ring.trim();
    assert_eq!(registered(&ring), 1);
    let bytes = pattern(SLOT_MAX + 32).split_off(32);
    assert_eq!(over(&mut ring).difference(&Buffer::from_vec(bytes)), None);
    ring.trim();
    assert_eq!(registered(&ring), 0);
}

#[test]
fn a_ring_is_dropped_while_registered_memory_is_read_into() {
    let (Some(file), pool, mut ring) = (direct(), Pool::new(8 << 20).unwrap(), uring()) else {
        return;
    };
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
    }
    for at in 0..8 {
        let buffer = pool.buffer(SLOT_MAX).unwrap();
        ask_read(&mut ring, &file, at * SLOT_MAX as u64, buffer);
    }
    ring.wait(Some(Duration::ZERO)).unwrap();
    drop(ring);
    assert_eq!((pool.in_use(), Arc::strong_count(&file)), (0, 1));
}

/// Of files in the page cache no page is looked up, so there is nothing to be saved.
#[test]
fn memory_for_the_page_cache_is_not_registered() {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(env!("CARGO_MANIFEST_DIR"), flags, Mode::RUSR).unwrap();
    let (file, pool, mut ring) = (
        Arc::new(RingFile::new(file)),
        Pool::new(4 << 20).unwrap(),
        uring(),
    );
    for number in 0..MANY {
        there_and_back(&mut ring, &file, &pool, number);
    }
    assert_eq!(registered(&ring), 0);
    assert!(!ring.has_idle());
}

/// What comes of a ring that a thread opens and works on under this limit: how many parts are
/// registered, and how often it told that more could not be. The kernel minds the limit where the
/// thread had no privilege when it opened the ring, and we where it has none as it works. `None`
/// where tests have no privilege to give up: the limit is one for the process.
fn limited(kind: RingKind, bytes: u64, works_privileged: bool) -> Option<(usize, usize)> {
    let sets = capabilities(None).unwrap();
    let (file, privilege) = (direct()?, CapabilitySet::IPC_LOCK);
    if !sets.effective.contains(privilege) {
        eprintln!("skipped: no privilege to give up");
        return None;
    }
    let before = getrlimit(Resource::Memlock);
    let lower = Rlimit {
        current: Some(bytes),
        maximum: before.maximum.map(|most| most.max(bytes)),
    };
    if setrlimit(Resource::Memlock, lower).is_err() {
        eprintln!("skipped: the limit cannot be set");
        return None;
    }
    let work = move || {
        let mut without = sets;
        without.effective -= privilege;
        set_capabilities(None, without).unwrap();
        let (pool, mut ring) = (Pool::new(8 << 20).unwrap(), open(kind));
        if works_privileged {
            set_capabilities(None, sets).unwrap();
        }
        let mut told = 0;
        for number in 0..4 * MANY {
            there_and_back(&mut ring, &file, &pool, number);
            told += usize::from(ring.refusal().is_some());
            if number % MANY == 0 {
                ring.trim();
            }
        }
        (registered(&ring), told)
    };
    let came_to = std::thread::spawn(work).join();
    setrlimit(Resource::Memlock, before).unwrap();
    Some(came_to.unwrap())
}

#[test]
fn what_may_not_be_pinned_is_moved_all_the_same_and_told_once() {
    let Some(by_us) = limited(RingKind::Uring, 4 << 20, false) else {
        return;
    };
    assert_eq!(by_us, (0, 1), "a quarter of the limit is less than a part");
    let enough = limited(RingKind::Uring, 64 << 20, false);
    assert_eq!(enough.unwrap_or((1, 0)), (1, 0));
    let by_kernel = limited(RingKind::Uring, 1 << 20, true);
    assert_eq!(by_kernel, Some((0, 1)));
    // From Linux 6.13 on the ring itself may lock nothing, and epoll has nothing to tell.
    let (registered, _) = limited(RingKind::Auto, 0, false).unwrap();
    assert_eq!(registered, 0);
}

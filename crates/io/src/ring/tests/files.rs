//! Files.

use std::fs;
use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rustix::fs::{Advice, MemfdFlags, Mode, OFlags};
use rustix::io::ReadWriteFlags;

use super::*;
use crate::memory::Pool;
use crate::ring::{BlockingLane, FileOp, FileRing, RingFile};

super::on_every_ring! {
    what_is_written_is_read
    many_operations_are_under_way_at_once
    what_lies_in_memory_is_over_within_the_next_wait
    what_is_in_the_cache_is_over_within_the_next_wait
    what_is_in_the_cache_in_part_is_read_whole
    a_read_past_the_end_is_an_error
    a_direct_read_of_a_file_that_ends_within_a_block_is_an_error
    an_error_is_told_with_the_buffer
    a_full_device_is_an_error
    what_blocks_runs_on_a_thread
    what_a_medium_takes_long_for_holds_up_nothing_apart
    looks_at_media_that_are_stuck_hold_up_no_io
    much_that_lies_in_memory_is_done_in_several_turns
    a_ring_is_dropped_while_a_file_is_written
    files_and_sockets_do_not_wait_for_each_other
}

/// A file in memory, and one on the disk that the sources are on.
fn temporaries() -> [(Arc<RingFile>, fs::File); 2] {
    let memory = rustix::fs::memfd_create("io-test", MemfdFlags::CLOEXEC).unwrap();
    let folder = env!("CARGO_MANIFEST_DIR");
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let disk = rustix::fs::open(folder, flags, Mode::RUSR).unwrap();
    [memory, disk].map(|fd| {
        let file = fd.try_clone().unwrap().into();
        (Arc::new(RingFile::new(fd)), file)
    })
}

fn filled(bytes: &[u8]) -> Buffer {
    Buffer::from_vec(bytes.to_vec())
}

fn write(file: &Arc<RingFile>, offset: u64, bytes: &[u8]) -> FileOp {
    FileOp::Write {
        file: Arc::clone(file),
        offset,
        buffer: filled(bytes),
        dsync: false,
        atomic: false,
    }
}

fn read(file: &Arc<RingFile>, offset: u64, len: usize) -> FileOp {
    FileOp::Read {
        file: Arc::clone(file),
        offset,
        buffer: filled(&vec![0xee; len]),
    }
}

#[track_caller]
fn done(ring: &mut AnyRing, token: u64) -> (u64, Option<Buffer>) {
    match next(ring) {
        Seen::File(at, Ok(value), buffer) if at == Token(token) => (value, buffer),
        other => panic!("{other:?}"),
    }
}

fn what_is_written_is_read(ring: &mut AnyRing) {
    for (fd, file) in temporaries() {
        let bytes = pattern(300_000);
        ring.file(Token(1), write(&fd, 4096, &bytes));
        let (written, buffer) = done(ring, 1);
        assert_eq!((written, buffer.unwrap().len()), (300_000, 300_000));
        for dsync in [false, true] {
            ring.file(
                Token(2),
                FileOp::Write {
                    file: Arc::clone(&fd),
                    offset: 0,
                    buffer: filled(&[3; 4096]),
                    dsync,
                    atomic: false,
                },
            );
            assert_eq!(done(ring, 2).0, 4096);
        }
        ring.file(
            Token(3),
            FileOp::DataSync {
                file: Arc::clone(&fd),
            },
        );
        let (_, none) = done(ring, 3);
        assert!(none.is_none());
        ring.file(Token(4), read(&fd, 4096, 300_000));
        let (len, buffer) = done(ring, 4);
        assert_eq!(len, 300_000);
        assert_eq!(buffer.unwrap().difference(&filled(&bytes)), None);
        let mut first = [0; 4096];
        file.read_exact_at(&mut first, 0).unwrap();
        assert_eq!(first, [3; 4096]);
    }
}

fn many_operations_are_under_way_at_once(ring: &mut AnyRing) {
    for (fd, file) in temporaries() {
        for at in 0..2000u64 {
            ring.file(Token(at), write(&fd, at * 512, &[at as u8; 512]));
        }
        let mut seen = vec![false; 2000];
        for _ in 0..2000 {
            match next(ring) {
                Seen::File(Token(at), Ok(512), Some(_)) => {
                    assert!(!std::mem::replace(&mut seen[at as usize], true));
                }
                other => panic!("{other:?}"),
            }
        }
        let mut last = [0; 512];
        file.read_exact_at(&mut last, 1999 * 512).unwrap();
        assert_eq!(last, [1999u16 as u8; 512]);
        quiet(ring);
    }
}

fn what_lies_in_memory_is_over_within_the_next_wait(ring: &mut AnyRing) {
    let [(fd, _), _] = temporaries();
    ring.file(Token(1), write(&fd, 0, &[1; 512]));
    ring.file(Token(2), read(&fd, 0, 512));
    ring.file(Token(3), FileOp::DataSync { file: fd });
    assert!(ring.next_event().is_none());
    ring.wait(Some(Duration::ZERO)).unwrap();
    for at in 1..=3 {
        let seen = ring.next_event().map(Seen::from);
        assert!(matches!(seen, Some(Seen::File(token, Ok(_), _)) if token == Token(at)));
    }
}

#[test]
fn a_device_whose_node_lies_in_memory_does_not() {
    let null = fs::File::open("/dev/null").unwrap();
    assert!(!RingFile::new(null.into()).is_in_memory());
    let [(memory, _), _] = temporaries();
    assert!(memory.is_in_memory());
}

/// A file on the disk with this in the cache; `None` where its file system does not tell whether a
/// read would wait.
fn cached(bytes: &[u8]) -> Option<(Arc<RingFile>, fs::File)> {
    let [_, (fd, file)] = temporaries();
    file.write_all_at(bytes, 0).unwrap();
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    let read = rustix::io::preadv2(&file, &mut into, 0, ReadWriteFlags::NOWAIT);
    read.is_ok().then_some((fd, file))
}

fn what_is_in_the_cache_is_over_within_the_next_wait(ring: &mut AnyRing) {
    let bytes = pattern(8192);
    let Some((fd, _file)) = cached(&bytes) else {
        return;
    };
    ring.file(Token(1), read(&fd, 4096, 4096));
    ring.wait(Some(Duration::ZERO)).unwrap();
    let Some(RingEvent::File { result, buffer, .. }) = ring.next_event() else {
        panic!("it is not over");
    };
    assert_eq!(result.unwrap(), 4096);
    assert_eq!(buffer.unwrap().difference(&filled(&bytes[4096..])), None);
}

fn what_is_in_the_cache_in_part_is_read_whole(ring: &mut AnyRing) {
    let bytes = pattern(256 << 10);
    let Some((fd, file)) = cached(&bytes) else {
        return;
    };
    // The second half is read from the disk.
    file.sync_all().unwrap();
    let half = Some(NonZeroU64::new(128 << 10).unwrap());
    rustix::fs::fadvise(&file, 128 << 10, half, Advice::DontNeed).unwrap();
    ring.file(Token(1), read(&fd, 0, bytes.len()));
    let (read, buffer) = done(ring, 1);
    assert_eq!(read, 256 << 10);
    assert_eq!(buffer.unwrap().difference(&filled(&bytes)), None);
}

fn a_read_past_the_end_is_an_error(ring: &mut AnyRing) {
    for (fd, file) in temporaries() {
        file.write_all_at(&[5; 700], 0).unwrap();
        for (token, offset, len) in [(1, 512, 1024), (2, 1 << 30, 10)] {
            ring.file(Token(token), read(&fd, offset, len));
            is_past_the_end(ring, token);
        }
        ring.file(Token(3), read(&fd, 512, 188));
        assert_eq!(done(ring, 3).0, 188);
    }
}

fn is_past_the_end(ring: &mut AnyRing, token: u64) {
    match next(ring) {
        Seen::File(ended, Err(error), Some(_)) => {
            assert_eq!(
                (ended, error.kind()),
                (Token(token), ErrorKind::UnexpectedEof)
            );
        }
        other => panic!("{other:?}"),
    }
}

fn a_direct_read_of_a_file_that_ends_within_a_block_is_an_error(ring: &mut AnyRing) {
    let path = std::env::temp_dir().join(format!("io-direct-{}-{ring:p}", std::process::id()));
    fs::write(&path, [5; 5000]).unwrap();
    let direct = fs::File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path);
    fs::remove_file(&path).unwrap();
    let Ok(direct) = direct else {
        return; // A file system without O_DIRECT.
    };
    let buffer = Pool::new(1 << 20).unwrap().buffer(8192).unwrap();
    buffer.copy_in(0, &[0xee; 8192]);
    let op = FileOp::Read {
        file: Arc::new(RingFile::new(direct.into())),
        offset: 0,
        buffer,
    };
    ring.file(Token(1), op);
    is_past_the_end(ring, 1);
}

fn an_error_is_told_with_the_buffer(ring: &mut AnyRing) {
    let file = Arc::new(RingFile::new(fs::File::open("/dev/null").unwrap().into()));
    ring.file(Token(1), write(&file, 0, &[1; 512]));
    match next(ring) {
        Seen::File(Token(1), Err(error), Some(buffer)) => {
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
            assert_eq!(buffer.len(), 512);
        }
        other => panic!("{other:?}"),
    }
}

fn a_full_device_is_an_error(ring: &mut AnyRing) {
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    ring.file(
        Token(1),
        write(&Arc::new(RingFile::new(full.into())), 0, &[1; 512]),
    );
    match next(ring) {
        Seen::File(Token(1), Err(error), Some(_)) => {
            assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        }
        other => panic!("{other:?}"),
    }
}

fn what_blocks_runs_on_a_thread(ring: &mut AnyRing) {
    let here = std::thread::current().id();
    let call = move || Ok(u64::from(std::thread::current().id() != here));
    ring.file(Token(1), FileOp::Blocking(Box::new(call)));
    assert_eq!(done(ring, 1).0, 1);
    let calls = (0..40).map(|at| {
        move || -> io::Result<u64> {
            std::thread::sleep(Duration::from_millis(2));
            Err(io::Error::from_raw_os_error(at))
        }
    });
    for (at, call) in calls.enumerate() {
        ring.file(Token(at as u64), FileOp::Blocking(Box::new(call)));
    }
    for _ in 0..40 {
        match next(ring) {
            Seen::File(Token(at), Err(error), None) => {
                assert_eq!(error.raw_os_error(), Some(at as i32));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn what_a_medium_takes_long_for_holds_up_nothing_apart(ring: &mut AnyRing) {
    let (release, until) = std::sync::mpsc::channel::<()>();
    let until = Arc::new(std::sync::Mutex::new(until));
    for at in 0..32 {
        let until = Arc::clone(&until);
        let stuck = move || {
            // Until the sender is gone.
            let _ = until.lock().unwrap().recv_timeout(LONG);
            Ok(0)
        };
        ring.file(Token(at), FileOp::Blocking(Box::new(stuck)));
    }
    let lanes = [
        BlockingLane::Persist,
        BlockingLane::Connect,
        BlockingLane::Watch,
    ];
    for (at, lane) in (100..).zip(lanes) {
        let call = Box::new(|| Ok(7));
        ring.file(Token(at), FileOp::Apart { lane, call });
        assert_eq!(done(ring, at).0, 7);
    }
    drop(release);
    for _ in 0..32 {
        assert!(matches!(next(ring), Seen::File(_, Ok(0), None)));
    }
}

fn looks_at_media_that_are_stuck_hold_up_no_io(ring: &mut AnyRing) {
    let (release, until) = std::sync::mpsc::channel::<()>();
    let until = Arc::new(std::sync::Mutex::new(until));
    for at in 0..32 {
        let until = Arc::clone(&until);
        let call = Box::new(move || {
            let _ = until.lock().unwrap().recv_timeout(LONG);
            Ok(0)
        });
        let lane = BlockingLane::Watch;
        ring.file(Token(at), FileOp::Apart { lane, call });
    }
    ring.file(Token(100), FileOp::Blocking(Box::new(|| Ok(7))));
    assert_eq!(done(ring, 100).0, 7);
    drop(release);
    for _ in 0..32 {
        assert!(matches!(next(ring), Seen::File(_, Ok(0), None)));
    }
}

fn much_that_lies_in_memory_is_done_in_several_turns(ring: &mut AnyRing) {
    let [(fd, _), _] = temporaries();
    let bytes = [1; 64 << 10];
    for (first, size, in_a_turn) in [(0, bytes.len(), 16), (1000, 512, 64)] {
        for at in first..first + 200 {
            ring.file(Token(at), write(&fd, 0, &bytes[..size]));
        }
        let mut turns = Vec::new();
        while turns.iter().sum::<usize>() < 200 {
            // What is left is not slept on.
            ring.wait(Some(LONG)).unwrap();
            let done = std::iter::from_fn(|| ring.next_event().map(Seen::from));
            turns.push(
                done.inspect(|seen| assert!(matches!(seen, Seen::File(_, Ok(_), _))))
                    .count(),
            );
        }
        assert_eq!(turns.len(), 200usize.div_ceil(in_a_turn), "{turns:?}");
    }
}

fn a_ring_is_dropped_while_a_file_is_written(ring: &mut AnyRing) {
    for (fd, _file) in temporaries() {
        let pool = Pool::new(64 << 20).unwrap();
        let mut dropped = open(ring.kind());
        for at in 0..200 {
            let op = FileOp::Write {
                file: Arc::clone(&fd),
                offset: at << 18,
                buffer: pool.buffer(256 << 10).unwrap(),
                dsync: false,
                atomic: false,
            };
            dropped.file(Token(at), op);
        }
        dropped.wait(Some(Duration::ZERO)).unwrap();
        drop(dropped);
        assert_eq!(pool.in_use(), 0);
        assert_eq!(Arc::strong_count(&fd), 1);
    }
}

fn files_and_sockets_do_not_wait_for_each_other(ring: &mut AnyRing) {
    use std::io::Write;
    let (socket, mut peer) = connect(ring);
    let slow = || {
        std::thread::sleep(SHORT * 3);
        Ok(0)
    };
    ring.file(Token(1), FileOp::Blocking(Box::new(slow)));
    ring.receive(socket, Token(2));
    ring.wait(Some(Duration::ZERO)).unwrap();
    peer.write_all(b"quick").unwrap();
    assert_eq!(received(ring, 2), b"quick");
    done(ring, 1);
}

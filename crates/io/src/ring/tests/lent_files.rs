//! Pages of files in memory, sent from where they lie.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags};

use super::*;
use crate::memory::{FileMap, LocalFileMap};
use crate::ring::RingFile;

super::on_every_ring! {
    what_a_file_holds_is_sent
    what_is_written_before_it_leaves_is_seen
    a_file_that_was_cut_ends_the_send_and_nothing_false_leaves
    a_file_that_is_cut_while_it_leaves_ends_the_send
    pages_outlive_everything_but_their_send
    what_is_punched_before_it_leaves_is_zeros_where_memory_is_full
    what_another_process_punched_is_asked_for_anew
}

const LEN: usize = 8 << 20;

/// A file that holds the pattern, and its map.
fn filled(len: usize) -> (File, LocalFileMap) {
    let fd = rustix::fs::memfd_create("io-test", MemfdFlags::CLOEXEC).unwrap();
    filled_at(fd, len)
}

fn filled_at(fd: OwnedFd, len: usize) -> (File, LocalFileMap) {
    let mut file = File::from(fd.try_clone().unwrap());
    file.write_all(&pattern(len)).unwrap();
    let fd = Arc::new(RingFile::new(fd));
    let map = FileMap::new(&fd, len as u64).unwrap();
    (file, LocalFileMap::new(map, fd))
}

/// A header, and all of the file.
fn batch(map: &LocalFileMap) -> Box<SendBatch> {
    let mut batch = batch_of(b"head");
    batch.buffer(map.buffer(0..map.end()).unwrap());
    batch.bytes(b"tail");
    batch
}

/// Waits for a send to fail so, and closes its socket.
#[track_caller]
fn faults(ring: &mut AnyRing, socket: SocketId) {
    match next(ring) {
        Seen::Sent(Token(1), batch, Err(error)) => {
            assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
            assert!(batch.is_empty());
        }
        other => panic!("{other:?}"),
    }
    ring.close(socket);
}

/// All that comes until the connection ends is the beginning of what was to be sent.
fn hears_the_beginning(mut peer: TcpStream, of: &[u8]) -> usize {
    let mut got = Vec::new();
    let _ = peer.read_to_end(&mut got);
    let all = [b"head", of].concat();
    assert!(all.starts_with(&got), "{} bytes", got.len());
    got.len()
}

fn what_a_file_holds_is_sent(ring: &mut AnyRing) {
    let ((_file, map), (socket, peer)) = (filled(LEN), connect(ring));
    ring.send(socket, Token(1), batch(&map));
    let reader = std::thread::spawn(move || {
        let mut got = vec![0; LEN + 8];
        (&peer).read_exact(&mut got).unwrap();
        got
    });
    sent(ring, 1);
    assert!(reader.join().unwrap() == [b"head", &*pattern(LEN), b"tail"].concat());
}

fn what_is_written_before_it_leaves_is_seen(ring: &mut AnyRing) {
    let ((file, map), (socket, mut peer)) = (filled(4096), connect(ring));
    let batch = batch(&map);
    file.write_all_at(&[7; 4096], 0).unwrap();
    ring.send(socket, Token(1), batch);
    sent(ring, 1);
    let mut got = [0; 4104];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(got[4..4100], [7; 4096]);
}

fn a_file_that_was_cut_ends_the_send_and_nothing_false_leaves(ring: &mut AnyRing) {
    let ((file, map), (socket, peer)) = (filled(LEN), connect(ring));
    let batch = batch(&map);
    file.set_len(16 << 10).unwrap();
    assert_eq!(map.file_end(), 16 << 10);
    ring.send(socket, Token(1), batch);
    faults(ring, socket);
    let heard = hears_the_beginning(peer, &pattern(16 << 10));
    assert!(heard <= 4 + (16 << 10), "{heard}");
    assert!(map.buffer(0..4096).is_none(), "nothing is lent any more");
}

fn a_file_that_is_cut_while_it_leaves_ends_the_send(ring: &mut AnyRing) {
    let ((file, map), (socket, peer)) = (filled(2 * LEN), connect(ring));
    ring.send(socket, Token(1), batch(&map));
    quiet(ring);
    file.set_len(1 << 16).unwrap();
    let all = pattern(2 * LEN);
    let reader = std::thread::spawn(move || hears_the_beginning(peer, &all));
    faults(ring, socket);
    let heard = reader.join().unwrap();
    assert!((1 << 16..2 * LEN).contains(&heard), "{heard}");
}

fn pages_outlive_everything_but_their_send(ring: &mut AnyRing) {
    let ((file, mut map), (socket, mut peer)) = (filled(2 * LEN), connect(ring));
    ring.send(socket, Token(1), batch(&map));
    quiet(ring);
    let recall = map.recall();
    drop((file, map));
    assert!(!recall.is_over());
    let mut got = vec![0; 2 * LEN + 8];
    let reader = std::thread::spawn(move || {
        peer.read_exact(&mut got).unwrap();
        got
    });
    sent(ring, 1);
    assert!(recall.is_over());
    assert!(reader.join().unwrap() == [b"head", &*pattern(2 * LEN), b"tail"].concat());
}

/// A file system in memory of so many bytes, at no path; `None` where we may not mount.
fn small_tmpfs(bytes: &std::ffi::CStr) -> Option<OwnedFd> {
    const SET_STRING: libc::c_int = 1;
    const CREATE: libc::c_int = 6;
    let (kind, size, none) = (c"tmpfs", c"size", std::ptr::null::<libc::c_char>());
    // SAFETY: system calls that take strings of ours and numbers, and give new descriptors.
    unsafe {
        let context = libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1);
        let context = (context >= 0).then(|| OwnedFd::from_raw_fd(context as i32))?;
        let (at, size) = (context.as_raw_fd(), size.as_ptr());
        libc::syscall(libc::SYS_fsconfig, at, SET_STRING, size, bytes.as_ptr(), 0);
        libc::syscall(libc::SYS_fsconfig, at, CREATE, none, none, 0);
        let mount = libc::syscall(libc::SYS_fsmount, at, 1, 0);
        (mount >= 0).then(|| OwnedFd::from_raw_fd(mount as i32))
    }
}

fn create(folder: &OwnedFd, name: &str) -> OwnedFd {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR).unwrap()
}

fn punch(file: &File, start: u64, len: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, start, len).unwrap();
}

/// Takes all that is left of a file system.
fn fill(folder: &OwnedFd) {
    let mut rest = File::from(create(folder, "rest"));
    let error = std::iter::repeat_with(|| rest.write_all(&[1; 4096]))
        .find_map(Result::err)
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
}

fn what_is_punched_before_it_leaves_is_zeros_where_memory_is_full(ring: &mut AnyRing) {
    const SMALL: usize = 64 << 10;
    let Some(disk) = small_tmpfs(c"256k") else {
        return eprintln!("SKIPPED: no file system can be mounted here");
    };
    let (file, map) = filled_at(create(&disk, "lent"), SMALL);
    let (socket, mut peer) = connect(ring);
    let mut batch = batch(&map);
    let again = map.buffer(512..4096).unwrap();
    batch.buffer(again);
    punch(&file, 8 << 10, 8 << 10);
    fill(&disk);
    let blocks = file.metadata().unwrap().blocks();
    ring.send(socket, Token(1), batch);
    sent(ring, 1);
    let mut expected = pattern(SMALL);
    expected[8 << 10..16 << 10].fill(0);
    let mut got = vec![0; 4 + SMALL + 4 + 3584];
    peer.read_exact(&mut got).unwrap();
    assert!(got == [b"head", &*expected, b"tail", &pattern(4096)[512..]].concat());
    assert_eq!(
        file.metadata().unwrap().blocks(),
        blocks,
        "a hole stays one"
    );
    assert!(map.buffer(0..8 << 10).is_some(), "the rest is lent");
}

/// Nothing has told the map.
fn what_another_process_punched_is_asked_for_anew(ring: &mut AnyRing) {
    let Some(disk) = small_tmpfs(c"256k") else {
        return eprintln!("SKIPPED: no file system can be mounted here");
    };
    let (file, map) = filled_at(create(&disk, "lent"), 16 << 10);
    let ((socket, mut peer), batch) = (connect(ring), batch(&map));
    punch(&file, 0, 4096);
    fill(&disk);
    ring.send(socket, Token(1), batch);
    sent(ring, 1);
    let mut got = vec![0; 8 + (16 << 10)];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(got[4..4100], [0; 4096]);
    assert!(map.buffer(0..4096).is_none(), "it is a hole by now");
}

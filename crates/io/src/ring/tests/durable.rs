//! Durability, as the kernel's page cache tells of it: what is dirty would be lost by a power cut.

use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use super::*;
use crate::ring::{FileOp, FileRing, RingFile};

super::on_every_ring! {
    a_durable_write_leaves_nothing_dirty
    a_data_sync_leaves_nothing_dirty
}

/// A file that nobody else sees, on the disk that the build is on; `None` where that or the kernel
/// cannot tell dirty pages from clean ones (before Linux 6.5; file systems in memory).
fn on_disk() -> Option<Arc<RingFile>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR).ok()?;
    rustix::io::pwrite(&file, &[1; 4096], 0).ok()?;
    let written = dirty_pages(&file)?;
    rustix::fs::fdatasync(&file).ok()?;
    let tells = written > 0 && dirty_pages(&file)? == 0;
    tells.then(|| Arc::new(RingFile::new(file)))
}

/// Pages of a file that are not on the disk, or on their way there.
fn dirty_pages(file: &OwnedFd) -> Option<u64> {
    const CACHESTAT: libc::c_long = 451;
    let (range, mut told) = ([0u64; 2], [0u64; 5]);
    // SAFETY: of the sizes that cachestat(2) has: offset and length (0: all of it), and five
    // counts, of which the second are dirty pages and the third those being written.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut told,
            0,
        )
    };
    (result == 0).then(|| told[1] + told[2])
}

fn write(file: &Arc<RingFile>, dsync: bool) -> FileOp {
    FileOp::Write {
        file: Arc::clone(file),
        offset: 0,
        buffer: Buffer::from_vec(vec![3; 65536]),
        dsync,
        atomic: false,
    }
}

fn done(ring: &mut AnyRing, op: FileOp) {
    ring.file(Token(1), op);
    match next(ring) {
        Seen::File(_, Ok(_), _) => {}
        other => panic!("{other:?}"),
    }
}

fn a_durable_write_leaves_nothing_dirty(ring: &mut AnyRing) {
    let Some(file) = on_disk() else {
        return eprintln!("SKIPPED: dirty pages cannot be told here");
    };
    done(ring, write(&file, true));
    assert_eq!(dirty_pages(&file), Some(0));
}

fn a_data_sync_leaves_nothing_dirty(ring: &mut AnyRing) {
    let Some(file) = on_disk() else {
        return eprintln!("SKIPPED: dirty pages cannot be told here");
    };
    done(ring, write(&file, false));
    let sync = FileOp::DataSync {
        file: Arc::clone(&file),
    };
    done(ring, sync);
    assert_eq!(dirty_pages(&file), Some(0));
}

//! What statx tells, and what follows from it.

use super::*;

/// What the kernel tells of a file that there is, to be changed.
fn some_facts() -> Statx {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    facts(&OwnedFd::from(file)).unwrap()
}

fn with_atomic(shortest: u32, longest: u32, segments: u32) -> Statx {
    let mut facts = some_facts();
    facts.stx_mask |= WRITE_ATOMIC.bits();
    facts.stx_atomic_write_unit_min = shortest;
    facts.stx_atomic_write_unit_max = longest;
    facts.stx_atomic_write_segments_max = segments;
    facts
}

fn limits(facts: &Statx, block_size: u32) -> Option<(u32, u32, u32)> {
    let atomic = atomic(facts, BlockSize::new(block_size).unwrap())?;
    Some((atomic.max_blocks, atomic.alignment, atomic.granularity))
}

#[test]
fn atomic_writes_are_the_powers_of_two_that_the_kernel_takes() {
    for (facts, block_size, expected) in [
        (with_atomic(4096, 65536, 1), 4096, Some((16, 16, 8))),
        (with_atomic(4096, 4096, 1), 512, Some((8, 8, 8))),
        (with_atomic(512, 16384, 1), 512, Some((32, 32, 16))),
        (with_atomic(512, 4096, 1), 4096, Some((1, 1, 1))),
        (with_atomic(512, 2048, 1), 4096, None),
        (with_atomic(0, 0, 0), 512, None),
        (with_atomic(512, 4096, 0), 512, None),
    ] {
        assert_eq!(limits(&facts, block_size), expected);
    }
    let mut silent = with_atomic(4096, 65536, 1);
    silent.stx_mask &= !WRITE_ATOMIC.bits();
    assert_eq!(limits(&silent, 4096), None);
}

#[test]
fn every_length_that_is_told_is_a_power_of_two_at_its_natural_alignment() {
    for shortest in [512, 4096, 16384] {
        for longest in [4096, 16384, 65536, 262_144] {
            let Some((max, alignment, granularity)) =
                limits(&with_atomic(shortest, longest, 1), 512)
            else {
                continue;
            };
            for length in (granularity..=max).step_by(granularity as usize) {
                assert!(length.is_power_of_two() && alignment % length == 0);
                assert!((shortest..=longest).contains(&(length * 512)) || shortest > longest);
            }
        }
    }
}

#[test]
fn direct_alignment_is_what_the_file_system_says_or_a_page() {
    let told = |memory, offset| {
        let mut facts = some_facts();
        facts.stx_mask |= DIRECT_ALIGNMENT.bits();
        (facts.stx_dio_mem_align, facts.stx_dio_offset_align) = (memory, offset);
        Direct::of(&facts).map(|direct| (direct.memory, direct.offset))
    };
    assert!(matches!(told(4, 512), Ok((4, 512))));
    assert!(matches!(told(0, 0), Err(VolumeError::NoDirect)));
    let mut silent = some_facts();
    silent.stx_mask &= !DIRECT_ALIGNMENT.bits();
    let direct = Direct::of(&silent).unwrap();
    assert_eq!((direct.memory, direct.offset), (4096, 4096));
}

#[test]
fn blocks_are_never_smaller_than_what_is_written_at_once() {
    let asked = |asked, offset, lasting_block_size| {
        let options = FileOptions {
            block_size: asked,
            lasting_block_size,
            ..FileOptions::default()
        };
        let direct = Direct { memory: 4, offset };
        block_size(&options, Some(&direct)).map(BlockSize::bytes)
    };
    for lasting in [false, true] {
        assert!(matches!(asked(None, 512, lasting), Ok(512)));
        assert!(matches!(asked(Some(4096), 512, lasting), Ok(4096)));
        assert!(matches!(
            asked(Some(16384), 16384, lasting),
            Err(VolumeError::BlockSize { bytes: 16384 })
        ));
    }
    assert!(matches!(asked(None, 4096, false), Ok(4096)));
    for refused in [asked(None, 4096, true), asked(Some(512), 4096, false)] {
        let error = refused.unwrap_err();
        assert!(matches!(
            error,
            VolumeError::Granularity {
                asked: 512,
                least: 4096
            }
        ));
        assert!(error.to_string().contains("--block-size 4096"));
    }
}

/// A folder that goes when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lunar-block-open-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn sized(&self, size: u64) -> FileOptions {
        FileOptions {
            path: self.0.join("disk"),
            size: Some(size),
            ..FileOptions::default()
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fails(_: &OwnedFd) -> rustix::io::Result<()> {
    Err(Errno::IO)
}

#[test]
fn file_that_cannot_be_made_durable_is_what_it_was() {
    let folder = Folder::new("durable");
    let options = folder.sized(8192);
    open_with(&options, fails).unwrap_err();
    assert!(!options.path.exists());
    std::fs::write(&options.path, [7; 4096]).unwrap();
    open_with(&options, fails).unwrap_err();
    assert_eq!(std::fs::read(&options.path).unwrap(), [7; 4096]);
}

/// What a copy has left in the page cache is made durable before hosts are told that there is none.
#[test]
fn what_is_in_the_cache_already_is_synced_where_there_is_to_be_none() {
    let folder = Folder::new("cache");
    let path = folder.0.join("disk");
    std::fs::write(&path, [7; 4096]).unwrap();
    let options = |sync, read_only| FileOptions {
        path: path.clone(),
        sync,
        read_only,
        ..FileOptions::default()
    };
    let is_synced = |options| {
        let is_asked = std::cell::Cell::new(false);
        let syncs = |_: &OwnedFd| {
            is_asked.set(true);
            Ok(())
        };
        // Another test that starts a program meanwhile has all locks twice for a moment.
        while open_with(&options, syncs).is_err() {}
        is_asked.get()
    };
    assert!(is_synced(options(true, false)));
    assert!(!is_synced(options(false, false)));
    assert!(!is_synced(options(true, true)));
}

#[test]
fn file_that_is_being_created_is_undone_once_it_is_there() {
    let folder = Folder::new("being-created");
    let log = UndoLog::default();
    let options = FileOptions {
        undo: Some(log.clone()),
        ..folder.sized(8192)
    };
    std::thread::scope(|scope| {
        let meanwhile = |_: &OwnedFd| {
            let undo = || drop(log.undo());
            let thread = scope.spawn(undo);
            let soon = std::time::Instant::now() + std::time::Duration::from_millis(100);
            while !thread.is_finished() && std::time::Instant::now() < soon {
                std::thread::yield_now();
            }
            Ok(())
        };
        open_with(&options, meanwhile).unwrap();
    });
    assert!(!options.path.exists());
}

#[test]
fn file_that_another_one_has_replaced_is_not_removed() {
    let folder = Folder::new("replaced");
    let options = folder.sized(8192);
    let replaces = |_: &OwnedFd| {
        let other = folder.0.join("other");
        std::fs::write(&other, b"other").unwrap();
        std::fs::rename(&other, &options.path).unwrap();
        Err(Errno::IO)
    };
    open_with(&options, replaces).unwrap_err();
    assert_eq!(std::fs::read(&options.path).unwrap(), b"other");
}

#[test]
fn file_that_is_refused_unchanged_keeps_its_time() {
    let folder = Folder::new("time");
    let options = FileOptions {
        block_size: Some(1024),
        ..folder.sized(8192)
    };
    std::fs::write(&options.path, [7; 4096]).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let file = std::fs::File::options().write(true).open(&options.path);
    file.unwrap().set_modified(time).unwrap();
    open(&options).unwrap_err();
    let found = std::fs::metadata(&options.path).unwrap();
    assert_eq!((found.len(), found.modified().unwrap()), (4096, time));
}

#[test]
fn file_that_is_opened_to_be_written_keeps_its_time_until_it_is() {
    let folder = Folder::new("opened");
    let options = folder.sized(4096);
    std::fs::write(&options.path, [7; 4096]).unwrap();
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let file = std::fs::File::options().write(true).open(&options.path);
    file.unwrap().set_modified(time).unwrap();
    open(&options).unwrap();
    let found = std::fs::metadata(&options.path).unwrap();
    assert_eq!(found.modified().unwrap(), time);
}

//! A source or a destination that others change during a copy, or before it is resumed; and what a
//! copy that cannot begin leaves behind.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use scsi::medium::MediumError;

use crate::open::REPLACEMENT;
use crate::open::tests::{self as open_tests, Folder};
use crate::pair::{
    self, CopyOptions, CopyProgress, PairError, PairFailure, PairOptions, PairSide, VolumeProblem,
};

const LEN: u64 = 4 << 20;
const LEFT: u64 = 1 << 20;

fn bytes() -> Vec<u8> {
    (0..LEN).map(|at| (at >> 9) as u8 | 1).collect()
}

/// As if nobody had written to it since 1970.
fn fill(source: &Path) {
    fs::write(source, bytes()).unwrap();
    let file = fs::File::options().write(true).open(source);
    file.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
}

fn shorten(source: &Path) {
    let file = fs::File::options().write(true).open(source);
    file.unwrap().set_len(LEFT).unwrap();
}

const RESUME: CopyOptions = CopyOptions {
    resume: true,
    verify: false,
    skip_unreadable: false,
};

fn options(folder: &Folder) -> PairOptions {
    let file = |name| format!("file:{}/{name}", folder.0.display());
    PairOptions {
        a: file("a").parse().unwrap(),
        b: file("b").parse().unwrap(),
        depth: 1,
        open: open_tests::options(),
        state_dir: Some(folder.0.join("state")),
        timeout: REPLACEMENT,
    }
}

#[test]
fn a_source_that_others_shorten_is_not_copied() {
    let folder = Folder::new();
    let (source, data) = (folder.0.join("a"), bytes());
    fill(&source);
    let options = options(&folder);
    let mut watch = |_: &_| {
        shorten(&source);
        true
    };
    let copied = pair::copy(&options, CopyOptions::default(), &mut watch).unwrap();
    let (at, error) = (Some(LEFT), VolumeProblem::Medium(MediumError::Gone));
    let side = PairSide::A;
    assert_eq!(copied.failure, Some(PairFailure { side, at, error }));
    assert_eq!(copied.durable, LEFT);
    assert!(copied.changed && !copied.resumable);
    let refused = pair::copy(&options, RESUME, &mut |_| true).unwrap_err();
    assert!(
        refused.to_string().contains("the source has changed"),
        "{refused}"
    );

    // As it was, it is copied on from there.
    fill(&source);
    let copied = pair::copy(&options, RESUME, &mut |_| true).unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert!(fs::read(folder.0.join("b")).unwrap() == data);
}

#[test]
fn what_others_cut_off_is_not_skipped_as_unreadable() {
    let folder = Folder::new();
    let (source, data) = (folder.0.join("a"), bytes());
    fill(&source);
    let options = options(&folder);
    let mut watch = |progress: &CopyProgress| {
        if progress.done() > 0 {
            shorten(&source);
        }
        true
    };
    let skipping = CopyOptions {
        skip_unreadable: true,
        ..CopyOptions::default()
    };
    let copied = pair::copy(&options, skipping, &mut watch).unwrap();
    let (at, error) = (Some(LEFT), VolumeProblem::Medium(MediumError::Gone));
    let side = PairSide::A;
    assert_eq!(copied.failure, Some(PairFailure { side, at, error }));
    assert_eq!(copied.durable, LEFT);

    fill(&source);
    let copied = pair::copy(&options, RESUME, &mut |_| true).unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert!(fs::read(folder.0.join("b")).unwrap() == data);
}

/// The copy itself makes the file longer again, so that its length does not tell what is left.
#[test]
fn nothing_of_a_destination_that_others_shorten_is_known() {
    let folder = Folder::new();
    let (target, data) = (folder.0.join("b"), bytes());
    fill(&folder.0.join("a"));
    let options = options(&folder);
    let mut cut = false;
    let mut watch = |progress: &CopyProgress| {
        if progress.done() >= 3 << 20 && !std::mem::replace(&mut cut, true) {
            shorten(&target);
        }
        true
    };
    let copied = pair::copy(&options, CopyOptions::default(), &mut watch).unwrap();
    let (at, error) = (Some(LEFT), VolumeProblem::Medium(MediumError::Gone));
    let side = PairSide::B;
    assert_eq!(copied.failure, Some(PairFailure { side, at, error }));
    assert_eq!((copied.durable, copied.resumable), (0, false));
    let file = fs::File::options().write(true).open(&target);
    file.unwrap().set_len(LEN).unwrap();
    let refused = pair::copy(&options, RESUME, &mut |_| true).unwrap_err();
    let said = "no interrupted copy";
    assert!(refused.to_string().contains(said), "{refused}");

    let copied = pair::copy(&options, CopyOptions::default(), &mut |_| true).unwrap();
    assert!(copied.is_complete(), "{copied:?}");
    assert!(fs::read(target).unwrap() == data);
}

/// Between two flushes, and it is as long as before at the end.
#[test]
fn a_destination_that_was_shorter_for_a_moment_is_not_called_complete() {
    let folder = Folder::new();
    let target = folder.0.join("b");
    fill(&folder.0.join("a"));
    let mut cut = false;
    let mut watch = |progress: &CopyProgress| {
        if progress.done() >= 15 << 18 && !std::mem::replace(&mut cut, true) {
            shorten(&target);
        }
        true
    };
    let copied = pair::copy(&options(&folder), CopyOptions::default(), &mut watch).unwrap();
    assert!(!copied.is_complete() && !copied.resumable, "{copied:?}");
    assert_eq!(
        copied.failure.map(|failure| failure.side),
        Some(PairSide::B)
    );
}

#[test]
fn a_destination_that_has_lost_its_name_is_no_copy() {
    for replaced in [false, true] {
        let folder = Folder::new();
        let target = folder.0.join("b");
        fill(&folder.0.join("a"));
        let options = options(&folder);
        let mut cut = false;
        let mut watch = |progress: &CopyProgress| {
            if progress.done() >= 1 << 20 && !std::mem::replace(&mut cut, true) {
                fs::remove_file(&target).unwrap();
                if replaced {
                    fs::write(&target, b"another").unwrap();
                }
            }
            true
        };
        let copied = pair::copy(&options, CopyOptions::default(), &mut watch).unwrap();
        let (side, at, error) = (PairSide::B, None, VolumeProblem::Removed);
        assert_eq!(copied.failure, Some(PairFailure { side, at, error }));
        assert!(!copied.is_complete() && !copied.resumable, "{copied:?}");
    }
}

#[test]
fn who_stops_it_before_it_begins_is_heard() {
    let folder = Folder::new();
    fill(&folder.0.join("a"));
    let mut looks = 0;
    let mut watch = |_: &_| {
        looks += 1;
        looks > 1
    };
    let copied = pair::copy(&options(&folder), CopyOptions::default(), &mut watch).unwrap();
    assert!(!copied.is_complete() && copied.resumable, "{copied:?}");
}

/// After `kill -9` or a crash the record is a little older or newer than our last write.
#[test]
fn a_destination_of_a_copy_that_was_killed_may_be_little_newer_than_the_record() {
    const HOUR: i64 = 3600;
    for (seconds, is_taken) in [
        (0, true),
        (3, true),
        (-30, true),
        (HOUR, false),
        (-HOUR, false),
    ] {
        let folder = Folder::new();
        fill(&folder.0.join("a"));
        let options = options(&folder);
        let mut watch = |progress: &CopyProgress| progress.done() < 1 << 20;
        let copied = pair::copy(&options, CopyOptions::default(), &mut watch).unwrap();
        assert!(copied.resumable && copied.durable > 0, "{copied:?}");

        let files = fs::read_dir(folder.0.join("state")).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        let [record] = &files[..] else {
            panic!("not one record: {files:?}");
        };
        let text = fs::read_to_string(record).unwrap();
        assert!(text.contains("\nrun ended\n"), "{text}");
        fs::write(record, text.replace("run ended", "run going on")).unwrap();
        let b = fs::File::options().write(true).open(folder.0.join("b"));
        let b = b.unwrap();
        let then = b.metadata().unwrap().modified().unwrap();
        let by = Duration::from_secs(seconds.unsigned_abs());
        let now = if seconds > 0 { then + by } else { then - by };
        b.set_modified(now).unwrap();
        drop(b);

        match pair::copy(&options, RESUME, &mut |_| true) {
            Ok(copied) => assert!(is_taken && copied.is_complete(), "{seconds} s: {copied:?}"),
            Err(error) => {
                let said = error.to_string();
                let is_why = said.contains("B may have been written to since");
                assert!(!is_taken && is_why, "{seconds} s: {said}");
            }
        }
    }
}

/// Copies the file `a` to `b`, in which `{}` stands for the folder.
fn refused(folder: &Folder, b: &str) -> PairError {
    let place = folder.0.display().to_string();
    let options = PairOptions {
        b: b.replace("{}", &place).parse().unwrap(),
        state_dir: None,
        ..options(folder)
    };
    pair::copy(&options, CopyOptions::default(), &mut |_| true).unwrap_err()
}

#[test]
fn a_destination_that_is_too_small_is_what_it_was() {
    let folder = Folder::new();
    fs::write(folder.0.join("a"), [1; 8 << 10]).unwrap();
    fs::write(folder.0.join("b"), [2; 512]).unwrap();
    let error = refused(&folder, "file:{}/b?size=4k");
    assert!(matches!(error, PairError::Misfit(_)), "{error}");
    assert_eq!(fs::read(folder.0.join("b")).unwrap(), [2; 512]);
}

#[test]
fn parts_of_a_destination_that_cannot_be_opened_are_not_left_behind() {
    let folder = Folder::new();
    fs::write(folder.0.join("a"), [1; 8 << 10]).unwrap();
    refused(&folder, "concat(file:{}/b?size=8k,file:{}/none)");
    assert!(!folder.0.join("b").exists());
}

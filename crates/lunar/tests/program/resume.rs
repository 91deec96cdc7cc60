//! A copy that was interrupted: what it goes on from, and what it refuses to go on with.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::copy::{image, lunar_in, refused};
use crate::rig::folder;

#[test]
fn only_what_was_interrupted_is_resumed() {
    let folder = folder("copy-nothing-to-resume");
    image(&folder.join("a"));
    let line = refused(&folder, 1, "file:a file:b --resume");
    assert!(line.contains("omit --resume"), "{line}");
    assert!(!folder.join("b").exists());
    let line = refused(&folder, 1, "file:a ram:4M --resume");
    assert!(line.contains("empty after a restart"), "{line}");
}

#[test]
fn a_failure_says_where_and_the_copy_goes_on_from_there() {
    let folder = folder("copy-failed");
    image(&folder.join("a"));
    let ran = lunar_in(&folder, "copy fault:read=eio@1M(file:a) file:b --depth 1");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let said = "fault:read=eio@1M(file:a): unrecovered read error at byte 3145728; the first 3.0 \
        MiB of 4.0 MiB are durable at B, the rest is not; continue with: lunar copy --resume \
        'fault:read=eio@1M(file:a)' file:b\n";
    assert_eq!(ran.err, format!("lunar: {said}"));
    let ran = lunar_in(&folder, "copy --resume file:a file:b");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.out.ends_with("0 B of holes, 3.0 MiB copied before\n"),
        "{}",
        ran.out
    );
    let [a, b] = ["a", "b"].map(|name| fs::read(folder.join(name)).unwrap());
    assert!(a == b);
}

#[test]
fn another_file_in_its_place_is_not_gone_on_with() {
    let folder = cut_off("copy-replaced", "file:a");
    fs::rename(folder.join("b"), folder.join("c")).unwrap();
    File::create(folder.join("b"))
        .unwrap()
        .set_len(4 << 20)
        .unwrap();
    let line = refused(&folder, 1, "file:a file:b --resume");
    assert!(line.contains("a different volume now"), "{line}");
    let ran = lunar_in(&folder, "copy file:a file:c --resume");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

/// Of a copy of that address onto `b` that was cut off in its middle.
fn cut_off(name: &str, a: &str) -> PathBuf {
    let folder = folder(name);
    image(&folder.join("a"));
    refused(
        &folder,
        1,
        &format!("fault:read=eio@1M({a}) file:b --depth 1"),
    );
    folder
}

#[test]
fn a_source_that_was_written_to_is_not_gone_on_with() {
    let folder = cut_off("copy-changed", "file:a");
    let a = File::options().write(true).open(folder.join("a")).unwrap();
    a.write_all_at(b"new", 7).unwrap();
    let line = refused(&folder, 1, "file:a file:b --resume");
    assert!(line.contains("the source has changed since"), "{line}");
    let ran = lunar_in(&folder, "copy file:a file:b");
    ran.is_silent_success();
}

#[test]
fn a_destination_that_was_written_to_is_not_gone_on_with() {
    let folder = cut_off("copy-overwritten", "file:a");
    let b = File::options().write(true).open(folder.join("b")).unwrap();
    b.write_all_at(b"new", (1 << 20) + 7).unwrap();
    let line = refused(&folder, 1, "file:a file:b --resume");
    assert!(line.contains("B may have been written to since"), "{line}");
}

/// Opening it changes when it was written to last, which is not the work of another program.
#[test]
fn a_destination_that_is_extended_to_go_on_is_gone_on_with() {
    let folder = cut_off("copy-extended", "file:a");
    let ran = lunar_in(&folder, "copy file:a file:b?size=8M --resume");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(folder.join("b").metadata().unwrap().len(), 8 << 20);
}

#[test]
fn a_damaged_record_is_named() {
    let folder = cut_off("copy-damaged", "file:a");
    let state = fs::read_dir(folder.join("state")).unwrap();
    let record = state.last().unwrap().unwrap().path();
    let text = fs::read(&record).unwrap();
    for damaged in [&text[..20], &text[..text.len() - 3], &[0xff; 64], b""] {
        fs::write(&record, damaged).unwrap();
        let line = refused(&folder, 1, "file:a file:b --resume");
        let words = format!("{}, is damaged", record.display());
        assert!(line.contains(&words), "{line}");
    }
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    let line = refused(&folder, 1, "file:a file:b --resume");
    let words = format!("{}, cannot be read", record.display());
    assert!(line.contains(&words), "{line}");
}

/// Its length is no reason to write to it.
#[test]
fn a_source_whose_size_is_given_is_gone_on_with() {
    let folder = cut_off("copy-sized", "file:a?size=4M");
    let ran = lunar_in(&folder, "copy file:a?size=4M file:b --resume");
    ran.is_silent_success();
}

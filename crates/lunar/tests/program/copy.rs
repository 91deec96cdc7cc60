//! `lunar copy` and `lunar verify` between files: what a user sees, and what is in them afterwards.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{LUNAR, Ran, Run, folder, lunar};

/// A command that is run in a folder, and keeps its state there.
fn within(folder: &Path, mut command: Command) -> Command {
    command
        .current_dir(folder)
        .env("STATE_DIRECTORY", folder.join("state"));
    command
}

/// Runs it in a folder.
pub(crate) fn lunar_in(folder: &Path, line: &str) -> Ran {
    within(folder, lunar(line)).ran()
}

/// Runs `lunar copy` in a folder with what cannot work, and gives the line it answers with.
#[track_caller]
pub(crate) fn refused(folder: &Path, code: i32, words: &str) -> String {
    within(folder, lunar(&format!("copy {words}"))).refused(code)
}

/// The same for a shell script whose `$0` is the program.
fn script(folder: &Path, script: &str) -> Ran {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, LUNAR]);
    within(folder, shell).ran()
}

/// A file of 4 MiB with data in its second and its last.
pub(crate) fn image(path: &Path) {
    let file = File::create(path).unwrap();
    file.set_len(4 << 20).unwrap();
    let data: Vec<u8> = (0..1_u32 << 20).map(|at| (at >> 3) as u8 | 1).collect();
    for place in [1, 3] {
        file.write_all_at(&data, place << 20).unwrap();
    }
}

#[test]
fn a_missing_file_is_created_with_the_same_holes() {
    let folder = folder("copy-created");
    image(&folder.join("a"));
    let ran = lunar_in(&folder, "copy file:a file:b");
    ran.is_silent_success();
    assert!(ran.out.starts_with("copied 4.0 MiB in "), "{}", ran.out);
    assert!(ran.out.ends_with(", 2.0 MiB of holes\n"), "{}", ran.out);
    let [a, b] = ["a", "b"].map(|name| folder.join(name));
    assert!(fs::read(&a).unwrap() == fs::read(&b).unwrap());
    assert!(fs::metadata(&b).unwrap().blocks() <= fs::metadata(&a).unwrap().blocks());
    let left = fs::read_dir(folder.join("state")).unwrap().count();
    assert_eq!(left, 0, "no record of a copy that is complete");
}

#[test]
fn a_copy_that_is_read_back_says_so() {
    let folder = folder("copy-verify");
    image(&folder.join("a"));
    let ran = lunar_in(&folder, "copy --verify file:a file:b");
    ran.is_silent_success();
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.out);
    assert!(lines[1].starts_with("the same: 4.0 MiB in "), "{}", ran.out);
    let ran = lunar_in(&folder, "copy --verify --json file:a ram:4M");
    let report = ran.json();
    assert_eq!(report["verified"]["identical"], true);
    let ran = lunar_in(&folder, "copy --json file:a file:b");
    let report = ran.json();
    assert_eq!(report.get("verified"), Some(&Value::Null));
}

#[test]
fn a_copy_that_cannot_be_read_back_is_no_success() {
    let folder = folder("copy-lost");
    image(&folder.join("a"));
    let ran = lunar_in(&folder, "copy --verify file:a null:4M");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.starts_with("copied 4.0 MiB"), "{}", ran.out);
    assert!(
        ran.err
            .contains("all of A was copied, but verification failed: "),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("the first at byte 1048576"), "{}", ran.err);
    let ran = lunar_in(&folder, "copy --verify file:a fault:read=gone(ram:4M)");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("not ready at byte"), "{}", ran.err);
}

#[test]
fn volumes_out_of_volumes_have_room_to_put_their_parts_together() {
    let folder = folder("copy-nested");
    let data: Vec<u8> = (0..4_u32 << 20).map(|at| (at >> 9) as u8 | 1).collect();
    fs::write(folder.join("a"), data).unwrap();
    // With the delay all pieces are in flight at once.
    let inner = "stripe:64k(delay:20ms(file:p?size=1M),file:q?size=1M)";
    let outer = format!("stripe:16k({inner},file:r?size=2M)");
    for line in [
        format!("copy file:a {outer}"),
        format!("verify file:a {outer}"),
        format!("verify {outer} file:a"),
        format!("copy {outer} file:back"),
    ] {
        let ran = lunar_in(&folder, &format!("{line} --depth 8"));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{line}");
    }
    let [a, back] = ["a", "back"].map(|name| fs::read(folder.join(name)).unwrap());
    assert!(a == back);
}

#[test]
fn what_was_counted_is_told_at_the_end() {
    let folder = folder("copy-stats");
    image(&folder.join("a"));
    for verb in ["copy", "verify"] {
        let ran = lunar_in(&folder, &format!("{verb} stats(file:a) file:b"));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let reads = "stats(file:a): reads: 8, 0 of them failed, 2097152 bytes; half within";
        assert!(ran.err.contains(reads), "{verb}: {}", ran.err);
    }
}

/// 192 MiB of addresses are less than what a copy of this depth reserves.
#[test]
fn where_nothing_was_begun_no_file_is_left() {
    let folder = folder("copy-none");
    image(&folder.join("a"));
    let copy = "ulimit -v 196608; exec \"$0\" copy --depth 128 file:a file:b";
    let Ran { code, err, .. } = script(&folder, copy);
    assert_eq!((code, err.lines().count()), (Some(1), 1), "{err}");
    assert!(!folder.join("b").exists(), "{err}");
}

#[test]
fn what_was_there_is_replaced_and_what_is_behind_it_stays() {
    let folder = folder("copy-onto");
    image(&folder.join("a"));
    fs::write(folder.join("b"), vec![7; 5 << 20]).unwrap();
    let ran = lunar_in(&folder, "copy file:a file:b --json --depth 1");
    ran.is_silent_success();
    let report = ran.json();
    assert_eq!(report["complete"], true);
    assert_eq!(report["durable_bytes"], 4 << 20);
    assert_eq!(
        (&report["data_bytes"], &report["hole_bytes"]),
        (&(2 << 20).into(), &(2 << 20).into())
    );
    let b = fs::read(folder.join("b")).unwrap();
    let (copied, behind) = b.split_at(4 << 20);
    assert!(copied == fs::read(folder.join("a")).unwrap());
    assert!(behind == vec![7; 1 << 20]);
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_written() {
    let folder = folder("copy-misfits");
    image(&folder.join("a"));
    fs::write(folder.join("odd"), [1; 1000]).unwrap();
    fs::write(folder.join("small"), [7; 512]).unwrap();
    symlink("new", folder.join("dangling")).unwrap();
    for (words, told) in [
        (
            "file:a file:small",
            "only 512 bytes: nothing was done; choose a larger one, or extend it: \
             file:small?size=4M",
        ),
        ("file:a file:./a", "are the same volume"),
        ("file:a concat(ram:1M,file:a)", "are the same volume"),
        ("file:a file:small?readonly", "only 512"),
        (
            "file:small file:a?readonly",
            "cannot be written: nothing was done",
        ),
        ("file:none file:new", "file:none: no such file"),
        ("file:a file:none/new", "no such directory"),
        ("file:a file:dangling?size=4M", "a dangling symbolic link"),
        (
            "ram:512 stripe:64k(ram:1M,rbd:pool/image)",
            "does not support",
        ),
        (
            "iscsi://127.0.0.1:1/iqn.2026-11.org.example:x file:new",
            "cannot connect",
        ),
        (
            "iscsi://me@127.0.0.1:1/iqn.2026-11.org.example:x file:new",
            "LUNAR_SECRET",
        ),
    ] {
        let line = refused(&folder, 1, words);
        assert!(line.contains(told), "{words}: {line}");
    }
    let ran = lunar_in(&folder, "copy file:odd file:new");
    let said = ran.err;
    assert_eq!(ran.code, Some(1), "{said}");
    assert!(
        said.contains("its last 488 bytes are less than one block"),
        "{said}"
    );
    let words = "not a multiple of the block size 512: nothing was done; extend it to 1024";
    assert!(said.contains(words), "{said}");
    assert!(!folder.join("new").exists());
    assert!(fs::read(folder.join("small")).unwrap() == [7; 512]);
}

#[test]
fn a_wrong_command_line_is_one_line() {
    let folder = folder("copy-wrong");
    for (words, told) in [
        ("ram:1M", "not provided"),
        ("ram:1M ram:1M --timeout 0", "cannot be 0"),
        ("ram:1M ram:1M ram:1M", "unexpected argument"),
        ("ram:1M ram:1M --depth 0", "from 1 to 128"),
        ("ram:1M ram:1M --depth 129", "from 1 to 128"),
        ("ram:1M ram:1M --resum", "--resume"),
    ] {
        let line = refused(&folder, 2, words);
        assert!(line.contains(told), "{words}: {line}");
    }
}

/// Unless what was read back shows that B is what A is now.
#[test]
fn a_source_that_is_written_to_meanwhile_is_told_of() {
    let folder = folder("copy-meanwhile");
    for (name, options) in [("b", ""), ("c", "--verify")] {
        image(&folder.join("a"));
        let begun = folder.join(name);
        let a = File::options().write(true).open(folder.join("a")).unwrap();
        let writes = thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(30);
            while !begun.exists() {
                assert!(Instant::now() < deadline, "the copy does not begin");
                thread::sleep(Duration::from_millis(10));
            }
            a.write_all_at(b"new", (4 << 20) - 3).unwrap();
        });
        let line = format!("copy --json limit:rate=1M(file:a) file:{name} {options}");
        let ran = lunar_in(&folder, &line);
        writes.join().unwrap();
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let report = ran.json();
        assert_eq!(report["source_changed"], true, "{report}");
        let warns = ran.err.contains("A was written to during the copy");
        assert_eq!(warns, options.is_empty(), "{}", ran.err);
    }
}

#[test]
fn what_differs_is_told_by_block() {
    let folder = folder("verify-differs");
    image(&folder.join("a"));
    image(&folder.join("b"));
    let ran = lunar_in(&folder, "verify file:a file:b");
    ran.is_silent_success();
    assert!(ran.out.starts_with("the same: 4.0 MiB in "), "{}", ran.out);
    let b = File::options().write(true).open(folder.join("b")).unwrap();
    b.write_all_at(&[1; 1000], 1000).unwrap();
    b.write_all_at(&[0], (1 << 20) + 7).unwrap();
    b.set_len(5 << 20).unwrap();
    let ran = lunar_in(&folder, "verify file:a file:b");
    assert_eq!(ran.code, Some(1));
    let lines = "differ: bytes 512 to 2047, blocks 1 to 3\n\
        differ: bytes 1048576 to 1049087, blocks 2048 to 2048\n";
    assert_eq!(ran.out, lines);
    let line = "lunar: 4 of 8192 blocks differ, the first at byte 1000 (block 1)\n";
    assert_eq!(ran.err, line);
    let ran = lunar_in(&folder, "verify file:a file:b --json");
    let report = ran.json();
    assert_eq!(
        (&report["identical"], &report["complete"]),
        (&false.into(), &true.into())
    );
    assert_eq!(report["differing_blocks"], 4);
    assert_eq!(report["first_difference_byte"], 1000);
    assert_eq!(report["differences"][1]["end_byte"], 1_049_088);
}

#[test]
fn what_cannot_be_read_is_not_called_the_same() {
    let folder = folder("verify-failed");
    image(&folder.join("a"));
    image(&folder.join("b"));
    let b = "fault:read=eio@1M(file:b)";
    let ran = lunar_in(&folder, &format!("verify file:a {b} --depth 1"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let line = format!(
        "lunar: {b}: unrecovered read error at byte 3145728; after 3.0 MiB, no difference was \
         found\n"
    );
    assert_eq!(ran.err, line);
}

#[test]
fn a_limit_to_the_size_of_files_is_an_error_like_others() {
    let folder = folder("copy-limit");
    image(&folder.join("a"));
    let copy = "ulimit -f 1024; exec \"$0\" copy file:a file:b";
    let Ran { code, err, .. } = script(&folder, copy);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("(ulimit -f), does not allow 4194304"), "{err}");
    assert!(!folder.join("b").exists());
}

#[test]
fn what_cannot_be_read_is_skipped_on_request_and_printed() {
    let folder = folder("copy-skips");
    image(&folder.join("a"));
    let failing = "fault:read=eio@1M(file:a)";
    let ran = lunar_in(&folder, &format!("copy --skip-unreadable {failing} file:b"));
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(
        ran.out.ends_with("unreadable: bytes 3145728 to 4194303\n"),
        "{}",
        ran.out
    );
    let line = format!("lunar: {failing}: 1.0 MiB in 1 range cannot be read, and is zeros at B\n");
    assert_eq!(ran.err, line);
    let [a, b] = ["a", "b"].map(|name| fs::read(folder.join(name)).unwrap());
    assert!(a[..3 << 20] == b[..3 << 20] && b[3 << 20..] == [0; 1 << 20]);
}

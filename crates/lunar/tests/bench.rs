//! `lunar bench` and `lunar floor` as a user and a script meet them.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// What makes it short.
const SHORT: [&str; 4] = ["--runtime", "300ms", "--ramp-time", "1ms"];

/// The program. `timeout` ends it where it does not end by itself, which no test expects.
fn program() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_lunar")]);
    command
}

fn lunar(args: &[&str]) -> Command {
    let mut command = program();
    command.args(args).args(SHORT);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs it with what cannot work, and gives the line it answers with.
#[track_caller]
fn refused(code: i32, args: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = lunar(args).output().unwrap();
    let err = text(&stderr);
    assert_eq!(status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(text(&stdout), "", "{args:?}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(!err.contains("os error"), "{args:?}: {err}");
    err
}

/// Runs it with `--json`, and gives its exit code, what it printed and the last line of what it
/// said.
fn measured(args: &[&str]) -> (Option<i32>, Value, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = lunar(&[args, &["--json"]].concat()).output().unwrap();
    let line = text(&stderr).lines().last().unwrap_or_default().to_owned();
    let object = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("{args:?}: {line}"));
    (status.code(), object, line)
}

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

#[test]
fn every_malformed_word_is_one_line_that_names_it() {
    let wrong = [
        ["--rw", "trim"],
        ["--rwmixread", "101"],
        ["--bs", "4k,"],
        ["--bs", "1M"],
        ["--bs", "0"],
        ["--bs", "511"],
        ["--iodepth", "0"],
        ["--iodepth", "many"],
        ["--numjobs", "1000"],
        ["--size", "lots"],
        ["--size", "0"],
        ["--offset", "x"],
        ["--rate-iops", "0"],
        ["--randseed", "x"],
        ["--preset", "fast"],
        ["--target-pid", "x"],
        ["--floor", "no such host"],
    ];
    for [option, value] in wrong {
        let line = refused(2, &["bench", "ram:1M", option, value]);
        let name = if option == "--preset" || option == "--floor" {
            value
        } else {
            option
        };
        assert!(line.contains(name), "{line}");
    }
    for time in ["0", "0s", "5 s", "5h"] {
        let mut command = program();
        let ran = command
            .args(["bench", "ram:1M", "--runtime", time])
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(2), "{time}");
        assert!(text(&ran.stderr).contains("--runtime"), "{time}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    refused(2, &["bench"]);
    refused(2, &["floor"]);
    let line = refused(2, &["bench", "ram:1M", "--rwmixread", "70"]);
    assert!(line.contains("give --rw rw or randrw"), "{line}");
    let cable = "fcoe://cable:/nowhere/20:00:00:00:00:00:00:01/0";
    let line = refused(1, &["bench", cable, "--numjobs", "2"]);
    assert!(line.contains("give --numjobs 1"), "{line}");
    refused(2, &["bench", "ram:1M", "--sweep", "--preset", "iometer"]);
    refused(2, &["bench", "ram:1M", "ram:1M", "--floor", "local"]);
    refused(2, &["floor", "local", "--listen", "127.0.0.1:0"]);
    refused(2, &["floor", "fcoe://eth0", "--listen", "fcoe://eth0"]);
    let line = refused(2, &["floor", "fcoe://eth0", "--bs", "4k"]);
    assert!(line.contains("--bs"), "{line}");
    let line = refused(2, &["floor", "local", "--crc"]);
    assert!(line.contains("--crc"), "{line}");
}

#[test]
fn what_a_volume_cannot_do_is_one_line_before_anything_is_done() {
    let there = file("bench-there.img");
    File::create(&there).unwrap().set_len(1 << 20).unwrap();
    let address = format!("file:{}", there.display());
    let read_only = format!("readonly({address})");
    let wrong = [
        (&["--bs", "700"][..], "not a multiple"),
        (&["--size", "2M"], "beyond"),
        (
            &["--offset", "2M"],
            "--offset 2097152 is beyond its 1048576",
        ),
        (&["--offset", "1M"], "too few"),
        (&["--floor", "127.0.0.1:1"], "start lunar floor --listen"),
        (&["--offset", "100"], "not a multiple"),
        (&["--target-pid", "4194304"], "no such process"),
        (&["--html", "/no/such/folder/a.html"], "--html"),
        (&["--html", "/dev/full"], "not a regular file"),
    ];
    for (words, cause) in wrong {
        let line = refused(1, &[&["bench", &address], words].concat());
        assert!(line.contains(cause), "{line}");
    }
    let line = refused(1, &["bench", &read_only, "--rw", "randwrite"]);
    assert!(line.contains("read-only"), "{line}");
    refused(1, &["bench", "file:/no/such/file"]);
    refused(
        1,
        &[
            "bench",
            "iscsi://127.0.0.1:1/iqn.2026-11.org.example:none/0",
        ],
    );
    let line = refused(1, &["bench", &read_only, "--fill"]);
    assert!(line.contains("--fill writes"), "{line}");
    let line = refused(1, &["floor", "local", "--size", "16T"]);
    assert!(line.contains("give a smaller --size"), "{line}");
    refused(1, &["floor", "127.0.0.1:1"]);
    for end in [
        &["floor", "fcoe://nosuch0"][..],
        &["floor", "--listen", "fcoe://nosuch0", "--open"],
    ] {
        let line = refused(1, end);
        assert!(line.contains("no interface \"nosuch0\""), "{line}");
    }
}

#[test]
fn a_row_has_plausible_counts() {
    let (code, outcome, _) = measured(&["bench", "ram:4M", "--rw", "randrw", "--bs", "512,4k"]);
    assert_eq!(code, Some(0));
    let rows = outcome["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, bytes) in rows.iter().zip([512, 4096]) {
        for side in ["reads", "writes"] {
            let ios = row[side]["ios"].as_u64().unwrap();
            assert!(ios > 0);
            assert_eq!(row[side]["bytes"].as_u64(), Some(ios * bytes));
            assert_eq!(row[side]["latency"]["count"].as_u64(), Some(ios));
            assert!(
                !row[side]["latency"]["buckets_ns"]
                    .as_array()
                    .unwrap()
                    .is_empty()
            );
        }
        assert!(row["cpu_us"].as_u64().unwrap() > 0);
    }
    let words = outcome["words"].as_str().unwrap();
    assert!(words.contains("--bs 512,4k"), "{words}");
}

#[test]
fn a_sweep_has_seven_sizes_in_three_directions() {
    let (code, outcome, _) = measured(&["bench", "null:1G", "--sweep"]);
    assert_eq!(code, Some(0));
    assert_eq!(outcome["rows"].as_array().unwrap().len(), 21);
}

#[test]
fn holes_are_told_and_filled() {
    let (_, _, line) = measured(&["bench", "ram:1M"]);
    assert!(line.contains("--fill"), "{line}");
    let (_, _, line) = measured(&["bench", "ram:1M", "--fill"]);
    assert_eq!(line, "");
}

#[test]
fn one_wrong_byte_is_found() {
    let path = file("bench-verified.img");
    let address = format!("file:{}?size=1M", path.display());
    let check = ["bench", &address, "--rw", "read", "--verify"];
    let (code, _, line) = measured(&["bench", &address, "--fill", "--rw", "randrw", "--verify"]);
    assert_eq!(code, Some(0), "{line}");
    let (code, _, line) = measured(&check);
    assert_eq!(code, Some(0), "{line}");

    let file = File::options().read(true).write(true).open(&path).unwrap();
    let (at, mut byte) = (8192 + 300, [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x80], at).unwrap();
    let (code, _, line) = measured(&check);
    assert_eq!(code, Some(1));
    assert!(
        line.contains("wrong data at offset 8492 (block 16)"),
        "{line}"
    );
}

#[test]
fn who_interrupts_gets_what_was_measured_so_far() {
    let mut command = program();
    command.args([
        "bench",
        "null:1G",
        "--runtime",
        "100s",
        "--ramp-time",
        "0",
        "--json",
    ]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // Signals are not caught before it has begun, which is soon.
    thread::sleep(Duration::from_millis(1500));
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(130));
    let outcome: Value = serde_json::from_slice(&stdout).unwrap();
    assert!(outcome["rows"][0]["reads"]["ios"].as_u64().unwrap() > 0);
}

#[test]
fn bare_tcp_is_measured_by_the_same_words() {
    let (code, outcome, line) = measured(&["floor", "local", "--rw", "randrw", "--size", "1M"]);
    assert_eq!(code, Some(0), "{line}");
    let row = &outcome["rows"][0];
    assert!(row["reads"]["ios"].as_u64().unwrap() > 0);
    assert!(row["target_cpu_us"].as_u64().is_some());
    let words = [
        "bench", "ram:1M", "--fill", "--floor", "local", "--bs", "4k,8k",
    ];
    let (code, outcome, line) = measured(&words);
    assert_eq!(code, Some(0), "{line}");
    for row in 0..2 {
        assert!(outcome["rows"][row]["load"].is_object());
        assert_eq!(outcome["floors"][row]["load"], outcome["rows"][row]["load"]);
    }
}

/// ^C goes to all processes of a terminal's group.
#[test]
fn a_floor_here_is_interrupted_like_any_other_measurement() {
    let mut command = program();
    command.args(["floor", "local", "--runtime", "100s", "--size", "1M"]);
    command.process_group(0);
    let child = command.stderr(Stdio::piped()).stdout(Stdio::null());
    let child = child.spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    let group = format!("-{}", child.id());
    let sent = Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.unwrap().success());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!((status.code(), text(&stderr)), (Some(130), String::new()));
}

#[test]
fn a_floor_for_others_is_open_on_request_and_ends_by_a_signal() {
    for place in ["0.0.0.0:0", "fcoe://nosuch0"] {
        let line = refused(2, &["floor", "--listen", place]);
        assert!(line.contains("--open"), "{line}");
    }
    let mut command = lunar(&["floor", "--listen", "0.0.0.0:0", "--open", "--size", "2M"]);
    let mut far = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(far.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    let place = ready.trim().replace("0.0.0.0", "127.0.0.1");
    let (code, _, line) = measured(&["floor", &place, "--size", "512k"]);
    assert_eq!(code, Some(0), "{line}");
    let pid = far.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.unwrap().success());
    assert_eq!(far.wait().unwrap().code(), Some(0));
}

#[test]
fn frames_are_measured_over_a_cable() {
    let cable = format!("fcoe://cable:{}", file("bench-cable").display());
    let mut far = lunar(&["floor", "--listen", &cable, "--size", "1M"]);
    let mut far = far.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(far.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    assert_eq!(ready, format!("{cable}\n"));
    let (code, outcome, line) = measured(&["floor", &cable, "--crc", "--size", "1M"]);
    let killed = Command::new("kill")
        .args(["-INT", &far.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    assert_eq!(far.wait().unwrap().code(), Some(0));
    assert_eq!(code, Some(0), "{line}");
    for (row, tally) in [(0, "reads"), (1, "writes")] {
        let row = &outcome["rows"][row];
        assert!(row[tally]["ios"].as_u64().unwrap() > 0);
        assert_eq!(row[tally]["errors"], 0);
        assert!(row["target_cpu_us"].as_u64().is_some());
    }
}

#[test]
fn a_sweep_is_a_table_and_a_page_with_plots() {
    let page = file("bench-report.html");
    let plots = ["svg", "png"].map(|end| file(&format!("bench-report-iops.{end}")));
    let args = [
        "bench",
        "null:1G",
        "--sweep",
        "--html",
        page.to_str().unwrap(),
    ];
    let Output { status, stdout, .. } = lunar(&args).output().unwrap();
    assert_eq!(status.code(), Some(0));
    let table = text(&stdout);
    for word in ["32k", "MB/s", "IOPS", "p99.9"] {
        assert!(table.contains(word), "{table}");
    }
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("randread") && html.contains("<svg"));
    for plot in plots {
        assert!(plot.exists(), "{}", plot.display());
    }
}

#[test]
fn a_page_that_cannot_be_written_loses_no_table() {
    let page = file("bench-lost.html");
    fs::create_dir_all(page.with_file_name("bench-lost-iops.svg")).unwrap();
    let args = ["bench", "null:1G", "--html", page.to_str().unwrap()];
    let ran = lunar(&args).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(text(&ran.stderr).contains("bench-lost-iops.svg"));
    assert!(text(&ran.stdout).contains("IOPS"));
    assert!(!page.exists(), "it was made and is empty");
}

#[test]
fn a_link_to_a_page_that_is_not_there_stays() {
    let [page, behind] = ["bench-link.html", "bench-behind.html"].map(file);
    fs::create_dir_all(page.with_file_name("bench-link-iops.svg")).unwrap();
    symlink(&behind, &page).unwrap();
    let args = ["bench", "null:1G", "--html", page.to_str().unwrap()];
    let ran = lunar(&args).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(fs::read_link(&page).unwrap(), behind);
    assert!(!behind.exists(), "it was made and is empty");
}

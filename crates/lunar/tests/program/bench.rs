//! `lunar bench` and `lunar floor`.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::rig::{Ran, Run, file, first_line, lunar, signal};

/// A measurement that is short.
fn short(line: &str) -> Command {
    lunar(&format!("{line} --runtime 300ms --ramp-time 1ms"))
}

/// Runs it with `--json`, and gives its exit code, what it printed and the last line of what it
/// said.
fn measured(line: &str) -> (Option<i32>, Value, String) {
    let ran = short(line).arg("--json").ran();
    let said = ran.err.lines().last().unwrap_or_default().to_owned();
    (ran.code, ran.json(), said)
}

/// The same, where it is to be a success.
#[track_caller]
fn measures(line: &str) -> Value {
    let (code, outcome, said) = measured(line);
    assert_eq!(code, Some(0), "{said}");
    outcome
}

/// Starts it, and waits until it has begun, which is soon: before that, signals are not caught.
fn begun(command: &mut Command) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    thread::sleep(Duration::from_millis(1500));
    child
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
        let name = match option {
            "--preset" | "--floor" => value,
            option => option,
        };
        short("bench ram:1M")
            .args([option, value])
            .refused_with(2, name);
    }
    for time in ["0", "0s", "5 s", "5h"] {
        let mut bench = lunar("bench ram:1M --runtime");
        bench.arg(time).refused_with(2, "--runtime");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    for (line, code, told) in [
        ("bench", 2, ""),
        ("floor", 2, ""),
        ("bench ram:1M --rwmixread 70", 2, "give --rw rw or randrw"),
        (
            "bench fcoe://cable:/nowhere/20:00:00:00:00:00:00:01/0 --numjobs 2",
            1,
            "give --numjobs 1",
        ),
        ("bench ram:1M --sweep --preset iometer", 2, ""),
        ("bench ram:1M ram:1M --floor local", 2, ""),
        ("floor local --listen 127.0.0.1:0", 2, ""),
        ("floor fcoe://eth0 --listen fcoe://eth0", 2, ""),
        ("floor fcoe://eth0 --bs 4k", 2, "--bs"),
        ("floor local --crc", 2, "--crc"),
        ("floor --listen 127.0.0.1:0 --bs 4k", 2, "--bs"),
        ("floor --listen 127.0.0.1:0 --json", 2, "--json"),
    ] {
        lunar(line).refused_with(code, told);
    }
}

#[test]
fn what_a_volume_cannot_do_is_one_line_before_anything_is_done() {
    let there = file("bench-there.img");
    File::create(&there).unwrap().set_len(1 << 20).unwrap();
    let address = format!("file:{}", there.display());
    for (options, cause) in [
        ("--bs 700", "not a multiple"),
        ("--size 2M", "beyond"),
        ("--offset 2M", "--offset 2097152 is beyond its 1048576"),
        ("--offset 1M", "too few"),
        ("--floor 127.0.0.1:1", "start lunar floor --listen"),
        ("--offset 100", "not a multiple"),
        ("--target-pid 4194304", "no such process"),
        ("--html /no/such/folder/a.html", "--html"),
        ("--html /dev/full", "not a regular file"),
    ] {
        short(&format!("bench {address} {options}")).refused_with(1, cause);
    }
    for (line, cause) in [
        (
            &*format!("bench readonly({address}) --rw randwrite"),
            "read-only",
        ),
        ("bench file:/no/such/file", ""),
        (
            "bench iscsi://127.0.0.1:1/iqn.2026-11.org.example:none/0",
            "",
        ),
        (
            &format!("bench readonly({address}) --fill"),
            "--fill writes",
        ),
        ("floor local --size 16T", "give a smaller --size"),
        ("floor 127.0.0.1:1", ""),
        ("floor fcoe://nosuch0", "no interface \"nosuch0\""),
        (
            "floor --listen fcoe://nosuch0 --open",
            "no interface \"nosuch0\"",
        ),
    ] {
        lunar(line).refused_with(1, cause);
    }
}

#[test]
fn a_row_has_plausible_counts() {
    let outcome = measures("bench ram:4M --rw randrw --bs 512,4k");
    let rows = outcome["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, bytes) in rows.iter().zip([512, 4096]) {
        for side in ["reads", "writes"] {
            let ios = row[side]["ios"].as_u64().unwrap();
            assert!(ios > 0);
            assert_eq!(row[side]["bytes"].as_u64(), Some(ios * bytes));
            let latency = &row[side]["latency"];
            assert_eq!(latency["count"].as_u64(), Some(ios));
            assert!(!latency["buckets_ns"].as_array().unwrap().is_empty());
        }
        assert!(row["cpu_us"].as_u64().unwrap() > 0);
    }
    let words = outcome["words"].as_str().unwrap();
    assert!(words.contains("--bs 512,4k"), "{words}");
}

#[test]
fn a_sweep_has_seven_sizes_in_three_directions() {
    let outcome = measures("bench null:1G --sweep");
    assert_eq!(outcome["rows"].as_array().unwrap().len(), 21);
}

#[test]
fn holes_are_told_and_filled() {
    let (_, _, line) = measured("bench ram:1M");
    assert!(line.contains("--fill"), "{line}");
    let (_, _, line) = measured("bench ram:1M --fill");
    assert_eq!(line, "");
}

#[test]
fn one_wrong_byte_is_found() {
    let path = file("bench-verified.img");
    let address = format!("file:{}?size=1M", path.display());
    let check = format!("bench {address} --rw read --verify");
    measures(&format!("bench {address} --fill --rw randrw --verify"));
    measures(&check);

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
    let child = begun(&mut lunar(
        "bench null:1G --runtime 100s --ramp-time 0 --json",
    ));
    signal("INT", child.id());
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130));
    assert!(ran.json()["rows"][0]["reads"]["ios"].as_u64().unwrap() > 0);
}

#[test]
fn bare_tcp_is_measured_by_the_same_words() {
    let outcome = measures("floor local --rw randrw --size 1M");
    let row = &outcome["rows"][0];
    assert!(row["reads"]["ios"].as_u64().unwrap() > 0);
    assert!(row["target_cpu_us"].as_u64().is_some());
    let outcome = measures("bench ram:1M --fill --floor local --bs 4k,8k");
    for row in 0..2 {
        assert!(outcome["rows"][row]["load"].is_object());
        assert_eq!(outcome["floors"][row]["load"], outcome["rows"][row]["load"]);
    }
}

/// ^C goes to all processes of a terminal's group.
#[test]
fn a_floor_here_is_interrupted_like_any_other_measurement() {
    let mut command = lunar("floor local --runtime 100s --size 1M");
    let child = begun(command.process_group(0));
    signal("INT", format!("-{}", child.id()));
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
}

#[test]
fn a_floor_for_others_is_open_on_request_and_ends_by_a_signal() {
    for place in ["0.0.0.0:0", "fcoe://nosuch0"] {
        lunar(&format!("floor --listen {place}")).refused_with(2, "--open");
    }
    let mut far = lunar("floor --listen 0.0.0.0:0 --open --size 2M");
    let mut far = far.stdout(Stdio::piped()).spawn().unwrap();
    let place = first_line(&mut far).trim().replace("0.0.0.0", "127.0.0.1");
    measures(&format!("floor {place} --size 512k"));
    signal("TERM", far.id());
    assert_eq!(far.wait().unwrap().code(), Some(0));
}

#[test]
fn frames_are_measured_over_a_cable() {
    let cable = format!("fcoe://cable:{}", file("bench-cable").display());
    let mut far = lunar(&format!("floor --listen {cable} --size 1M"));
    let mut far = far.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut far), format!("{cable}\n"));
    let (code, outcome, line) = measured(&format!("floor {cable} --crc --size 1M"));
    signal("INT", far.id());
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
    let ran = short("bench null:1G --sweep")
        .arg("--html")
        .arg(&page)
        .ran();
    assert_eq!(ran.code, Some(0));
    for word in ["32k", "MB/s", "IOPS", "p99.9"] {
        assert!(ran.out.contains(word), "{}", ran.out);
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
    let ran = short("bench null:1G").arg("--html").arg(&page).ran();
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("bench-lost-iops.svg"));
    assert!(ran.out.contains("IOPS"));
    assert!(!page.exists(), "it was made and is empty");
}

#[test]
fn a_link_to_a_page_that_is_not_there_stays() {
    let [page, behind] = ["bench-link.html", "bench-behind.html"].map(file);
    fs::create_dir_all(page.with_file_name("bench-link-iops.svg")).unwrap();
    symlink(&behind, &page).unwrap();
    let ran = short("bench null:1G").arg("--html").arg(&page).ran();
    assert_eq!(ran.code, Some(1));
    assert_eq!(fs::read_link(&page).unwrap(), behind);
    assert!(!behind.exists(), "it was made and is empty");
}

//! `lunar race` as a user and a script meet it.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Eight rounds.
const SHORT: [&str; 6] = [
    "--runtime",
    "1600ms",
    "--ramp-time",
    "1ms",
    "--turn",
    "200ms",
];

fn lunar(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lunar"));
    command.arg("race").args(args).output().unwrap()
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).unwrap()
}

/// Runs it with what cannot work, and gives the line it answers with.
#[track_caller]
fn refused(code: i32, args: &[&str]) -> String {
    let ran = lunar(args);
    let err = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(text(&ran.stdout), "", "{args:?}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    err
}

#[test]
fn what_cannot_be_raced_is_one_line_with_the_way_out() {
    let wrong = [
        (2, &[][..], "<ADDR>"),
        (2, &["ram:1M"], "give another"),
        (2, &["ram:1M", "ram:1M", "--turn", "0s"], "--turn is 0"),
        (2, &["ram:1M", "ram:1M", "--turn", "x"], "--turn"),
        (2, &["ram:1M", "ram:1M", "--runtime", "0"], "--runtime"),
        (2, &["ram:1M", "ram:1M", "--verify"], "--verify"),
        (1, &["ram:1M", "file:/no/such/file"], "/no/such/file"),
        (1, &["ram:1M", "ram:1M", "--bs", "700"], "no multiple"),
        (
            1,
            &["ram:1M", "readonly(ram:1M)", "--fill"],
            "--fill writes",
        ),
        (
            1,
            &["ram:1M", "ram:1M", "--target-pid", "4194304"],
            "4194304",
        ),
        (
            1,
            &["ram:1M", "ram:1M", "--html", "/no/such/a.html"],
            "--html",
        ),
    ];
    for (code, args, cause) in wrong {
        let line = refused(code, args);
        assert!(line.contains(cause), "{args:?}: {line}");
    }
}

#[test]
fn each_row_has_a_verdict() {
    let ran = lunar(
        &[
            &["null:1M", "delay:1ms(ram:1M)", "--bs", "512,4k"],
            &SHORT[..],
        ]
        .concat(),
    );
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let out = text(&ran.stdout);
    for block in ["512", "4k"] {
        let said = format!("read {block}: delay:1ms(ram:1M) is slower than null:1M: 0.");
        assert!(out.contains(&said), "{out}");
    }
    assert!(
        out.contains("median of all rounds (lowest to highest)"),
        "{out}"
    );
}

#[test]
fn a_script_and_a_page_get_the_same() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("race.html");
    let path = page.to_str().unwrap();
    let args = ["ram:1M", "ram:1M", "--fill", "--json", "--html", path];
    let ran = lunar(&[&args, &SHORT[..]].concat());
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let race = &outcome["races"][0];
    assert_eq!(race["lanes"][1]["address"], "ram:1M (2)");
    assert_eq!(race["lanes"][1]["turns"].as_array().unwrap().len(), 8);
    let against = &race["against_first"][0];
    assert_eq!(against["iops"]["rounds"], 8);
    assert!(against["iops"]["lowest"].as_f64() <= against["iops"]["median"].as_f64());
    let verdict = against["verdict"].as_str().unwrap();
    let html = fs::read_to_string(page).unwrap();
    assert!(html.contains(&format!("read 4k: {verdict}")), "{verdict}");
}

//! What a user meets before anything is served: wrong input is answered by one line (what, why,
//! way out) and exit code 2, and nothing is tried.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn lunar(args: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_lunar"))
        .args(args)
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `lunar serve` with what cannot be right, and gives the line it answers with.
fn refused(args: &[&str]) -> String {
    let ran = lunar(&[&["serve"], args].concat());
    assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
    assert_eq!(ran.out, "", "{args:?}");
    assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
    ran.err.trim_end().to_owned()
}

fn secret_file(name: &str, text: &str, mode: u32) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn an_exposed_portal_says_the_ways_out() {
    for portal in ["0.0.0.0:0", "[::]:0", "192.0.2.1"] {
        let line = refused(&["ram:1M", "--listen", portal]);
        for way in ["--allow", "--chap", "--open"] {
            assert!(line.contains(way), "{line}");
        }
    }
}

#[test]
fn open_contradicts_a_guard() {
    let file = secret_file("open", "twelve octets\n", 0o600);
    let file = file.to_str().unwrap();
    let line = refused(&["ram:1M", "--open", "--allow", "iqn.2026-11.org.example:a"]);
    assert!(
        line.contains("--open") && line.contains("--allow"),
        "{line}"
    );
    refused(&["ram:1M", "--open", "--chap", "alice", "--secret-file", file]);
}

#[test]
fn a_typing_error_gets_a_hint() {
    let line = refused(&["ram:1M", "--lisen", "127.0.0.1:0"]);
    assert!(
        line.contains("'--listen'") && line.contains("lunar serve --help"),
        "{line}"
    );
}

#[test]
fn every_malformed_value_is_one_line() {
    let wrong = [
        ["--listen", "127.0.0.1:99999"],
        ["--listen", "no such host:1"],
        ["--advertise", "host:0"],
        ["--block-size", "1024"],
        ["--threads", "0"],
        ["--threads", "many"],
        ["--ring", "kqueue"],
        ["--poll", "sometimes"],
        ["--memory-limit", "lots"],
        ["--vendor", "LONGER THAN 8"],
        ["--product", ""],
        ["--serial", "caf\u{e9}"],
        ["--login-timeout", "15"],
        ["--nop-interval", "0s"],
        ["--max-sessions", "0"],
        ["--connection-memory", "1k"],
        ["--connection-memory", "8G"],
    ];
    for [option, value] in wrong {
        let line = refused(&["ram:1M", option, value]);
        assert!(line.contains(option), "{line}");
    }
}

#[test]
fn one_serial_is_not_for_two_volumes() {
    let line = refused(&["ram:1M", "ram:1M", "--serial", "S1"]);
    assert!(line.contains("--serial"), "{line}");
}

#[test]
fn nothing_to_serve_and_no_verb() {
    assert!(refused(&[]).contains("ADDR"));
    let ran = lunar(&[]);
    assert_eq!(
        (ran.code, ran.err.lines().count()),
        (Some(2), 1),
        "{}",
        ran.err
    );
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    for mode in [0o640, 0o604, 0o644, 0o660] {
        let file = secret_file(&format!("mode{mode:o}"), "twelve octets\n", mode);
        let line = refused(&[
            "ram:1M",
            "--chap",
            "a",
            "--secret-file",
            file.to_str().unwrap(),
        ]);
        assert!(line.contains("chmod 600"), "{line}");
    }
}

#[test]
fn a_secret_is_12_to_255_octets_of_the_first_line() {
    let long = "x".repeat(256);
    let texts = [
        "",
        "\n",
        "eleven chrs\n",
        "short\nsecond line is long enough",
        &long,
    ];
    for (n, text) in texts.iter().enumerate() {
        let file = secret_file(&format!("length{n}"), text, 0o600);
        let line = refused(&[
            "ram:1M",
            "--chap",
            "a",
            "--secret-file",
            file.to_str().unwrap(),
        ]);
        assert!(line.contains("12 to 255"), "{line}");
    }
}

#[test]
fn each_user_has_a_secret_file() {
    let file = secret_file("pair", "twelve octets\n", 0o600);
    let file = file.to_str().unwrap();
    refused(&["ram:1M", "--chap", "a"]);
    refused(&["ram:1M", "--secret-file", file]);
    refused(&[
        "ram:1M",
        "--chap",
        "a",
        "--chap",
        "b",
        "--secret-file",
        file,
    ]);
    refused(&["ram:1M", "--chap-min", "sha256"]);
    refused(&["ram:1M", "--mutual-user", "t", "--mutual-secret-file", file]);
}

#[test]
fn the_mutual_secret_differs() {
    let file = secret_file("same", "the same for both\n", 0o600);
    let file = file.to_str().unwrap();
    let chap = ["ram:1M", "--chap", "a", "--secret-file", file];
    let mutual = ["--mutual-user", "t", "--mutual-secret-file", file];
    assert!(refused(&[&chap[..], &mutual].concat()).contains("differ"));
}

#[test]
fn a_secret_file_that_is_not_there_is_a_failure() {
    let ran = lunar(&[
        "serve",
        "ram:1M",
        "--chap",
        "a",
        "--secret-file",
        "/nonexistent/secret",
    ]);
    assert_eq!(
        (ran.code, ran.err.lines().count()),
        (Some(1), 1),
        "{}",
        ran.err
    );
}

#[test]
fn a_secret_never_shows() {
    let file = secret_file("shown", "opensesame1\n", 0o600);
    let line = refused(&[
        "ram:1M",
        "--chap",
        "a",
        "--secret-file",
        file.to_str().unwrap(),
    ]);
    assert!(!line.contains("opensesame"), "{line}");
}

#[test]
fn version_help_and_documents_go_to_standard_output() {
    let asked: [&[&str]; 7] = [
        &["--version"],
        &["--help"],
        &["serve", "--help"],
        &["completion", "bash"],
        &["completion", "zsh"],
        &["manual"],
        &["manual", "serve"],
    ];
    for args in asked {
        let ran = lunar(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.out.contains("lunar"), "{args:?}");
    }
}

#[test]
fn a_manual_page_of_no_verb_is_refused() {
    assert_eq!(lunar(&["manual", "fly"]).code, Some(2));
}

//! What a user meets before anything is served: wrong input is answered by one line (what, why,
//! way out) and exit code 2, and nothing is tried.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The program. `timeout` ends it where it does not end by itself, which no test expects.
fn program() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_lunar")]);
    command
}

fn lunar(args: &[&str]) -> Ran {
    let output = program().args(args).output().unwrap();
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
    let file = secret_file("open", "twelve bytes\n", 0o600);
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
        ["--listen", "224.0.0.1:3260"],
        ["--listen", "255.255.255.255:3260"],
        ["--listen", "[fe80::1]:3260"],
        ["--advertise", "host:0"],
        ["--advertise", "0.0.0.0:3260"],
        ["--advertise", "[::]"],
        ["--advertise", "224.0.0.1"],
        ["--advertise", "255.255.255.255"],
        ["--block-size", "1024"],
        ["--threads", "0"],
        ["--threads", "many"],
        ["--threads", "2.5"],
        ["--threads", "1025"],
        ["--threads", "18446744073709551616"],
        ["--ring", "kqueue"],
        ["--poll", "sometimes"],
        ["--memory-limit", "lots"],
        ["--memory-limit", "0"],
        ["--vendor", "LONGER THAN 8"],
        ["--product", ""],
        ["--serial", "caf\u{e9}"],
        ["--serial", "  "],
        ["--login-timeout", "15 s"],
        ["--nop-interval", "0s"],
        ["--nop-interval", "99999999999999m"],
        ["--max-sessions", "0"],
        ["--max-sessions", "65536"],
        ["--max-sessions", "99999999999999999999"],
        ["--max-logins", "many"],
        ["--connection-memory", "1k"],
        ["--connection-memory", "8G"],
    ];
    for [option, value] in wrong {
        let line = refused(&["ram:1M", option, value]);
        assert!(line.contains(option), "{line}");
    }
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
        let file = secret_file(&format!("mode{mode:o}"), "twelve bytes\n", mode);
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
fn a_secret_is_in_a_regular_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let pipe = folder.join("pipe");
    let _ = fs::remove_file(&pipe);
    let mut mkfifo = Command::new("mkfifo");
    let made = mkfifo.args(["-m", "600"]).arg(&pipe).status();
    assert!(made.unwrap().success());
    for (file, what) in [
        (pipe.to_str().unwrap(), "a pipe"),
        (folder.to_str().unwrap(), "a directory"),
        ("/dev/null", "a device"),
    ] {
        let line = refused(&["ram:1M", "--chap", "a", "--secret-file", file]);
        assert!(line.contains(file) && line.contains(what), "{line}");
        assert!(line.contains("regular file"), "{line}");
    }
}

#[test]
fn a_user_that_no_login_can_name_is_refused() {
    let (ours, theirs) = (
        secret_file("ours", "our own secret\n", 0o600),
        secret_file("theirs", "their own secret\n", 0o600),
    );
    let (ours, theirs) = (ours.to_str().unwrap(), theirs.to_str().unwrap());
    for name in ["", "a\nb", &"x".repeat(300)] {
        let line = refused(&["ram:1M", "--chap", name, "--secret-file", theirs]);
        assert!(line.contains("--chap"), "{line}");
        let chap = ["ram:1M", "--chap", "a", "--secret-file", theirs];
        let mutual = ["--mutual-user", name, "--mutual-secret-file", ours];
        let line = refused(&[&chap[..], &mutual].concat());
        assert!(line.contains("--mutual-user"), "{line}");
    }
}

#[test]
fn a_secret_is_12_to_255_bytes_of_the_first_line() {
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
    let file = secret_file("pair", "twelve bytes\n", 0o600);
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
    for verb in ["fly", ""] {
        let ran = lunar(&["manual", verb]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(&format!("{verb:?}")), "{}", ran.err);
    }
}

#[test]
fn each_wrong_command_line_says_what_would_be_right() {
    let wrong: [(&[&str], &str); 19] = [
        (&[], "choose from serve, "),
        (&["help", "fly"], "choose from serve, "),
        (&["cp", "a", "b"], "did you mean copy?"),
        (&["resize", "ram:1M"], "\"resize\": choose from serve, "),
        (&["version", "2"], "unknown verb"),
        (&["serve", "ram:1M", "--daemon"], "'--daemon' found (see "),
        (&["sevre", "ram:1M"], "did you mean serve?"),
        (&["ram:1M"], "did you mean lunar serve ram:1M?"),
        (&["completion"], "lunar completion --help"),
        (
            &["completion", "tcsh"],
            "bash, elvish, fish, powershell, zsh",
        ),
        (&["completion", "bash", "extra"], "lunar completion --help"),
        (&["manual", "a", "b"], "lunar manual --help"),
        (&["serve", "ram:1M", "--listen", "*:3260"], "0.0.0.0"),
        (&["serve", "ram:1M", "--listen", "iscsi://h"], "HOST:PORT"),
        (
            &["serve", "--block-size", "1"],
            "choose from 512, 4096 (see",
        ),
        (&["bench", "--iodepth", "0"], "give a number from 1 to 4096"),
        (&["bench", "--numjobs", "x"], "give a number from 1 to 256"),
        (&["bench", "--randseed", "x"], "give a whole number (see"),
        (
            &["bench", "--rate-iops", "0"],
            "give a number of I/Os per second",
        ),
    ];
    for (args, way_out) in wrong {
        let ran = lunar(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}");
        assert_eq!(ran.err.lines().count(), 1, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(way_out), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_value_with_a_dash_gets_no_advice_that_leads_nowhere() {
    for args in [["--threads", "-1"], ["--login-timeout", "-5s"]] {
        let line = refused(&[&["ram:1M"], &args[..]].concat());
        assert!(!line.contains("-- -"), "{line}");
    }
}

#[test]
fn what_is_not_text_is_shown() {
    let wrong = OsStr::from_bytes(b"ram:\xff");
    let ran = program().arg("serve").arg(wrong).output().unwrap();
    let err = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(2), "{err}");
    assert!(err.contains("ram:") && err.contains("UTF-8"), "{err}");
}

#[test]
fn a_full_disk_is_a_failure() {
    for args in [&["--help"][..], &["manual"], &["completion", "bash"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let ran = program().args(args).stdout(full.unwrap()).output().unwrap();
        assert_eq!(ran.status.code(), Some(1), "{args:?}");
    }
}

/// The portal is taken, so that it ends by itself, with its own exit code and not by a panic.
#[test]
fn a_log_that_cannot_be_written_ends_nothing() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = holder.local_addr().unwrap().to_string();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let ended = program()
        .args(["serve", "ram:1M", "--listen", &portal])
        .env("LUNAR_LOG", "loud")
        .stderr(full.unwrap())
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(1));
}

#[test]
fn a_log_level_that_is_none_is_told() {
    for level in ["loud", "info,loud", "iscsi=loud"] {
        // The portal is taken, so that it ends by itself.
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = holder.local_addr().unwrap().to_string();
        let ran = program()
            .args(["serve", "ram:1M", "--listen", &portal])
            .env("LUNAR_LOG", level)
            .output()
            .unwrap();
        let err = String::from_utf8(ran.stderr).unwrap();
        assert!(err.contains("LUNAR_LOG") && err.contains(level), "{err}");
    }
}

#[test]
fn what_cannot_be_opened_is_a_failure() {
    let bad = [
        "file:/dev/null/disk?size=1M",
        "block:/dev/null",
        "block:/dev/null/disk",
    ];
    for address in bad {
        let ran = lunar(&["serve", "ram:16M", address, "--listen", "127.0.0.1:0"]);
        assert_eq!(ran.code, Some(1), "{address}: {}", ran.err);
        assert!(ran.err.contains(address), "{}", ran.err);
        assert_eq!(ran.out, "", "nothing is half-started");
    }
}

#[test]
fn a_malformed_address_is_a_usage_error() {
    let wrong = [
        "ram:",
        "ram:1Q",
        "rom:1G",
        "/dev/sda",
        "file:",
        "null:0",
        "fault:often(ram:1M)",
        "stripe:64k(ram:1M)",
    ];
    for address in wrong {
        let first = "file:created-by-nobody?size=1M";
        let ran = lunar(&["serve", first, address, "--listen", "127.0.0.1:0"]);
        assert_eq!(ran.code, Some(2), "{address}: {}", ran.err);
        assert!(!Path::new("created-by-nobody").exists(), "{address}");
    }
}

#[test]
fn a_name_that_is_none_is_a_usage_error() {
    for name in [
        "disk",
        "iqn.example",
        "iqn.2026-13.org.example:a",
        "iqn.2026-11.org.example:a b",
    ] {
        let ran = lunar(&["serve", "ram:1M", "--listen", "127.0.0.1:0", "--iqn", name]);
        assert_eq!(ran.code, Some(2), "{name}: {}", ran.err);
    }
}

/// No name server is asked for a name with an empty part.
#[test]
fn a_host_that_nobody_knows_is_a_failure_with_a_way_out() {
    let places: [&[&str]; 3] = [
        &["serve", "ram:1M", "--listen", "nowhere..invalid:0"],
        &["floor", "--listen", "nowhere..invalid:0"],
        &["floor", "nowhere..invalid"],
    ];
    for args in places {
        let ran = lunar(args);
        assert_eq!(
            (ran.code, ran.err.lines().count()),
            (Some(1), 1),
            "{args:?}"
        );
        assert!(
            ran.err.contains("nowhere..invalid cannot be resolved"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("give an address"), "{}", ran.err);
    }
}

#[test]
fn a_floor_of_ethernet_is_an_interface_and_nothing_behind_it() {
    let unit = "fcoe://eth0/20:00:ac:de:48:23:45:67/0";
    for place in [unit, "fcoe://", "fcoe://a-name-beyond-15"] {
        for args in [&["floor", place] as &[_], &["floor", "--listen", place]] {
            let ran = lunar(args);
            let told = (ran.code, ran.err.lines().count());
            assert_eq!(told, (Some(2), 1), "{args:?}: {}", ran.err);
            assert!(ran.err.contains(place), "{}", ran.err);
        }
        let way_out = lunar(&["floor", place]).err;
        let ways = ["fcoe://IFACE", "fcoe://eth0"];
        assert!(ways.iter().any(|way| way_out.contains(way)), "{way_out}");
    }
}

#[test]
fn a_portal_that_stays_in_use_is_told() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = holder.local_addr().unwrap().to_string();
    let ran = lunar(&["serve", "ram:1M", "--listen", &portal]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains(&portal), "{}", ran.err);
}

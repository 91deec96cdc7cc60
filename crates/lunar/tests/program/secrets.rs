//! CHAP secrets: `lunar secret` makes them, and verbs read them from files, or refuse to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::rig::{Run, file_of_mode, folder, lunar, pipe};

/// `lunar serve` with a user whose secret is in this file.
fn serve(user: &str, file: &str) -> Command {
    let mut command = lunar("serve ram:1M");
    command.args(["--chap", user, "--secret-file", file]);
    command
}

#[test]
fn open_contradicts_a_guard() {
    let file = file_of_mode("open", "twelve bytes\n", 0o600);
    let line = lunar("serve ram:1M --open --allow iqn.2026-11.org.example:a").refused(2);
    assert!(
        line.contains("--open") && line.contains("--allow"),
        "{line}"
    );
    serve("alice", &file).arg("--open").refused(2);
}

#[test]
fn a_secret_that_others_can_read_is_refused() {
    for mode in [0o640, 0o604, 0o644, 0o660] {
        let file = file_of_mode(&format!("mode{mode:o}"), "twelve bytes\n", mode);
        serve("a", &file).refused_with(2, "chmod 600");
    }
}

#[test]
fn a_secret_is_in_a_regular_file() {
    for (file, what) in [
        (&*pipe("pipe"), "a pipe"),
        (env!("CARGO_TARGET_TMPDIR"), "a directory"),
        ("/dev/null", "a device"),
    ] {
        let line = serve("a", file).refused(2);
        assert!(line.contains(file) && line.contains(what), "{line}");
        assert!(line.contains("regular file"), "{line}");
    }
}

#[test]
fn a_user_that_no_login_can_name_is_refused() {
    let ours = file_of_mode("ours", "our own secret\n", 0o600);
    let theirs = file_of_mode("theirs", "their own secret\n", 0o600);
    for name in ["", "a\nb", &"x".repeat(300)] {
        serve(name, &theirs).refused_with(2, "--chap");
        let mutual = ["--mutual-user", name, "--mutual-secret-file", &ours];
        serve("a", &theirs)
            .args(mutual)
            .refused_with(2, "--mutual-user");
    }
}

#[test]
fn a_secret_is_12_to_255_bytes_of_the_first_line() {
    for (name, text) in [
        ("empty", ""),
        ("empty-line", "\n"),
        ("eleven", "eleven chrs\n"),
        ("first-line", "short\nsecond line is long enough"),
        ("long", &"x".repeat(256)),
    ] {
        let file = file_of_mode(&format!("length-{name}"), text, 0o600);
        serve("a", &file).refused_with(2, "12 to 255");
    }
}

#[test]
fn each_user_has_a_secret_file() {
    let file = file_of_mode("pair", "twelve bytes\n", 0o600);
    for options in [
        "--chap a",
        &format!("--secret-file {file}"),
        &format!("--chap a --chap b --secret-file {file}"),
        "--chap-min sha256",
        &format!("--mutual-user t --mutual-secret-file {file}"),
    ] {
        lunar(&format!("serve ram:1M {options}")).refused(2);
    }
}

#[test]
fn the_mutual_secret_differs() {
    let file = file_of_mode("same", "the same for both\n", 0o600);
    let mutual = ["--mutual-user", "t", "--mutual-secret-file", &file];
    serve("a", &file).args(mutual).refused_with(2, "differ");
}

#[test]
fn a_secret_file_that_is_not_there_is_a_failure() {
    serve("a", "/nonexistent/secret").refused(1);
}

#[test]
fn a_secret_never_shows() {
    let file = file_of_mode("shown", "opensesame1\n", 0o600);
    let line = serve("a", &file).refused(2);
    assert!(!line.contains("opensesame"), "{line}");
}

#[test]
fn a_file_that_holds_no_secret_is_told_in_one_line() {
    let open = file_of_mode("remote-open", "twelve bytes\n", 0o640);
    let short = file_of_mode("remote-short", "eleven octe\nand more", 0o600);
    for (path, words) in [
        ("/nonexistent/secret", "cannot read the secret in"),
        (&open, "is open to others (mode 640): chmod 600"),
        (&short, "is not a secret: 12 to 255 bytes are needed"),
        (
            &pipe("remote-pipe"),
            "is a pipe: put the secret into a regular file",
        ),
    ] {
        let unit = "iscsi://me@127.0.0.1:1/iqn.2026-11.org.example:x";
        for line in [
            format!("info {unit}?secret-file={path}"),
            format!("info {unit}?mutual-secret-file={path}&secret-file={path}"),
            format!("ls 127.0.0.1:1 --user me --secret-file {path}"),
        ] {
            let said = lunar(&line).refused(1);
            assert!(
                said.contains(words) && said.contains(path),
                "{line}: {said}"
            );
        }
    }
    lunar("ls 127.0.0.1:1 --secret-file /secret").refused(2);
}

#[test]
fn a_secret_is_random_and_only_its_owner_can_read_it() {
    let file = folder("secret-made").join("alice.secret");
    let printed = |line: &str| lunar(line).ran().out;
    let make = format!("secret {}", file.display());
    assert_eq!(printed(&make), "");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = fs::read_to_string(&file).unwrap();
    for secret in [&kept, &printed("secret")] {
        assert_eq!(secret.len(), 25, "{secret:?}");
        let mut bytes = secret.trim().bytes();
        assert!(bytes.all(|byte| byte.is_ascii_alphanumeric()));
    }
    assert_ne!(kept, printed("secret"));
    assert_eq!(printed("secret --length 255").len(), 256);

    lunar(&make).refused_with(1, "exists already");
    assert_eq!(fs::read_to_string(&file).unwrap(), kept);
    lunar("secret /nowhere/secret").refused_with(1, "cannot create /nowhere/secret");
    for length in ["11", "256", "x"] {
        lunar(&format!("secret --length {length}")).refused_with(2, "12 to 255 bytes");
    }
}

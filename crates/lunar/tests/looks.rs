//! `lunar info`, `lunar ls` and `lunar secret`: what a user sees, and wrong input.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

/// The program. `timeout` ends it where it does not end by itself, which no test expects.
fn program() -> Command {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "60", env!("CARGO_BIN_EXE_lunar")]);
    command
}

fn lunar(args: &[&str]) -> Output {
    let mut command = program();
    command.args(args).env_remove("LUNAR_SECRET");
    command.output().unwrap()
}

/// What is refused, on standard error alone.
#[track_caller]
fn refused(code: i32, args: &[&str]) -> String {
    let ran = lunar(args);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(code), "{args:?}: {said}");
    assert!(ran.stdout.is_empty(), "{args:?}");
    said
}

/// A port that takes connections and says nothing: a person is told before the login times out.
#[test]
fn a_mute_portal_is_named_while_it_is_waited_for() {
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = mute.local_addr().unwrap().to_string();
    let unit = format!("iscsi://{portal}/iqn.2026-11.org.example:mute/0");
    let all = format!("iscsi://{portal}");
    for args in [["info", &unit], ["ls", &all]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lunar"));
        let command = command.args(args).stdout(Stdio::null());
        let mut ran = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(ran.stderr.take().unwrap()).lines();
        let told = format!("waiting for {portal} to answer the login");
        // It ends by itself, after 15 s.
        let mut said = Vec::new();
        let is_told = lines.map_while(Result::ok).any(|line| {
            said.push(line);
            said.iter().any(|line| line.contains(&told))
        });
        ran.kill().unwrap();
        ran.wait().unwrap();
        assert!(is_told, "{args:?}: {said:?}");
    }
}

#[test]
fn a_volume_tells_of_those_that_it_is_made_of() {
    let ran = lunar(&["info", "stripe:64k(ram:1M,readonly(ram:1M))"]);
    assert_eq!(ran.status.code(), Some(0));
    let said = String::from_utf8(ran.stdout).unwrap();
    let names: Vec<_> = said
        .lines()
        .filter(|line| !line.contains("  can "))
        .collect();
    let heads = names
        .iter()
        .filter(|line| line.trim_end().ends_with([')', 'M']));
    let heads: Vec<_> = heads.filter(|line| line.contains(':')).collect();
    let expected = [
        "stripe:64k(ram:1M,readonly(ram:1M))",
        "  ram:1M",
        "  readonly(ram:1M)",
        "    ram:1M",
    ];
    assert_eq!(heads, expected.iter().collect::<Vec<_>>());
    assert!(
        said.contains("2.0 MiB (2097152 bytes, 4096 blocks of 512)"),
        "{said}"
    );
}

#[test]
fn json_tells_the_same_of_all_of_them() {
    let ran = lunar(&["info", "stripe:64k(ram:1M,readonly(ram:1M))", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&told["size_bytes"], &told["read_only"]),
        (&(2 << 20).into(), &true.into())
    );
    assert_eq!(told["parts"][0]["read_only"], false);
    assert_eq!(told["parts"][1]["read_only"], true);
    assert_eq!(told["parts"][1]["parts"][0]["address"], "ram:1M");
    assert_eq!(told.get("identity"), Some(&serde_json::Value::Null));
}

/// No name server is asked for a name with an empty part.
#[test]
fn what_is_not_there_is_told_in_one_line() {
    let cases: [(&[&str], &str); 7] = [
        (
            &["info", "file:/none/there"],
            "file:/none/there: no such file, and none is created",
        ),
        (
            &["info", "file:/tmp"],
            "file:/tmp: this is neither a file nor",
        ),
        (
            &["info", "iscsi://nowhere..invalid/iqn.2026-11.org.example:x"],
            "nowhere..invalid cannot be resolved",
        ),
        (&["ls", "nowhere..invalid"], "check its spelling, or give"),
        (
            &["info", "iscsi://127.0.0.1:1/iqn.2026-11.org.example:x"],
            "cannot connect",
        ),
        (&["ls", "127.0.0.1:1"], "no server listens there"),
        (&["ls", "127.0.0.1:1", "--user", "me"], "--secret-file FILE"),
    ];
    for (args, words) in cases {
        let said = refused(1, args);
        assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn wrong_input_is_told_before_anything_is_tried() {
    let cases: [(&[&str], &str); 11] = [
        (&["info"], "not provided"),
        (
            &["info", "iscsi://san/iqn.2026-11.a:b/0?initiator=host"],
            "such as iqn.2026-11.org.example:host",
        ),
        (
            &["ls", "127.0.0.1:1", "--initiator", "host"],
            "such as iqn.2026-11.org.example:host",
        ),
        (&["info", "ram:1Q"], "k, M, G, T"),
        (&["ls", "cable:san.sock"], "write fcoe://cable:san.sock"),
        (&["ls", "ram:1G"], "try lunar info 'ram:1G'"),
        (&["ls", "file:x"], "try lunar info 'file:x'"),
        (&["ls", "localhost", "--user", ""], "--user"),
        (&["ls", "::1"], "stands in brackets"),
        (&["ls", "127.0.0.1:99999"], "port"),
        (&["ls", "iser://san"], "does not support iSER"),
    ];
    for (args, words) in cases {
        let said = refused(2, args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn an_ethernet_without_a_target_is_told_and_its_ports_are_listed() {
    let cable = std::env::temp_dir().join(format!("lunar-nobody-{}", std::process::id()));
    let portal = format!("fcoe://cable:{}", cable.display());
    let ran = lunar(&["ls", &portal]);
    fs::remove_file(&cable).ok();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    let listed = String::from_utf8(ran.stdout).unwrap();
    assert!(listed.contains("(ours)"), "{listed}");
    let words = format!("lunar: {portal} shows no targets");
    assert!(said.lines().any(|line| line == words), "{said}");
}

#[test]
fn a_file_that_holds_no_secret_is_told_in_one_line() {
    let folder = std::env::temp_dir().join(format!("lunar-secrets-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let file = |name: &str, mode| {
        let path = folder.join(name);
        fs::write(&path, "twelve bytes\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    file("open", 0o640);
    file("short", 0o600);
    fs::write(folder.join("short"), "eleven octe\nand more").unwrap();
    let mkfifo = ["-m", "600"];
    let pipe = Command::new("mkfifo")
        .args(mkfifo)
        .arg(folder.join("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    for (name, words) in [
        ("none", "cannot read the secret in"),
        ("open", "is open to others (mode 640): chmod 600"),
        ("short", "is not a secret: 12 to 255 bytes are needed"),
        ("pipe", "is a pipe: put the secret into a regular file"),
    ] {
        let path = folder.join(name).display().to_string();
        let unit = "iscsi://me@127.0.0.1:1/iqn.2026-11.org.example:x";
        for said in [
            refused(1, &["info", &format!("{unit}?secret-file={path}")]),
            refused(
                1,
                &[
                    "info",
                    &format!("{unit}?mutual-secret-file={path}&secret-file={path}"),
                ],
            ),
            refused(
                1,
                &["ls", "127.0.0.1:1", "--user", "me", "--secret-file", &path],
            ),
        ] {
            assert_eq!(said.lines().count(), 1, "{name}: {said}");
            assert!(
                said.contains(words) && said.contains(&path),
                "{name}: {said}"
            );
        }
    }
    fs::remove_dir_all(folder).unwrap();
    refused(2, &["ls", "127.0.0.1:1", "--secret-file", "/secret"]);
}

#[test]
fn a_secret_is_random_and_only_its_owner_can_read_it() {
    let dir = std::env::temp_dir().join(format!("lunar-secret-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let file = dir.join("alice.secret");
    let file = file.to_str().unwrap();
    let printed = |args: &[&str]| String::from_utf8(lunar(args).stdout).unwrap();
    assert_eq!(printed(&["secret", file]), "");
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let kept = fs::read_to_string(file).unwrap();
    for secret in [&kept, &printed(&["secret"])] {
        assert_eq!(secret.len(), 25, "{secret:?}");
        assert!(
            secret
                .trim()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric())
        );
    }
    assert_ne!(kept, printed(&["secret"]));
    assert_eq!(printed(&["secret", "--length", "255"]).len(), 256);

    let said = refused(1, &["secret", file]);
    assert!(said.contains("exists already"), "{said}");
    assert_eq!(fs::read_to_string(file).unwrap(), kept);
    let said = refused(1, &["secret", "/nowhere/secret"]);
    assert!(said.contains("cannot create /nowhere/secret"), "{said}");
    for length in ["11", "256", "x"] {
        let said = refused(2, &["secret", "--length", length]);
        assert!(said.contains("12 to 255 bytes"), "{said}");
    }
    fs::remove_dir_all(dir).unwrap();
}

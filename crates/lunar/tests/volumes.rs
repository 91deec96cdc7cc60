//! What is wrong with the volumes of a command, and what is left behind by a command that failed.
#![expect(clippy::unwrap_used, reason = "a test ends by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

#[test]
fn a_serial_number_is_for_one_volume() {
    let two = ["ram:1M", "4=ram:1M"];
    for (serials, told) in [
        (&["--serial", "S1"][..], "--serial 0=S1"),
        (&["--serial", "1=S1"], "no volume has this LUN"),
        (&["--serial", "4=S1", "--serial", "4=S2"], "given twice"),
        (&["--serial", "0=S1", "--serial", "4=S1"], "each its own"),
        (&["--serial", "4=caf\u{e9}"], "printable ASCII"),
    ] {
        let line = refused(&[&two, serials].concat());
        assert!(line.contains("--serial") && line.contains(told), "{line}");
    }
}

#[test]
fn a_number_in_front_of_a_volume_is_a_lun_of_its_own() {
    for (volumes, told) in [
        (
            ["2=ram:1M", "2=null:1M"],
            "LUN 2 is both ram:1M and null:1M",
        ),
        (["16384=ram:1M", "ram:1M"], "a number from 0 to 16383"),
        (["16383=ram:1M", "ram:1M"], "a number from 0 to 16383"),
        (["-1=ram:1M", "ram:1M"], "-1"),
        (["3=", "ram:1M"], "an address is expected here"),
    ] {
        let ran = lunar(&["serve", volumes[0], volumes[1]]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(told), "{volumes:?}: {}", ran.err);
    }
}

/// What is read-only may be opened twice, but not be shown as two disks.
#[test]
fn one_volume_is_not_served_as_two() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("served-twice");
    fs::write(&file, [7; 1 << 20]).unwrap();
    let address = format!("file:{}?readonly", file.display());
    let ran = lunar(&[
        "serve",
        &address,
        &format!("readonly({address})"),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
    assert!(
        ran.err.contains("are the same volume") && ran.err.contains("--serial 1=TEXT"),
        "{}",
        ran.err
    );
}

/// Files that were made or extended for volumes before the one that cannot be had.
#[test]
fn a_command_that_fails_leaves_files_as_they_were() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("as-they-were");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(at("old"), [7; 4096]).unwrap();
    let new = format!("file:{}?size=1M", at("new"));
    let old = format!("file:{}?size=1M&sparse", at("old"));
    let within = format!("concat(file:{}?size=1M,{old})", at("inner"));
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    for (volumes, listen) in [
        ([&*new, &old, "file:/nonexistent/disk"], "127.0.0.1:0"),
        ([&new, &within, "file:/nonexistent/disk"], "127.0.0.1:0"),
        (["null:1M", &new, &within], &taken),
    ] {
        let ran = lunar(&[&["serve"], &volumes[..], &["--listen", listen]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let left = fs::read_dir(&folder).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["old"], "{volumes:?}: {}", ran.err);
        assert_eq!(fs::read(at("old")).unwrap(), [7; 4096], "{volumes:?}");
    }
}

#[test]
fn what_no_volume_can_be_is_malformed() {
    for (address, told) in [
        ("ram:100", "one block of 512 bytes"),
        ("null:511", "one block of 512 bytes"),
        ("iscsi://127.0.0.1:1/iqn.x", "YYYY-MM"),
        ("iscsi://127.0.0.1:1/eui.12/0", "16 hexadecimal digits"),
        (
            "limit:iops=1(iscsi://127.0.0.1:1/iqn.2026-11.a%2fb)",
            "has no spaces",
        ),
    ] {
        for verb in ["serve", "info"] {
            let ran = lunar(&[verb, address]);
            assert_eq!(ran.code, Some(2), "{verb} {address}: {}", ran.err);
            assert!(ran.err.contains(told), "{verb} {address}: {}", ran.err);
        }
    }
    let line = refused(&["ram:1k", "--block-size", "4096"]);
    assert!(line.contains("ram:1k") && line.contains("4096"), "{line}");
}

/// It is killed when the test ends.
struct Server(Child);

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut command = program();
        command.arg("serve").args(args);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(piped.spawn().unwrap())
    }

    fn ready(&mut self) -> String {
        let mut line = String::new();
        let out = self.0.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // timeout(1) passes it on.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.0.wait();
    }
}

/// As after a power cut.
#[test]
fn a_gateway_waits_for_a_target_that_starts_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    drop(listener);
    let address = format!("iscsi://{place}/iqn.2026-11.org.lunar:later/0");
    let args = [&*address, "--iqn", "iqn.2026-11.org.lunar:first"];
    let args = [&args[..], &["--listen", "127.0.0.1:0"]].concat();
    let mut gateway = Server::start(&[&args[..], &["--wait", "50s"]].concat());
    let mut log = BufReader::new(gateway.0.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert!(line.contains("yet") && line.contains(&address), "{line}");
    let name = ["--iqn", "iqn.2026-11.org.lunar:later", "--listen", &place];
    let mut target = Server::start(&[&["ram:1M"], &name[..]].concat());
    assert!(target.ready().starts_with("iscsi://"));
    let ready = gateway.ready();
    assert!(ready.contains("iqn.2026-11.org.lunar:first/0"), "{ready}");
    // It logs out, while there is a target.
    drop(gateway);
}

#[test]
fn a_gateway_without_wait_ends_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    drop(listener);
    let address = format!("iscsi://{place}/iqn.2026-11.org.lunar:later/0");
    let ran = lunar(&["serve", &address, "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("cannot connect"), "{}", ran.err);
}

#[test]
fn a_gateway_that_has_waited_long_enough_serves_without_its_target() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    drop(listener);
    let address = format!("iscsi://{place}/iqn.2026-11.org.lunar:later/0");
    let wait = [&address, "--listen", "127.0.0.1:0", "--wait", "300ms"];
    let mut gateway = Server::start(&wait);
    let ready = gateway.ready();
    assert!(ready.contains("  absent  "), "{ready}");
}

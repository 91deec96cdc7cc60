//! What is wrong with the volumes of a command, and what is left behind by a command that failed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::rig::{Run, file, first_line, folder, lunar, signal, taken_portal};

#[test]
fn a_serial_number_is_for_one_volume() {
    for (serials, told) in [
        ("--serial S1", "--serial 0=S1"),
        ("--serial 1=S1", "no volume has this LUN"),
        ("--serial 4=S1 --serial 4=S2", "given twice"),
        ("--serial 0=S1 --serial 4=S1", "each its own"),
        ("--serial 4=caf\u{e9}", "printable ASCII"),
    ] {
        let line = lunar(&format!("serve ram:1M 4=ram:1M {serials}")).refused(2);
        assert!(line.contains("--serial") && line.contains(told), "{line}");
    }
}

#[test]
fn a_number_in_front_of_a_volume_is_a_lun_of_its_own() {
    for (volumes, told) in [
        ("2=ram:1M 2=null:1M", "LUN 2 is both ram:1M and null:1M"),
        ("16384=ram:1M ram:1M", "a number from 0 to 16383"),
        ("16383=ram:1M ram:1M", "a number from 0 to 16383"),
        ("-1=ram:1M ram:1M", "-1"),
        ("3= ram:1M", "an address is expected here"),
    ] {
        let ran = lunar(&format!("serve {volumes}")).ran();
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(told), "{volumes:?}: {}", ran.err);
    }
}

/// Nothing is taken of what cannot be taken whole: no process is killed for it.
#[test]
fn a_locked_ram_disk_is_taken_whole_or_not_at_all() {
    for (address, code, told) in [
        (
            "ram:1P?locked",
            1,
            "ram:1P?locked: it takes 1125899906842624 bytes at once",
        ),
        ("ram:64k?locked=yes", 2, "\"locked\" takes no value"),
        ("null:64k?locked", 2, "\"null\" has no option \"locked\""),
    ] {
        let ran = lunar(&format!("serve {address}")).ran();
        assert_eq!(ran.code, Some(code), "{}", ran.err);
        assert!(ran.err.contains(told), "{address}: {}", ran.err);
    }
    let ran = lunar("info stats(ram:64k?locked)").ran();
    if ran.err.contains("RLIMIT_MEMLOCK") {
        return eprintln!("skipped: {}", ran.err);
    }
    let anchors = ran.out.lines().filter(|line| line.contains("can anchor"));
    assert!(anchors.clone().count() == 2 && anchors.clone().all(|line| line.ends_with("yes")));
    assert!(ran.out.contains("\n  ram:64k?locked\n"), "{}", ran.out);
}

/// What is read-only may be opened twice, but not be shown as two disks.
#[test]
fn one_volume_is_not_served_as_two() {
    let file = file("served-twice");
    fs::write(&file, [7; 1 << 20]).unwrap();
    let address = format!("file:{}?readonly", file.display());
    let line = format!("serve {address} readonly({address}) --listen 127.0.0.1:0");
    let ran = lunar(&line).ran();
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
    let folder = folder("as-they-were");
    let at = |name: &str| folder.join(name).display().to_string();
    fs::write(at("old"), [7; 4096]).unwrap();
    let new = format!("file:{}?size=1M", at("new"));
    let old = format!("file:{}?size=1M&sparse", at("old"));
    let within = format!("concat(file:{}?size=1M,{old})", at("inner"));
    let (_holder, taken) = taken_portal();
    for volumes in [
        format!("{new} {old} file:/nonexistent/disk --listen 127.0.0.1:0"),
        format!("{new} {within} file:/nonexistent/disk --listen 127.0.0.1:0"),
        format!("null:1M {new} {within} --listen {taken}"),
    ] {
        let ran = lunar(&format!("serve {volumes}")).ran();
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
            let ran = lunar(&format!("{verb} {address}")).ran();
            assert_eq!(ran.code, Some(2), "{verb} {address}: {}", ran.err);
            assert!(ran.err.contains(told), "{verb} {address}: {}", ran.err);
        }
    }
    let line = lunar("serve ram:1k --block-size 4096").refused(2);
    assert!(line.contains("ram:1k") && line.contains("4096"), "{line}");
}

/// It is killed when the test ends.
struct Server(Child);

impl Server {
    fn start(words: &str) -> Self {
        let mut command = lunar(&format!("serve {words}"));
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(piped.spawn().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // timeout(1) passes it on.
        signal("TERM", self.0.id());
        let _ = self.0.wait();
    }
}

/// A place where a target may be later, and its address.
fn later() -> (String, String) {
    let (_, place) = taken_portal();
    let address = format!("iscsi://{place}/iqn.2026-11.org.lunar:later/0");
    (place, address)
}

/// As after a power cut.
#[test]
fn a_gateway_waits_for_a_target_that_starts_later() {
    let (place, address) = later();
    let name = "--iqn iqn.2026-11.org.lunar:first";
    let mut gateway = Server::start(&format!("{address} {name} --listen 127.0.0.1:0 --wait 50s"));
    let mut log = BufReader::new(gateway.0.stderr.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    assert!(line.contains("yet") && line.contains(&address), "{line}");
    let name = "--iqn iqn.2026-11.org.lunar:later";
    let mut target = Server::start(&format!("ram:1M {name} --listen {place}"));
    assert!(first_line(&mut target.0).starts_with("iscsi://"));
    let ready = first_line(&mut gateway.0);
    assert!(ready.contains("iqn.2026-11.org.lunar:first/0"), "{ready}");
    // It logs out, while there is a target.
    drop(gateway);
}

#[test]
fn a_gateway_without_wait_ends_at_once() {
    let (_, address) = later();
    let ran = lunar(&format!("serve {address} --listen 127.0.0.1:0")).ran();
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("cannot connect"), "{}", ran.err);
}

#[test]
fn a_gateway_that_has_waited_long_enough_serves_without_its_target() {
    let (_, address) = later();
    let mut gateway = Server::start(&format!("{address} --listen 127.0.0.1:0 --wait 300ms"));
    let ready = first_line(&mut gateway.0);
    assert!(ready.contains("  absent  "), "{ready}");
}

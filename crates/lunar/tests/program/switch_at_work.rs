//! `lunar switch` in a network namespace: what it says of its interfaces, of the other switch of
//! its fabric, and of its zones.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::namespace::Namespace;
use crate::rig::{LUNAR, PATIENCE, Run, file, first_line};

/// A switch that is ready, and its log.
struct Switch(Child, BufReader<ChildStderr>);

impl Switch {
    fn start(namespace: &Namespace, words: &str) -> Self {
        let mut switch = namespace.command("setpriv");
        switch.args(["--pdeathsig", "KILL", LUNAR, "switch"]);
        let switch = switch.args(words.split_whitespace());
        let switch = switch.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = switch.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        assert!(!first_line(&mut child).is_empty(), "it has ended");
        Self(child, log)
    }

    /// The next line of the log that says this. None before it says the other.
    #[track_caller]
    fn logs_before(&mut self, words: &str, not: &str) {
        let mut text = String::new();
        while !text.contains(words) {
            assert_ne!(self.1.read_line(&mut text).unwrap(), 0, "{words}: {text}");
        }
        assert!(!text.contains(not), "{text}");
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A namespace in which `va` and `vb` are the ends of one Ethernet.
fn namespace(mtu: u32) -> Namespace {
    let namespace = Namespace::new();
    namespace.sh(&format!(
        "ip link add va mtu {mtu} up type veth peer name vb mtu {mtu} && ip link set vb up"
    ));
    namespace
}

const NAMES: &str = "--open --fka 1s --switch-name 10:00:02:00:00:00:00:01 \
                     --fabric-name 20:00:02:00:00:00:00:02";

/// Names both, and so whom it waits for.
const WAITS: &str = "standing by for switch 10:00:02:00:00:00:00:01 of fabric \
                     20:00:02:00:00:00:00:02";

#[test]
fn an_mtu_that_is_short_is_told_with_what_fits() {
    let namespace = namespace(1500);
    let mut switch = Switch::start(&namespace, "va --open");
    let told = "va: an MTU of 1500 limits frames to 1452 of 2112 bytes of payload";
    switch.logs_before(told, "is gone");
}

#[test]
fn a_standby_says_for_whom_and_takes_over() {
    let namespace = namespace(2500);
    let active = Switch::start(&namespace, &format!("va {NAMES}"));
    let mut standby = Switch::start(&namespace, &format!("vb {NAMES} --standby"));
    let active_now = "this one is active now";
    standby.logs_before(WAITS, active_now);
    // Without the other one it would be active after 2.5 periods.
    thread::sleep(Duration::from_secs(4));
    drop(active);
    let taken_over = format!("is gone: {active_now}");
    standby.logs_before(&taken_over, "no other switch");
}

#[test]
fn a_standby_of_none_becomes_active() {
    let namespace = namespace(2500);
    let mut standby = Switch::start(&namespace, &format!("vb {NAMES} --standby"));
    let active_now = "this one is active now";
    standby.logs_before(WAITS, active_now);
    let alone = format!("no other switch of these names was heard: {active_now}");
    standby.logs_before(&alone, "is gone");
}

#[test]
fn zones_are_listed_with_those_of_each_port() {
    let namespace = Namespace::new();
    let cable = std::env::temp_dir().join(format!("lunar-{}-zoned", std::process::id()));
    let (cable, zones) = (format!("cable:{}", cable.display()), file("zones-listed"));
    let text = format!(
        "zone disks = port:{cable} 20:00:02:00:00:00:00:07\n\
         zone spare = 20:00:02:00:00:00:00:08\n\
         zoneset day = disks spare\nzoneset night = spare\nactive day\n"
    );
    fs::write(&zones, text).unwrap();
    let words = format!("{cable} --fka 1s --zones {}", zones.display());
    let _switch = Switch::start(&namespace, &words);
    let line = format!("serve ram:1M --open --fcoe {cable},mode=fabric");
    let _server = namespace.start(&line);
    let deadline = Instant::now() + PATIENCE;
    let listed = loop {
        let told = namespace.lunar("ls switch --json").ran();
        let listed: Value = serde_json::from_str(&told.out).unwrap();
        if listed["logins_total"] == 1 {
            break listed;
        }
        assert!(Instant::now() < deadline, "{listed}");
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(listed["zone_set"], "day", "{listed}");
    assert_eq!(listed["zones"].to_string(), r#"["disks","spare"]"#);
    let of_port = &listed["logins"][0]["zones"];
    assert_eq!(of_port.to_string(), r#"["disks"]"#);
    let table = namespace.lunar("ls switch").ran();
    let is_row = |line: &&str| line.trim_end().ends_with("  disks");
    assert_eq!(table.out.lines().filter(is_row).count(), 1, "{}", table.out);
    assert!(table.out.contains("  day\n"), "{}", table.out);
}

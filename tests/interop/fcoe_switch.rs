//! A switch between two of our own: a server behind one cable, its user behind another; and hosts
//! made up for tests.

mod ends;
mod fdmi;
mod hostile;
mod hostile_frames;
mod npiv;
mod views;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server::{self, Server};
use tests::tool;

use crate::{LIMIT, file, lunar_says};

/// A folder with cables, and a switch that has the first end of each.
struct Fabric {
    dir: PathBuf,
    switch: Child,
}

impl Fabric {
    fn start(name: &str, options: &[&str]) -> Self {
        Self::with_cables(tests::scratch(name).unwrap(), &["a", "b"], options)
    }

    /// In this folder, with cables of these names.
    fn with_cables(dir: PathBuf, cables: &[&str], options: &[&str]) -> Self {
        let places: Vec<_> = cables.iter().map(|name| cable(&dir, name)).collect();
        let switch = Command::new(server::binary().unwrap());
        Self::begin(switch, dir, &places, options)
    }

    /// A switch that this command becomes, at these places.
    fn begin(mut switch: Command, dir: PathBuf, places: &[String], options: &[&str]) -> Self {
        // Behind what the switch before this one has logged.
        let mut log = fs::File::options();
        log.create(true).append(true);
        let log = log.open(dir.join("switch.log")).unwrap();
        let ring = std::env::var("LUNAR_RING").unwrap_or_else(|_| "auto".to_owned());
        let mut switch = switch
            .arg("switch")
            .args(places)
            .args(["--fka", "1s", "--ring", &ring])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut ready = BufReader::new(switch.stdout.take().unwrap());
        let mut line = String::new();
        ready.read_line(&mut line).unwrap();
        assert!(line.contains("  fabric 20:00:"), "{line}");
        Self { dir, switch }
    }

    /// A server in the fabric, and the address of its first LUN at the other cable.
    fn serve(&self, volumes: &[&str]) -> (Server, String) {
        let place = format!("{},mode=fabric", cable(&self.dir, "a"));
        let server = Server::start_in(&self.dir, volumes, &["--fcoe", &place]).unwrap();
        let (_, names) = server.address(0).split_once("/20:").unwrap();
        let names = names.split('?').next().unwrap();
        let unit = format!("fcoe://{}/20:{names}?mode=fabric", cable(&self.dir, "b"));
        (server, unit)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.join("switch.log")).unwrap()
    }

    fn signal(&self, signal: &str) {
        let pid = self.switch.id().to_string();
        tool::must(Command::new("kill").args([signal, &pid])).unwrap();
    }

    /// The switch ends. All that were logged in have logged out before.
    #[track_caller]
    fn ends_empty(&mut self) {
        self.signal("-TERM");
        assert!(self.switch.wait().unwrap().success());
        let log = self.log();
        for kept in ["is silent", "the switch ends"] {
            assert!(!log.contains(kept), "{kept:?} is in {log}");
        }
    }

    #[track_caller]
    fn logs(&self, words: &str) {
        let until = Instant::now() + LIMIT;
        while !self.log().contains(words) {
            assert!(Instant::now() < until, "{words:?} is not in {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = self.switch.kill();
        let _ = self.switch.wait();
    }
}

fn cable(dir: &Path, name: &str) -> String {
    format!("cable:{}", dir.join(name).display())
}

/// The members of zones that ports at these cables are.
fn members(dir: &Path, names: &[&str]) -> String {
    let places: Vec<_> = names
        .iter()
        .map(|name| format!("port:{}", cable(dir, name)))
        .collect();
    places.join(" ")
}

#[test]
fn a_unit_is_written_and_read_through_a_switch() {
    let mut fabric = Fabric::start("switch-through", &["--open"]);
    let (server, unit) = fabric.serve(&["ram:16M"]);
    fabric.logs("has logged in as 0x01");
    let bytes: Vec<u8> = (0..16_u32 << 18).flat_map(u32::to_le_bytes).collect();
    fs::write(fabric.dir.join("image"), &bytes).unwrap();
    lunar_says(&["copy", &file(&fabric.dir, "image"), &unit]);
    lunar_says(&["copy", &unit, &file(&fabric.dir, "back?size=16M")]);
    assert!(fs::read(fabric.dir.join("back")).unwrap() == bytes);
    fabric.signal("-USR1");
    fabric.logs("bytes forwarded");
    fabric.signal("-TERM");
    assert!(fabric.switch.wait().unwrap().success());
    fabric.logs("is logged out: the switch ends");
    server.stop_well().unwrap();
}

#[test]
fn a_port_sees_what_its_zones_have() {
    let zones = tests::scratch("switch-zones-file").unwrap().join("zones");
    fs::write(&zones, "default deny\n").unwrap();
    let options = ["--zones", zones.to_str().unwrap()];
    let fabric = Fabric::start("switch-zones", &options);
    let (server, unit) = fabric.serve(&["ram:1M"]);
    fabric.logs("has logged in as 0x01");
    crate::refused(&mut crate::lunar(&["info", &unit]));
    let text = format!(
        "zone all = {}\nzoneset day = all\nactive day\n",
        members(&fabric.dir, &["a", "b"])
    );
    fs::write(&zones, text).unwrap();
    fabric.signal("-HUP");
    fabric.logs("the zones were read again");
    lunar_says(&["info", &unit]);
    server.stop_well().unwrap();
}

/// The switch would keep its N_Port_ID until its keep alives are missed.
#[test]
fn what_finds_no_target_or_no_unit_logs_out_of_the_fabric() {
    let mut fabric = Fabric::start("switch-no-target", &["--open"]);
    let (server, unit) = fabric.serve(&["ram:1M"]);
    let target = &server.luns[0].target;
    let other_lun = unit.replace(&format!("{target}/0"), &format!("{target}/7"));
    let other_port = unit.replace(target.as_str(), "20:00:00:00:00:00:00:07");
    for wrong in [other_lun, other_port] {
        crate::refused(&mut crate::lunar(&["info", &wrong]));
    }
    server.stop_well().unwrap();
    fabric.ends_empty();
}

#[test]
fn without_zones_no_port_sees_another_which_is_told_once() {
    let fabric = Fabric::start("switch-closed", &[]);
    let (server, unit) = fabric.serve(&["ram:1M"]);
    fabric.logs("has logged in as 0x01");
    crate::refused(&mut crate::lunar(&["info", &unit]));
    let log = fabric.log();
    assert_eq!(log.matches("no port sees another").count(), 1, "{log}");
    server.stop_well().unwrap();
}

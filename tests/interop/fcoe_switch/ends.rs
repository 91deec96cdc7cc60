//! A switch that ends while a verified load goes through it, and is started again.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tests::{logins, server, tool};

use super::{Fabric, cable};
use crate::{LIMIT, lunar};

/// Neither the end without a word nor that with Clear Virtual Links costs an I/O or an N_Port_ID.
#[test]
fn a_load_goes_on_when_the_switch_is_killed_or_stopped_and_is_back() {
    let state = tests::scratch("switch-ends-state").unwrap();
    let options = ["--open", "--state", state.to_str().unwrap()];
    let mut fabric = Fabric::start("switch-ends", &options);
    let (server, unit) = fabric.serve(&["ram:16M"]);
    let mut load = load(&fabric, &unit);
    goes_on(&fabric);
    for signal in ["-KILL", "-TERM"] {
        let before = fabric.log().len();
        begins_again(&mut fabric, signal, &options);
        goes_on(&fabric);
        // Each of the two ports has found it at the first try.
        let log = fabric.log();
        assert_eq!(logins::logins(&log[before..]).count(), 2, "{log}");
    }
    let pid = load.0.id().to_string();
    tool::must(Command::new("kill").args(["-INT", &pid])).unwrap();
    // 1 would be that of an error.
    let interrupted = 130;
    assert_eq!(load.0.wait().unwrap().code(), Some(interrupted));
    logins::same_ids(&fabric.log(), 2).unwrap();
    server.stop().unwrap();
}

/// Writes, reads back and compares, at no more than 200 I/Os a second.
fn load(fabric: &Fabric, unit: &str) -> Load {
    let said = File::create(fabric.dir.join("bench.log")).unwrap();
    let options = "--rw randrw --bs 4k --iodepth 4 --rate-iops 200 --verify --runtime 1000s";
    let mut bench = Command::new(server::binary().unwrap());
    bench.args(["bench", unit]).args(options.split(' '));
    bench.stdin(Stdio::null()).stdout(Stdio::null());
    Load(bench.stderr(said).spawn().unwrap())
}

/// `lunar bench`, which does not outlive the test.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn begins_again(fabric: &mut Fabric, signal: &str, options: &[&str]) {
    fabric.signal(signal);
    let status = fabric.switch.wait().unwrap();
    assert_eq!(status.success(), signal == "-TERM", "{status}");
    let places = ["a", "b"].map(|name| cable(&fabric.dir, name));
    let switch = Command::new(server::binary().unwrap());
    *fabric = Fabric::begin(switch, fabric.dir.clone(), &places, options);
}

/// Waits until this very switch has forwarded what is more than logins: data of some 100 I/Os.
fn goes_on(fabric: &Fabric) {
    let until = Instant::now() + LIMIT;
    while forwarded(fabric) < 200 << 10 {
        assert!(Instant::now() < until, "no I/O: {}", fabric.log());
        thread::sleep(Duration::from_millis(100));
    }
}

/// Bytes that the switch has forwarded, as far as it tells.
fn forwarded(fabric: &Fabric) -> u64 {
    let own = u64::from(fabric.switch.id());
    // Those of other tests may not answer.
    let told = tool::run(&mut lunar(&["ls", "switch", "--json"]), LIMIT).unwrap();
    let mut switches = told.output.lines().map(serde_json::from_str::<Value>);
    let ports = switches.find_map(|one| {
        let one = one.ok()?;
        (one["pid"] == own).then(|| one["ports"].clone())
    });
    let ports = ports.unwrap_or_default();
    let bytes = ports.as_array().into_iter().flatten();
    bytes
        .filter_map(|port| port["forwarded_bytes"].as_u64())
        .sum()
}

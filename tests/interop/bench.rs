//! `lunar bench` against `lunar serve`: another process, over TCP.

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tests::server::Server;

use crate::{lunar, lunar_says, refused, says, words};

fn bench(address: &str, options: &str) -> Value {
    let short = "--json --runtime 300ms --ramp-time 50ms";
    let text = lunar_says(&words(&format!("bench {address} {short} {options}")));
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_remote_volume_is_measured_with_the_targets_cpu() {
    let server = Server::start("bench", &["ram:16M"], &[]).unwrap();
    let options = "--fill --rw randread --iodepth 16 --numjobs 2";
    let outcome = bench(server.address(0), options);
    let row = &outcome["rows"][0];
    assert!(row["reads"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(row["reads"]["errors"].as_u64(), Some(0));
    assert!(row["target_cpu_us"].as_u64().unwrap() > 0);
}

/// The session that a volume was opened by is not new when the first turn begins.
#[test]
fn a_race_has_the_cpu_of_targets_that_are_written_to() {
    let server = Server::start("race-cpu", &["ram:16M", "ram:16M"], &[]).unwrap();
    let short = "--json --rw randwrite --runtime 300ms --ramp-time 50ms";
    let (a, b) = (server.address(0), server.address(1));
    let text = lunar_says(&words(&format!("race {a} {b} {short}")));
    let outcome: Value = serde_json::from_str(text.trim()).unwrap();
    for row in outcome["rows"].as_array().unwrap() {
        assert!(row["target_cpu_us"].as_u64().unwrap() > 0, "{row}");
    }
}

/// A load that is under way now.
fn begun(address: &str) -> Child {
    let options = "--json --ramp-time 50ms --runtime 1500ms";
    let mut command = lunar(&words(&format!("bench {address} {options}")));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    thread::sleep(Duration::from_millis(800));
    child
}

/// What it says on standard error, and its outcome.
fn ends(child: Child, code: i32) -> (String, Value) {
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(code), "{said}");
    (said, serde_json::from_slice(&ran.stdout).unwrap())
}

/// What is in flight then is no success.
#[test]
fn a_target_that_dies_is_a_failure() {
    let server = Server::start("bench-dead", &["ram:16M"], &[]).unwrap();
    let child = begun(&format!("{}?replacement=2s", server.address(0)));
    server.kill().unwrap();
    let (said, outcome) = ends(child, 1);
    says(said.lines().last().unwrap(), &["read of 4096"]);
    assert_eq!(outcome["rows"][0]["reads"]["errors"], 1, "{outcome}");
}

/// It comes back behind the end of the row.
#[test]
fn an_io_that_hangs_is_in_the_row() {
    let server = Server::start("bench-hangs", &["ram:16M"], &[]).unwrap();
    let child = begun(server.address(0));
    server.freeze().unwrap();
    thread::sleep(Duration::from_millis(2000));
    server.signal("-CONT").unwrap();
    let (_, outcome) = ends(child, 0);
    let slowest = outcome["rows"][0]["reads"]["latency"]["max_ns"].as_u64();
    assert!(slowest.unwrap() > 1_500_000_000, "{slowest:?}");
}

/// Writes and verifies at random.
fn verified(address: &str, options: &str) {
    let load = format!("--fill --verify --rw randrw --iodepth 16 {options}");
    let outcome = bench(address, &load);
    let row = &outcome["rows"][0];
    assert!(row["writes"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(row["reads"]["errors"].as_u64(), Some(0));
}

#[test]
fn data_is_right_over_a_stripe_of_targets() {
    let server = Server::start("bench-verify", &["ram:8M", "ram:8M"], &[]).unwrap();
    let stripe = format!("stripe:64k({},{})", server.address(0), server.address(1));
    verified(&stripe, "--bs 16k");
}

#[test]
fn data_is_right_over_several_sessions() {
    let options = ["--threads", "2"];
    let server = Server::start("bench-spread", &["ram:16M"], &options).unwrap();
    verified(&format!("{}?sessions=4", server.address(0)), "");
}

#[test]
fn a_target_with_room_for_fewer_sessions_says_for_how_many() {
    let options = ["--max-sessions", "2"];
    let server = Server::start("bench-room", &["ram:16M"], &options).unwrap();
    let address = format!("{}?sessions=3", server.address(0));
    let told = refused(&mut lunar(&["info", &address]));
    let said = [
        "accepts 2 of 3 sessions",
        "accepts no more sessions",
        "give sessions=2",
    ];
    says(&told, &said);
    assert_eq!(told.lines().count(), 1, "{told}");
}

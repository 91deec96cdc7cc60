//! `lunar bench` against `lunar serve`: another process, over TCP.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tests::server::{self, Server};
use tests::tool;

fn bench(address: &str, words: &[&str]) -> Value {
    let mut command = Command::new(server::binary().unwrap());
    command.args([
        "bench",
        address,
        "--json",
        "--runtime",
        "300ms",
        "--ramp-time",
        "50ms",
    ]);
    let text = tool::must(command.args(words)).unwrap();
    serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn a_remote_volume_is_measured_with_the_targets_cpu() {
    let server = Server::start("bench", &["ram:16M"], &[]).unwrap();
    let words = [
        "--fill",
        "--rw",
        "randread",
        "--iodepth",
        "16",
        "--numjobs",
        "2",
    ];
    let outcome = bench(server.address(0), &words);
    let row = &outcome["rows"][0];
    assert!(row["reads"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(row["reads"]["errors"].as_u64(), Some(0));
    assert!(row["target_cpu_us"].as_u64().unwrap() > 0);
}

fn begun(address: &str, words: &[&str]) -> Child {
    let mut command = Command::new(server::binary().unwrap());
    command.args(["bench", address, "--json", "--ramp-time", "50ms"]);
    command.args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What is in flight then is no success.
#[test]
fn a_target_that_dies_is_a_failure() {
    let server = Server::start("bench-dead", &["ram:16M"], &[]).unwrap();
    let address = format!("{}?replacement=2s", server.address(0));
    let child = begun(&address, &["--runtime", "1500ms"]);
    thread::sleep(Duration::from_millis(800));
    server.kill().unwrap();
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(
        said.lines().last().unwrap().contains("read of 4096"),
        "{said}"
    );
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(outcome["rows"][0]["reads"]["errors"], 1, "{outcome}");
}

/// It comes back behind the end of the row.
#[test]
fn an_io_that_hangs_is_in_the_row() {
    let server = Server::start("bench-hangs", &["ram:16M"], &[]).unwrap();
    let child = begun(server.address(0), &["--runtime", "1500ms"]);
    thread::sleep(Duration::from_millis(800));
    server.signal("-STOP").unwrap();
    thread::sleep(Duration::from_millis(2000));
    server.signal("-CONT").unwrap();
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{said}");
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let slowest = outcome["rows"][0]["reads"]["latency"]["max_ns"].as_u64();
    assert!(slowest.unwrap() > 1_500_000_000, "{slowest:?}");
}

#[test]
fn data_is_right_over_a_stripe_of_targets() {
    let server = Server::start("bench-verify", &["ram:8M", "ram:8M"], &[]).unwrap();
    let stripe = format!("stripe:64k({},{})", server.address(0), server.address(1));
    let words = [
        "--fill",
        "--verify",
        "--rw",
        "randrw",
        "--bs",
        "16k",
        "--iodepth",
        "16",
    ];
    let outcome = bench(&stripe, &words);
    let row = &outcome["rows"][0];
    assert!(row["writes"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(row["reads"]["errors"].as_u64(), Some(0));
}

#[test]
fn data_is_right_over_several_sessions() {
    let options = ["--threads", "2"];
    let server = Server::start("bench-spread", &["ram:16M"], &options).unwrap();
    let address = format!("{}?sessions=4", server.address(0));
    let words = ["--fill", "--verify", "--rw", "randrw", "--iodepth", "16"];
    let outcome = bench(&address, &words);
    let row = &outcome["rows"][0];
    assert!(row["writes"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(row["reads"]["errors"].as_u64(), Some(0));
}

#[test]
fn a_target_with_room_for_fewer_sessions_says_for_how_many() {
    let options = ["--max-sessions", "2"];
    let server = Server::start("bench-room", &["ram:16M"], &options).unwrap();
    let mut command = Command::new(server::binary().unwrap());
    command.args(["info", &format!("{}?sessions=3", server.address(0))]);
    let told = tool::run(&mut command, Duration::from_secs(30)).unwrap();
    let code = told.status.and_then(|status| status.code());
    assert_eq!(code, Some(1), "{}", told.output);
    for said in [
        "accepts 2 of 3 sessions",
        "accepts no more sessions",
        "give sessions=2",
    ] {
        assert!(told.output.contains(said), "{}", told.output);
    }
    assert_eq!(told.output.lines().count(), 1, "{}", told.output);
}

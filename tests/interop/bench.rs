//! `lunar bench` against `lunar serve`: another process, over TCP.

use std::process::Command;

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

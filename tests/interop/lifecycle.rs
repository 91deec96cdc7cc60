//! How a server starts and ends.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::client::Client;
use tests::initiator::Reply;
use tests::server::{self, Server};
use tests::tool::{self, Ran};

fn lunar(args: &[&str]) -> Ran {
    let mut command = Command::new(server::binary().unwrap());
    tool::run(command.args(args), Duration::from_secs(20)).unwrap()
}

fn code(ran: &Ran) -> Option<i32> {
    ran.status.and_then(|status| status.code())
}

#[test]
fn the_ready_line_is_for_people_and_scripts() {
    let state = tests::scratch("ready-line").unwrap();
    let options = [
        "--listen",
        "127.0.0.1:0",
        "--iqn",
        "iqn.2026-11.org.example:A",
        "--state-dir",
    ];
    let mut child = Command::new(server::binary().unwrap())
        .args(["serve", "ram:1G", "null:1536M"])
        .args(options)
        .arg(state)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<_> = out.lines().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    for (line, (lun, size, volume)) in lines
        .iter()
        .zip([(0, "1.0 GiB", "ram:1G"), (1, "1.5 GiB", "null:1536M")])
    {
        let parts: Vec<_> = line.split("  ").collect();
        assert_eq!(parts[1..], [size, volume]);
        assert!(parts[0].starts_with("iscsi://127.0.0.1:"), "{line}");
        assert!(
            parts[0].ends_with(&format!("/iqn.2026-11.org.example:a/{lun}")),
            "{line}"
        );
    }
}

#[test]
fn told_to_stop_it_ends_with_0() {
    let server = Server::start("stop", &["ram:16M"], &[]).unwrap();
    let start = Instant::now();
    assert_eq!(server.stop().unwrap().code(), Some(0));
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "nobody was logged in"
    );
}

#[test]
fn initiators_are_asked_to_log_out() {
    let server = Server::start("async", &["ram:16M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    let stopping = thread::spawn(move || server.stop().unwrap());
    // Async event 1: the target requests logout (RFC 7143 §11.9.1).
    assert_eq!(client.reply().unwrap(), Reply::Async(1));
    client.initiator.log_out();
    assert_eq!(client.reply().unwrap(), Reply::LoggedOut(0));
    drop(client);
    assert_eq!(stopping.join().unwrap().code(), Some(0));
}

#[test]
fn an_initiator_that_stays_is_given_5_seconds() {
    let server = Server::start("stays", &["ram:16M"], &[]).unwrap();
    let client = Client::log_in(&server.luns[0], 1).unwrap();
    let start = Instant::now();
    assert_eq!(server.stop().unwrap().code(), Some(0));
    let took = start.elapsed();
    assert!((4..9).contains(&took.as_secs()), "{took:?}");
    drop(client);
}

#[test]
fn what_cannot_be_opened_is_a_failure() {
    let bad = [
        "file:/nonexistent/disk?size=1M",
        "block:/dev/null",
        "block:/nonexistent",
    ];
    for address in bad {
        let ran = lunar(&["serve", "ram:16M", address, "--listen", "127.0.0.1:0"]);
        assert_eq!(code(&ran), Some(1), "{address}: {}", ran.output);
        assert!(ran.output.contains(address), "{}", ran.output);
        assert!(
            !ran.output.contains("iscsi://"),
            "nothing is half-started: {}",
            ran.output
        );
    }
}

#[test]
fn a_malformed_address_is_a_usage_error() {
    for address in ["ram:", "ram:1Q", "rom:1G", "/dev/sda", "file:", "null:0"] {
        let ran = lunar(&["serve", address, "--listen", "127.0.0.1:0"]);
        assert_eq!(code(&ran), Some(2), "{address}: {}", ran.output);
    }
}

#[test]
fn a_name_that_is_none_is_a_usage_error() {
    for name in [
        "disk",
        "iqn.example",
        "iqn.2026-13.org.example:a",
        "iqn.2026-11.org.example:a b",
    ] {
        let ran = lunar(&["serve", "ram:1M", "--listen", "127.0.0.1:0", "--iqn", name]);
        assert_eq!(code(&ran), Some(2), "{name}: {}", ran.output);
    }
}

#[test]
fn a_portal_in_use_is_tried_for_a_second() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = holder.local_addr().unwrap().to_string();
    let start = Instant::now();
    let ran = lunar(&["serve", "ram:1M", "--listen", &portal]);
    let took = start.elapsed();
    assert_eq!(code(&ran), Some(1), "{}", ran.output);
    assert!(ran.output.contains(&portal), "{}", ran.output);
    assert!((900..4000).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn a_portal_that_becomes_free_is_taken() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = holder.local_addr().unwrap().to_string();
    let freeing = thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        drop(holder);
    });
    let server = Server::start("freed", &["ram:1M"], &["--listen", &portal]).unwrap();
    assert_eq!(server.luns[0].portals, [portal]);
    freeing.join().unwrap();
}

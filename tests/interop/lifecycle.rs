//! How a server starts and ends.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use tests::client::Client;
use tests::initiator::{Data, Reply};
use tests::process;
use tests::server::{self, Server};

use crate::{file, lunar, must, words};

#[test]
fn the_ready_line_is_for_people_and_scripts() {
    let state = tests::scratch("ready-line").unwrap();
    let options = "--listen 127.0.0.1:0 --iqn iqn.2026-11.org.example:A --state-dir";
    let mut child = lunar(&["serve", "ram:1G", "null:1536M"])
        .args(words(options))
        .arg(state)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<_> = out.lines().take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let told = [(0, "1.0 GiB", "ram:1G"), (1, "1.5 GiB", "null:1536M")];
    assert_eq!(lines.len(), told.len());
    for (line, (lun, size, volume)) in lines.iter().zip(told) {
        let parts: Vec<_> = line.split("  ").collect();
        assert_eq!(parts[1..], [size, volume]);
        assert!(parts[0].starts_with("iscsi://127.0.0.1:"), "{line}");
        let unit = format!("/iqn.2026-11.org.example:a/{lun}");
        assert!(parts[0].ends_with(&unit), "{line}");
    }
}

/// Four cores would reserve more than 4 GiB.
#[test]
fn with_little_address_space_cores_have_fewer_buffers() {
    let dir = tests::scratch("address-space").unwrap();
    let binary = server::binary().unwrap().to_string_lossy().into_owned();
    let limited = "ulimit -v 3000000; exec \"$0\" \"$@\"";
    let command = ["sh", "-c", limited, &binary].map(str::to_owned);
    let options = ["--threads", "4"];
    let server = Server::start_as(&command, &dir, &[&file(&dir, "disk?size=1M")], &options);
    server.unwrap().has_logged("leaves each core").unwrap();
}

#[test]
fn told_to_stop_it_ends_with_0() {
    let server = Server::start("stop", &["ram:16M"], &[]).unwrap();
    assert_eq!(server.stop().unwrap().code(), Some(0));
}

#[test]
fn what_was_counted_is_logged_when_asked_for_and_at_the_end() {
    let server = Server::start("usr1", &["stats(ram:1M)"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    client.write(0, [1; 512], false).unwrap();
    server.signal("-USR1").unwrap();
    // It goes on serving.
    client.write(1, [1; 512], false).unwrap();
    drop(client);
    let log = server.stop_well().unwrap();
    let is_told = |line: &&str| line.contains("stats(ram:1M): writes: ");
    let told: Vec<_> = log.lines().filter(is_told).collect();
    assert_eq!(told.len(), 2, "{log}");
    let sum = "writes: 2, 0 of them failed, 1024 bytes";
    assert!(told[1].contains(sum), "{log}");
}

#[test]
fn signals_that_come_together_are_one_order_and_a_later_one_is_another() {
    let server = Server::start("signals", &["ram:16M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    server.signal("-TERM").unwrap();
    server.signal("-INT").unwrap();
    assert_eq!(client.reply().unwrap(), Reply::Async(1));
    thread::sleep(Duration::from_millis(1100));
    // It stays, which holds up the end: one order leaves it 5 s.
    client.good(&[0; 6], Data::None).unwrap();
    server.signal("-TERM").unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(1));
}

#[test]
fn with_nobody_to_serve_it_sleeps() {
    let volumes = ["ram:16M", "null:16M"];
    let server = Server::start("sleeps", &volumes, &[]).unwrap();
    let waits = || process::waits(server.pid()).unwrap();
    let mut before = waits();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "it goes on waking up");
        thread::sleep(Duration::from_millis(100));
        match waits() {
            now if now == before => break,
            now => before = now,
        }
    }
    thread::sleep(Duration::from_secs(3));
    assert_eq!(waits(), before);
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
fn an_initiator_that_stays_is_served_for_a_while_and_then_left() {
    let server = Server::start("stays", &["ram:16M"], &[]).unwrap();
    let mut client = Client::log_in(&server.luns[0], 1).unwrap();
    server.signal("-TERM").unwrap();
    assert_eq!(client.reply().unwrap(), Reply::Async(1));
    client.good(&[0; 6], Data::None).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
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

/// Nothing has been begun by then.
#[test]
fn a_server_that_waits_for_a_remote_volume_ends_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let portal = silent.local_addr().unwrap();
    let volume = format!("iscsi://{portal}/iqn.2026-11.org.lunar.test:silent/0");
    let child = lunar(&["serve", &volume]).spawn().unwrap();
    let _waits = silent.accept().unwrap();
    must("kill", &["-TERM", &child.id().to_string()]);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.signal(), Some(15));
}

//! What signals do to a server, and a log that is not read.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::rig::{LUNAR, PATIENCE, Run, first_line, folder, lunar, signal};

/// A server that is ready, and its address. It is killed if the test fails.
struct Server(Child, String);

impl Server {
    /// `shell` starts `"$@"`.
    fn start(shell: &str, stderr: Stdio) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", shell, "sh", LUNAR])
            .args(["serve", "ram:1M", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let line = first_line(&mut child);
        assert!(line.starts_with("iscsi://"), "{line}");
        Self(child, line.split(' ').next().unwrap().to_owned())
    }

    fn signal(&self, name: &str) {
        signal(name, self.0.id());
    }

    fn is_there(&self) -> bool {
        lunar(&format!("info {}", self.1)).ran().code == Some(0)
    }

    fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it has not ended");
    }

    fn log(&mut self) -> String {
        let mut log = String::new();
        let mut stderr = self.0.stderr.take().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_closed_terminal_stops_a_server_in_good_order() {
    // Under nohup it would be ignored.
    let mut server = Server::start("exec env --default-signal=HUP \"$@\"", Stdio::piped());
    server.signal("HUP");
    assert_eq!(server.ended().code(), Some(0));
    let log = server.log();
    assert!(log.contains("flushed 1 of 1: ram:1M"), "{log}");
}

#[test]
fn a_server_outlives_signals_that_are_no_order_to_end() {
    let mut server = Server::start("trap '' HUP; exec \"$@\"", Stdio::piped());
    for signal in ["HUP", "USR1", "USR2", "XFSZ"] {
        server.signal(signal);
        assert!(server.is_there(), "after SIG{signal}");
    }
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
}

/// Whoever has the other end of the pipe holds it without reading.
#[test]
fn a_log_that_is_not_read_stops_nothing() {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'.'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    let mut server = Server::start("exec env LUNAR_LOG=debug \"$@\"", writer.into());
    for _ in 0..3 {
        assert!(server.is_there(), "each is logged");
    }
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    let mut log = Vec::new();
    reader.read_to_end(&mut log).unwrap();
}

/// A folder with a file to be served, and how.
fn new_file(name: &str) -> (PathBuf, String) {
    let folder = folder(name);
    let address = format!("file:{}/new?size=1M&sparse", folder.display());
    (folder, address)
}

/// The lock of its reservations has the process in it, for the message of another one.
#[test]
fn a_server_starts_where_no_file_can_grow() {
    let (folder, address) = new_file("no-space");
    fs::write(folder.join("new"), [7; 1 << 20]).unwrap();
    let state = folder.join("state");
    let shell = format!(
        "ulimit -f 0; exec \"$1\" serve '{address}' --listen 127.0.0.1:0 --state-dir '{}'",
        state.display()
    );
    let mut server = Server::start(&shell, Stdio::piped());
    assert!(server.is_there());
    server.signal("TERM");
    assert!(server.ended().success(), "{}", server.log());
}

#[test]
fn a_signal_before_it_serves_leaves_no_file_behind() {
    let (folder, address) = new_file("not-served");
    let mut server = Command::new(LUNAR)
        .args(["serve", &address])
        .arg("iscsi://127.0.0.1:1/iqn.2026-11.org.example:away/0")
        .args(["--listen", "127.0.0.1:0", "--wait", "10m"])
        .stderr(Stdio::null())
        .spawn()
        .map(|child| Server(child, String::new()))
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while !folder.join("new").exists() && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(folder.join("new").exists());
    server.signal("TERM");
    assert!(!server.ended().success());
    assert!(!folder.join("new").exists());
}

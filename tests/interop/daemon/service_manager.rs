//! What a service manager is told: that the daemon serves, that its cores go round, that it reads
//! its file again, and that it stops (sd_notify(3), sd_watchdog_enabled(3)).

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command};

use tests::{server, tool};

use crate::LIMIT;

/// The socket of a service manager.
struct ServiceManager(UnixDatagram);

impl ServiceManager {
    /// The lines of the first message that has this one. What comes before may have been under way.
    #[track_caller]
    fn is_told(&self, line: &str) -> Vec<String> {
        let mut heard = Vec::new();
        loop {
            let mut buffer = [0; 1024];
            let Ok(len) = self.0.recv(&mut buffer) else {
                panic!("no {line} in {heard:?}");
            };
            let text = String::from_utf8_lossy(&buffer[..len]);
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            if lines.iter().any(|one| one == line) {
                return lines;
            }
            heard.push(lines);
        }
    }
}

fn signal(daemon: &Child, name: &str) {
    let pid = daemon.id().to_string();
    tool::must(Command::new("kill").args([name, &pid])).unwrap();
}

#[test]
fn a_service_manager_is_told_what_the_daemon_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("etc")).unwrap();
    fs::write(path("etc/lunar.toml"), "version = 1\n").unwrap();
    let manager = ServiceManager(UnixDatagram::bind(path("notify")).unwrap());
    manager.0.set_read_timeout(Some(LIMIT)).unwrap();
    let mut command = Command::new(server::binary().unwrap());
    command
        .arg("daemon")
        .arg("--config")
        .arg(path("etc/lunar.toml"));
    command.arg("--state-dir").arg(path("state"));
    command.arg("--socket").arg(path("socket"));
    command.env("NOTIFY_SOCKET", path("notify"));
    command
        .env("WATCHDOG_USEC", "300000")
        .env_remove("WATCHDOG_PID");
    let log = fs::File::create(path("log")).unwrap();
    let mut daemon = command.stderr(log).spawn().unwrap();
    let ready = manager.is_told("READY=1");
    let status = "STATUS=generation 1, 0 sessions".to_owned();
    assert!(ready.contains(&status), "{ready:?}");
    for _ in 0..3 {
        let beat = manager.is_told("WATCHDOG=1");
        assert!(beat.contains(&status), "{beat:?}");
    }
    fs::write(
        path("etc/lunar.toml"),
        "version = 1\n[volume.a]\naddress = \"ram:1M\"\n",
    )
    .unwrap();
    signal(&daemon, "-HUP");
    manager.is_told("RELOADING=1");
    let ready = manager.is_told("READY=1");
    let status = "STATUS=generation 2, 0 sessions".to_owned();
    assert!(ready.contains(&status), "{ready:?}");
    manager.is_told("WATCHDOG=1");
    signal(&daemon, "-TERM");
    manager.is_told("STOPPING=1");
    assert!(daemon.wait().unwrap().success());
}

//! `lunar daemon` as its users have it: a process, its verbs, and hosts that are at work meanwhile.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tests::server;
use tests::tool::{self, Ran};

use super::{LIMIT, must, run};

mod told;

const TARGET: &str = "iqn.2026-11.org.example:san";

/// A daemon, and the folder of everything that it has.
struct Rig {
    folder: tempfile::TempDir,
    port: u16,
    daemon: Option<Child>,
}

impl Rig {
    /// Serves a RAM disk and a file as LUNs 0 and 1, to everybody.
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let text = format!(
            "version = 1\n\n# the first\n[volume.a]\naddress = \"ram:8M\"\n\n[volume.b]\n\
             address = \"file:{}\"\nsize = \"8M\"\n\n[target.\"{TARGET}\"]\n\
             portals = [\"127.0.0.1:{port}\"]\nluns = {{ 0 = \"a\", 1 = \"b\" }}\n\
             allow = [\"*\"]\n",
            folder.path().join("disk.img").display()
        );
        fs::write(folder.path().join("lunar.toml"), text).unwrap();
        let mut rig = Self {
            folder,
            port,
            daemon: None,
        };
        rig.begin();
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn begin(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let mut daemon = Command::new(server::binary().unwrap());
        let paths = [("--config", "lunar.toml"), ("--state-dir", "state")];
        daemon.arg("daemon");
        for (option, name) in paths {
            daemon.arg(option).arg(self.path(name));
        }
        daemon.arg("--socket").arg(self.path("socket"));
        let ring = std::env::var("LUNAR_RING").unwrap_or_else(|_| "auto".to_owned());
        daemon.args(["--ring", &ring]).stderr(Stdio::from(log));
        self.daemon = Some(daemon.spawn().unwrap());
        let until = Instant::now() + LIMIT;
        while !self.lunar(&["history"]).good() {
            assert!(Instant::now() < until, "{}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// As a machine does that loses power, but for what its disks have.
    fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn file(&self) -> String {
        fs::read_to_string(self.path("lunar.toml")).unwrap()
    }

    fn lunar(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(server::binary().unwrap());
        command.args(args).env("LUNAR_SOCKET", self.path("socket"));
        tool::run(&mut command, LIMIT).unwrap()
    }

    #[track_caller]
    fn says(&self, args: &[&str]) -> String {
        let ran = self.lunar(args);
        assert!(ran.good(), "{args:?}: {}\n{}", ran.output, self.log());
        ran.output
    }

    fn url(&self, lun: u16) -> String {
        format!("iscsi://127.0.0.1:{}/{TARGET}/{lun}", self.port)
    }

    fn capacity(&self, lun: u16) -> String {
        let said = must("iscsi-readcapacity16", &["-s", &self.url(lun)]);
        said.trim().to_owned()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            self.kill();
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// QEMU writes to a LUN for as long as it is let.
fn load(url: &str) -> Child {
    let bench = "bench -w -c 100000000 -d 8 -s 4096 -f raw -t none";
    let mut qemu = Command::new("qemu-img");
    qemu.args(bench.split(' ')).arg(url).stdout(Stdio::null());
    qemu.stderr(Stdio::null()).spawn().unwrap()
}

/// An administrator's day, while a host is at work on LUN 0.
#[test]
fn luns_come_and_change_and_go_while_a_host_works() {
    let rig = Rig::start();
    let mut host = load(&rig.url(0));
    let until = Instant::now() + LIMIT;
    while !rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until, "{}", rig.log());
    }
    let lun = |number: u16| format!("target.{TARGET}.luns.{number}");
    for turn in 0..10 {
        let add = ["set", "volume.c.address=null:1G", &format!("{}=c", lun(7))];
        assert!(rig.says(&add).contains("LUNs have changed"));
        assert_eq!(rig.capacity(7), "1073741824");
        rig.says(&["set", &format!("volume.b.size={}M", 9 + turn)]);
        rig.says(&["set", &format!("volume.a.limit.iops={}k", 20 + turn)]);
        rig.says(&["unset", &lun(7), "volume.c"]);
        assert!(!run("iscsi-inq", &[&rig.url(7)]).good());
    }
    // Growth is looked for once a second.
    let until = Instant::now() + LIMIT;
    while rig.capacity(1) != (18 << 20).to_string() {
        assert!(Instant::now() < until, "{}", rig.log());
        thread::sleep(Duration::from_millis(50));
    }
    let stats = rig.says(&["stats"]);
    let row = stats.lines().find(|line| line.starts_with("a ")).unwrap();
    let writes = row.split_whitespace().nth(4).unwrap();
    assert_ne!(writes, "0", "{stats}");
    assert!(host.try_wait().unwrap().is_none(), "{}", rig.log());
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(rig.file().contains("# the first"));
}

/// What a plan says that it cuts is cut when it is allowed, and not before.
#[test]
fn a_name_that_is_revoked_loses_its_session_when_that_is_allowed() {
    let rig = Rig::start();
    let mut host = load(&rig.url(0));
    let until = Instant::now() + LIMIT;
    while !rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until);
    }
    let revoke = format!("target.{TARGET}.allow=[\"iqn.2026-11.org.example:other\"]");
    let refused = rig.lunar(&["set", &revoke]);
    assert!(
        !refused.good() && refused.output.contains("--allow cuts"),
        "{}",
        refused.output
    );
    assert!(host.try_wait().unwrap().is_none());
    assert!(
        rig.says(&["set", &revoke, "--allow", "cuts"])
            .contains("cuts")
    );
    let until = Instant::now() + LIMIT;
    while rig.says(&["sessions"]).contains(TARGET) {
        assert!(Instant::now() < until, "{}", rig.log());
    }
    host.kill().unwrap();
    host.wait().unwrap();
}

/// Wherever it is killed, the next start serves the tree before a change or the one after it.
#[test]
fn a_daemon_that_is_killed_while_it_changes_serves_old_or_new() {
    let mut rig = Rig::start();
    let times: u64 = std::env::var("LUNAR_CRASHES").map_or(10, |text| text.parse().unwrap());
    for time in 0..times {
        let before = rig.file();
        let path = rig.path("socket");
        let changing = thread::spawn(move || change_until_dead(&path, time));
        thread::sleep(Duration::from_micros(fastrand::u64(..40_000)));
        rig.kill();
        changing.join().unwrap();
        let now = rig.file();
        assert!(
            now.starts_with("version = 1\n\n# the first\n"),
            "{before}\n{now}"
        );
        rig.begin();
        assert_eq!(rig.file(), now);
        assert!(rig.says(&["plan"]).contains("there is nothing to do"));
        // What the file says is what is served.
        let is_there = now.contains("[volume.x]");
        assert_eq!(run("iscsi-inq", &[&rig.url(5)]).good(), is_there, "{now}");
    }
}

/// Adds and removes a LUN until nothing answers.
fn change_until_dead(socket: &Path, seed: u64) {
    let lun = format!("target.{TARGET}.luns.5");
    let put = ["set", "volume.x.address=null:1G", &format!("{lun}=x")];
    let take = ["unset", &lun, "volume.x"];
    for turn in seed.. {
        let args: &[&str] = if turn % 2 == 0 { &put } else { &take };
        let mut command = Command::new(server::binary().unwrap());
        command.args(args).env("LUNAR_SOCKET", socket);
        let ran = tool::run(&mut command, LIMIT).unwrap();
        if ran.output.contains("no daemon") || ran.output.contains("does not answer") {
            return;
        }
    }
}

/// Seed 001's way, in the words of targetcli, on standard input.
#[test]
fn the_shell_makes_a_target_that_libiscsi_finds() {
    let rig = Rig::start();
    let lines = format!(
        "/backstores/rd_mcp create name=rd1 size=16M\n/iscsi create {TARGET}2\n\
         iscsi/{TARGET}2/tpgt1/luns create storage_object=/backstores/rd_mcp/rd1\n\
         iscsi/{TARGET}2/tpgt1/portals create 127.0.0.1 {}\n\
         /iscsi/{TARGET}2/tpgt1/ set attribute authentication=0 demo_mode_write_protect=0 \
         generate_node_acls=1 cache_dynamic_acls=1\nls\n",
        rig.port
    );
    fs::write(rig.path("lines"), lines).unwrap();
    let mut shell = Command::new(server::binary().unwrap());
    shell.arg("shell").env("LUNAR_SOCKET", rig.path("socket"));
    shell.env("HOME", rig.folder.path());
    shell.stdin(fs::File::open(rig.path("lines")).unwrap());
    let ran = shell.output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let created = "Created rd_mcp ramdisk rd1 with size 16M.";
    assert!(ran.status.success() && said.contains(created), "{ran:?}");
    let found = must(
        "iscsi-ls",
        &["-s", &format!("iscsi://127.0.0.1:{}", rig.port)],
    );
    assert!(
        found.contains(&format!("{TARGET}2")) && found.contains("Size:15M"),
        "{found}"
    );
}

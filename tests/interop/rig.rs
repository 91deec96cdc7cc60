//! A daemon with a folder of its own, in this network or in one of its own.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tests::server;
use tests::tool::{self, Ran};

use super::{LIMIT, must};

pub(super) const TARGET: &str = "iqn.2026-11.org.example:san";

/// A daemon, and the folder of everything that it has.
pub(super) struct Rig {
    pub(super) folder: tempfile::TempDir,
    pub(super) port: u16,
    /// What makes its network, in words of a shell; empty: it is in ours.
    network: String,
    daemon: Option<Child>,
}

impl Rig {
    /// Serves a RAM disk and a file as LUNs 0 and 1, to everybody.
    pub(super) fn start() -> Self {
        Self::serving(|folder, port| {
            format!(
                "version = 1\n\n# the first\n[volume.a]\naddress = \"ram:8M\"\n\n[volume.b]\n\
                 address = \"file:{folder}/disk.img\"\nsize = \"8M\"\n\n[target.\"{TARGET}\"]\n\
                 portals = [\"127.0.0.1:{port}\"]\nluns = {{ 0 = \"a\", 1 = \"b\" }}\n\
                 allow = [\"*\"]\n"
            )
        })
    }

    /// Serves what a configuration says that is made for a folder and a port.
    pub(super) fn serving(text: impl Fn(&str, u16) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let text = text(&folder.path().display().to_string(), port);
        Self::begin_with(folder, port, String::new(), &text)
    }

    /// Serves nothing yet, in a network that these lines of a shell make. `$FOLDER` is its folder.
    pub(super) fn within(network: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::begin_with(folder, 3260, network.to_owned(), "version = 1\n")
    }

    fn begin_with(folder: tempfile::TempDir, port: u16, network: String, text: &str) -> Self {
        fs::create_dir(folder.path().join("etc")).unwrap();
        fs::write(folder.path().join("etc/lunar.toml"), text).unwrap();
        let mut rig = Self {
            folder,
            port,
            network,
            daemon: None,
        };
        rig.begin();
        rig
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn begin(&mut self) {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let mut daemon = self.begin_in_network();
        let paths = [("--config", "etc/lunar.toml"), ("--state-dir", "state")];
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

    fn begin_in_network(&self) -> Command {
        let binary = server::binary().unwrap();
        if self.network.is_empty() {
            return Command::new(binary);
        }
        // Programs look for interfaces in sysfs, which shows those of whoever has mounted it.
        let sysfs = "mount -t sysfs sysfs /sys";
        let script = format!("set -e\n{sysfs}\n{}\nexec \"$0\" \"$@\"", self.network);
        let mut command = Command::new("unshare");
        command.args(["-rnm", "sh", "-c", &script]).arg(binary);
        command.env("FOLDER", self.folder.path());
        command
    }

    /// A program in the daemon's network, or in that of another process.
    pub(super) fn inside(&self, process: Option<u32>, program: &str) -> Command {
        let process = process.unwrap_or_else(|| self.daemon.as_ref().unwrap().id());
        let mut command = Command::new("nsenter");
        let process = process.to_string();
        command.args([
            "-t",
            &process,
            "-U",
            "-n",
            "-m",
            "--preserve-credentials",
            program,
        ]);
        command
    }

    /// As a machine does that loses power, but for what its disks have.
    pub(super) fn kill(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// What it gets from now on is neither done nor answered, and its connections stay.
    pub(super) fn freeze(&self) {
        tool::freeze(self.daemon.as_ref().unwrap().id()).unwrap();
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Waits until the log says this, which a thread of its own writes.
    #[track_caller]
    pub(super) fn logs(&self, words: &str) {
        let until = Instant::now() + LIMIT;
        while !self.log().contains(words) {
            assert!(Instant::now() < until, "{words:?} is not in {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn file(&self) -> String {
        fs::read_to_string(self.path("etc/lunar.toml")).unwrap()
    }

    pub(super) fn lunar(&self, args: &[&str]) -> Ran {
        let mut command = Command::new(server::binary().unwrap());
        command.args(args).env("LUNAR_SOCKET", self.path("socket"));
        command.env("HOME", self.folder.path());
        tool::run(&mut command, LIMIT).unwrap()
    }

    #[track_caller]
    pub(super) fn says(&self, args: &[&str]) -> String {
        let ran = self.lunar(args);
        assert!(ran.good(), "{args:?}: {}\n{}", ran.output, self.log());
        ran.output
    }

    pub(super) fn url(&self, lun: u16) -> String {
        format!("iscsi://127.0.0.1:{}/{TARGET}/{lun}", self.port)
    }

    pub(super) fn capacity(&self, lun: u16) -> String {
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

/// A port where nobody listens, each time another one, below those that the kernel takes for the
/// own ends of connections (ip_local_port_range): it would take one again that it gave us before.
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// QEMU writes to a LUN for as long as it is let.
pub(super) fn load(url: &str) -> Child {
    let bench = "bench -w -c 100000000 -d 8 -s 4096 -f raw -t none";
    let mut qemu = Command::new("qemu-img");
    qemu.args(bench.split(' ')).arg(url).stdout(Stdio::null());
    qemu.stderr(Stdio::null()).spawn().unwrap()
}

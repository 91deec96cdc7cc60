//! A tgtd of our own, on a free port of the loopback.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use tests::tool;

use crate::words;

pub(super) const TARGET: &str = "iqn.2026-11.org.lunar.test:tgtd";

/// A tgtd that runs until this is dropped.
pub(super) struct Tgtd {
    child: Child,
    pub(super) portal: SocketAddr,
    /// Keeps it apart from another tgtd on the machine.
    control: String,
    file: PathBuf,
}

impl Tgtd {
    /// One with a disk of 16 MiB at LUN 1. The first of `accounts` is whom it lets in, the second
    /// who it is.
    pub(super) fn start(name: &str, accounts: &[&str]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        tool::present(&["tgtd", "tgtadm"]).unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // tgtadm takes no number above 32,767.
        let control = ((std::process::id() * 4 + number) % 32_000).to_string();
        let file = tests::scratch(&format!("tgtd-{name}"))
            .unwrap()
            .join("disk");
        fs::File::create(&file).unwrap().set_len(16 << 20).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = listener.local_addr().unwrap();
        drop(listener);
        let child = Command::new("tgtd")
            .args(["-f", "-C", &control])
            .args(["--iscsi", &format!("portal={portal}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let tgtd = Self {
            child: child.unwrap(),
            portal,
            control,
            file,
        };
        tgtd.configure(accounts);
        tgtd
    }

    fn configure(&self, accounts: &[&str]) {
        let target = format!("new --mode target --tid 1 -T {TARGET}");
        // It takes a moment until it answers.
        let answers = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(50));
            let ran = tool::run(&mut self.tgtadm(&target), Duration::from_secs(5));
            ran.is_ok_and(|ran| ran.good())
        });
        assert!(answers, "tgtd does not answer");
        let file = self.file.display();
        self.must(&format!("new --mode logicalunit --tid 1 --lun 1 -b {file}"));
        self.must("bind --mode target --tid 1 -I ALL");
        let secrets = ["a secret of twenty o", "another secret, yes."];
        for (at, (user, secret)) in accounts.iter().zip(secrets).enumerate() {
            let mut account = self.tgtadm(&format!("new --mode account --user {user}"));
            tool::must(account.args(["--password", secret])).unwrap();
            let outgoing = if at == 0 { "" } else { "--outgoing" };
            let bind = format!("bind --mode account --tid 1 --user {user} {outgoing}");
            self.must(&bind);
        }
    }

    /// Has it offer digests, which it does not by itself.
    pub(super) fn digests(&self) {
        for key in ["HeaderDigest", "DataDigest"] {
            self.must(&format!("update --mode target --tid 1 -n {key} -v CRC32C"));
        }
    }

    fn tgtadm(&self, args: &str) -> Command {
        let mut command = Command::new("tgtadm");
        command.args(["-C", &self.control, "--lld", "iscsi", "--op"]);
        command.args(words(args));
        command
    }

    fn must(&self, args: &str) {
        tool::must(&mut self.tgtadm(args)).unwrap();
    }
}

impl Drop for Tgtd {
    fn drop(&mut self) {
        // It ignores SIGTERM while it has targets; nothing to be done if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

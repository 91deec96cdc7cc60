//! The targets that are measured, each pinned to its CPU.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use address::UnitAddress;
use anyhow::{Context, Result, bail};
use bench::processes;
use scsi::wire::lun::Lun;
use tests::server::Server;
use tests::tool;

use super::VOLUME;
use super::process::TARGET_CPU;
use super::session::{Buffer, Session};

/// A target that serves one volume of [`VOLUME`] bytes.
#[derive(Debug)]
pub(crate) struct Target {
    /// What it is called.
    pub(crate) name: &'static str,
    /// Its process, where that is known.
    pub(crate) pid: Option<u32>,
    /// Its portal.
    pub(crate) portal: SocketAddr,
    /// Its iSCSI name.
    pub(crate) iqn: String,
    /// Where the volume is.
    pub(crate) lun: Lun,
    /// Bytes of its blocks.
    pub(crate) block_size: u32,
    /// Ends it when dropped.
    _process: Process,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
enum Process {
    Lunar(Server),
    Tgtd(Tgtd),
    Others,
}

/// Builds the release binary, and has [`Server`] use it.
pub(crate) fn release_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LUNAR") {
        return Ok(path.into());
    }
    let top = tests::top();
    let build = Command::new("cargo")
        .args(["build", "-q", "--release", "-p", "lunar"])
        .current_dir(&top)
        .status()?;
    if !build.success() {
        bail!("lunar does not build");
    }
    Ok(top.join("target/release/lunar"))
}

/// What stands in front of a target's command: pins it, and ends it should we be ended. Each
/// becomes the next, so the process id stays.
pub(crate) fn pinned() -> Vec<String> {
    [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "taskset",
        "-c",
        TARGET_CPU,
    ]
    .map(str::to_owned)
    .to_vec()
}

impl Target {
    /// `lunar serve` with a volume.
    pub(crate) fn lunar(name: &str, volume: &str, options: &[&str]) -> Result<Self> {
        let binary = release_binary()?;
        let dir = tests::scratch(name)?;
        let command = [pinned(), vec![binary.to_string_lossy().into_owned()]].concat();
        let server = Server::start_as(&command, &dir, &[volume], options)?;
        let lun = server.luns.first().context("no LUN")?;
        Ok(Self {
            name: "lunar",
            pid: Some(server.pid()),
            portal: lun.portals.first().context("no portal")?.parse()?,
            iqn: lun.target.clone(),
            lun: Lun::from_index(lun.lun),
            block_size: lun.block_size,
            _process: Process::Lunar(server),
        })
    }

    /// One that runs already. It need not be on this machine; where it is, its process is the one
    /// at the other end of a connection.
    pub(crate) fn beside(address: &UnitAddress) -> Result<Self> {
        let portal = address.portal.to_string();
        let mut target = Self {
            name: "the target beside",
            pid: None,
            portal: portal.to_socket_addrs()?.next().context("no address")?,
            iqn: address.target.clone(),
            lun: Lun::from_index(address.lun),
            block_size: BLOCK,
            _process: Process::Others,
        };
        let session = Session::log_in(&target, 1, false, &mut Buffer::new());
        let _session = session.with_context(|| portal)?;
        target.pid = processes::peers(&processes::sockets()).first().copied();
        Ok(target)
    }

    /// tgtd with a file in memory.
    pub(crate) fn tgtd() -> Result<Self> {
        let tgtd = Tgtd::start()?;
        Ok(Self {
            name: "tgtd",
            pid: Some(tgtd.child.id()),
            portal: ([127, 0, 0, 1], TGTD_PORT).into(),
            iqn: TGTD_IQN.to_owned(),
            lun: Lun::from_index(1),
            block_size: BLOCK,
            _process: Process::Tgtd(tgtd),
        })
    }
}

/// What is usual, and taken for granted where nothing is said.
const BLOCK: u32 = 512;

const TGTD_PORT: u16 = 3270;
const TGTD_IQN: &str = "iqn.2026-11.org.lunar.test:tgtd";

#[derive(Debug)]
struct Tgtd {
    child: Child,
    file: PathBuf,
    /// Keeps it apart from another tgtd on the machine.
    control: String,
}

impl Tgtd {
    fn start() -> Result<Self> {
        tool::present(&["tgtd", "tgtadm", "taskset", "setpriv"])?;
        let file = PathBuf::from(format!("/dev/shm/lunar-bench-{}", std::process::id()));
        fs::File::create(&file)?.set_len(VOLUME)?;
        // tgtadm takes no number above 32,767.
        let control = (std::process::id() % 32_000).to_string();
        let [program, pinned @ ..] = &pinned()[..] else {
            bail!("nothing to pin with")
        };
        let child = Command::new(program)
            .args(pinned)
            .args(["tgtd", "-f", "-C", &control])
            .args(["--iscsi", &format!("portal=127.0.0.1:{TGTD_PORT}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let tgtd = Self {
            child,
            file,
            control,
        };
        tgtd.configure()?;
        Ok(tgtd)
    }

    fn configure(&self) -> Result<()> {
        let file = self.file.to_string_lossy();
        let target = [
            "--op", "new", "--mode", "target", "--tid", "1", "-T", TGTD_IQN,
        ];
        // It takes a moment until it answers.
        let mut tries = 0;
        while let Err(cause) = self.tgtadm(&target) {
            tries += 1;
            if tries == 50 {
                return Err(cause);
            }
            thread::sleep(Duration::from_millis(100));
        }
        let unit = [
            "--op",
            "new",
            "--mode",
            "logicalunit",
            "--tid",
            "1",
            "--lun",
            "1",
            "-b",
        ];
        self.tgtadm(&[&unit[..], &[&file]].concat())?;
        self.tgtadm(&[
            "--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL",
        ])
    }

    fn tgtadm(&self, args: &[&str]) -> Result<()> {
        let mut command = Command::new("tgtadm");
        command.args(["-C", &self.control, "--lld", "iscsi"]);
        tool::must(command.args(args)).map(drop)
    }
}

impl Drop for Tgtd {
    fn drop(&mut self) {
        // It ignores SIGTERM while it has targets; nothing to be done if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.file);
    }
}

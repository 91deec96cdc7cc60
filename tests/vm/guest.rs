//! A guest: a QEMU that boots Debian, and does what it is told over a serial port.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use tests::tool;

use crate::variations::Word;

/// Bounds, far above what is usual: 5 s to boot, a minute for a script. They only end what hangs,
/// also on a machine that does much else.
const BOOT_LIMIT: Duration = Duration::from_secs(180);
const SCRIPT_LIMIT: Duration = Duration::from_secs(420);

/// No self-tests of ciphers, in which one boot in about thirty hung under emulation, no test of the
/// timer, which fails on a busy machine, and no work that only hardware needs.
pub(crate) const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet loglevel=3 panic=-1 net.ifnames=0 \
     mitigations=off nokaslr audit=0 cryptomgr.notests no_timer_check";

/// An interface of a guest.
pub(crate) struct Nic {
    /// The other end, as QEMU's `-netdev` has it, without the id.
    pub(crate) netdev: String,
    pub(crate) mac: String,
}

/// A guest that runs until this is dropped.
pub(crate) struct Guest {
    child: Child,
    to: ChildStdin,
    from: Receiver<String>,
    /// The release of its kernel.
    pub(crate) kernel: String,
    captures: Vec<PathBuf>,
}

impl Guest {
    /// Boots one from an image. It leaves its console and captures in `dir`. `lunar` is put beside
    /// the scripts of a guest that runs it.
    pub(crate) fn boot(
        image: &Path,
        dir: &Path,
        processors: usize,
        nics: &[Nic],
        lunar: Option<&Path>,
    ) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let scripts = dir.join("scripts.tar");
        let folder = tests::top().join("tests/vm/guest");
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(&scripts).arg("-C").arg(folder).arg(".");
        if let Some(lunar) = lunar {
            // A guest takes seconds to unpack what only a debugger reads.
            let stripped = dir.join("lunar");
            tool::must(Command::new("strip").arg("-o").arg(stripped).arg(lunar))?;
            tar.arg("-C").arg(dir).arg("lunar");
        }
        tool::must(&mut tar)?;
        Self::start(&disks(image, &scripts), dir, processors, nics)
    }

    /// Boots one from what QEMU's options say; a second time if it does not come up at the first.
    pub(crate) fn start(
        from: &[OsString],
        dir: &Path,
        processors: usize,
        nics: &[Nic],
    ) -> Result<Self> {
        Self::start_once(from, dir, processors, nics).or_else(|cause| {
            println!("a guest did not boot, once more: {cause:#}");
            // Without a console there is nothing to keep.
            let _ = fs::rename(dir.join("console"), dir.join("console-of-first"));
            Self::start_once(from, dir, processors, nics).context("a guest did not boot twice")
        })
    }

    fn start_once(from: &[OsString], dir: &Path, processors: usize, nics: &[Nic]) -> Result<Self> {
        let mut child = Command::new("qemu-system-x86_64")
            .args([
                "-accel",
                "tcg,thread=multi,tb-size=256",
                "-cpu",
                "max",
                "-smp",
                &processors.to_string(),
                "-m",
                "768",
            ])
            .args([
                "-nodefaults",
                "-no-user-config",
                "-no-reboot",
                "-display",
                "none",
            ])
            .args([
                "-serial",
                &format!("file:{}", dir.join("console").display()),
            ])
            .args(["-serial", "stdio"])
            .args(from)
            .args(network(dir, nics))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(dir.join("qemu"))?)
            .spawn()
            .context("cannot start QEMU")?;
        let to = child.stdin.take().context("no standard input")?;
        let out = child.stdout.take().context("no standard output")?;
        let (tell, from) = channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        let mut guest = Self {
            child,
            to,
            from,
            kernel: String::new(),
            captures: (0..nics.len()).map(|nic| capture(dir, nic)).collect(),
        };
        guest.kernel = guest.release().with_context(|| said_by_qemu(dir))?;
        Ok(guest)
    }

    /// The release of its kernel, when it is up. Some firmware writes to this serial port, too.
    fn release(&mut self) -> Result<String> {
        let end = Instant::now() + BOOT_LIMIT;
        loop {
            if let Some(release) = self.line(end)?.strip_prefix("up ") {
                return Ok(release.to_owned());
            }
        }
    }

    /// Runs a script with these words, `NAME=VALUE`. What it asks of the host, `host` does.
    ///
    /// # Errors
    /// With the reason that the script gives, or when its time is up.
    pub(crate) fn run(
        &mut self,
        script: &str,
        words: &[(&str, String)],
        host: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        let mut line = script.to_owned();
        for (name, value) in words {
            line += &format!(" {name}={value}");
        }
        writeln!(self.to, "{line}").context("the guest is gone")?;
        let end = Instant::now() + SCRIPT_LIMIT;
        let mut reason = String::new();
        loop {
            let said = self.line(end).with_context(|| format!("in {script}"))?;
            match said.split_once(' ').unwrap_or((&said, "")) {
                ("ask", what) => {
                    let done = host(what);
                    let answer = if done.is_ok() { "done" } else { "failed" };
                    writeln!(self.to, "{answer}").context("the guest is gone")?;
                    done.with_context(|| format!("{script} asked for {what}"))?;
                }
                ("reason", why) => reason = why.to_owned(),
                ("exit", "0") => return Ok(()),
                ("exit", status) => bail!("{script} ended with {status}: {reason}"),
                _ => bail!("{script} said {said}"),
            }
        }
    }

    /// Has a script do one thing, in which the host has no part. A word has no spaces, so commas
    /// stand between what is given.
    pub(crate) fn act(
        &mut self,
        script: &str,
        words: &[Word],
        action: &str,
        given: &str,
    ) -> Result<()> {
        let given = given.replace(' ', ",");
        let words = [&[("action", action.to_owned()), ("given", given)], words].concat();
        let mut none = |_: &str| bail!("the host has no part in it");
        self.run(script, &words, &mut none)
    }

    /// The next line on its serial port. A guest that says nothing for so long is ended.
    fn line(&mut self, end: Instant) -> Result<String> {
        let rest = end.saturating_duration_since(Instant::now());
        self.from.recv_timeout(rest).map_err(|cause| {
            let _ = self.child.kill();
            match cause {
                RecvTimeoutError::Timeout => anyhow!("no answer of the guest in time"),
                RecvTimeoutError::Disconnected => anyhow!("the guest is gone"),
            }
        })
    }

    /// Turns it off. What went over its interfaces is of no use if all went well.
    pub(crate) fn off(mut self, keep: bool) {
        // One that hangs is ended when this is dropped.
        if writeln!(self.to, "off").is_ok() {
            let end = Instant::now() + Duration::from_secs(20);
            while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(50));
            }
        }
        for capture in self.captures.drain(..).filter(|_| !keep) {
            let _ = fs::remove_file(capture);
        }
    }

    /// The files of what went over its interfaces so far.
    pub(crate) fn captures(&self) -> &[PathBuf] {
        &self.captures
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn said_by_qemu(dir: &Path) -> String {
    let said = fs::read_to_string(dir.join("qemu")).unwrap_or_default();
    format!("QEMU said: {said:?}")
}

/// The kernel of an image, with its root and the scripts as disks.
fn disks(image: &Path, scripts: &Path) -> Vec<OsString> {
    let mut args = vec!["-append".into(), KERNEL_ARGUMENTS.into()];
    for (option, file) in [("-kernel", "vmlinux"), ("-initrd", "initrd")] {
        args.extend([option.into(), image.join(file).into()]);
    }
    args.extend(drive(&image.join("root.img"), "snapshot=on").map(OsString::from));
    args.extend(drive(scripts, "readonly=on").map(OsString::from));
    args
}

fn drive(file: &Path, how: &str) -> [String; 2] {
    let drive = format!("file={},format=raw,if=virtio,{how}", file.display());
    ["-drive".into(), drive]
}

/// The interfaces, and what captures them: QEMU itself, which sees every frame.
fn network(dir: &Path, nics: &[Nic]) -> Vec<String> {
    let mut args = Vec::new();
    for (at, nic) in nics.iter().enumerate() {
        let file = capture(dir, at);
        let file = file.display();
        let (netdev, mac) = (&nic.netdev, &nic.mac);
        // A ring that can be made smaller, and larger again.
        let ring = "rx_queue_size=1024,romfile=";
        let device = format!("virtio-net-pci,netdev=n{at},mac={mac},{ring}");
        let dump = format!("filter-dump,id=f{at},netdev=n{at},file={file},maxlen=65536");
        args.extend(["-netdev".into(), format!("{netdev},id=n{at}")]);
        args.extend(["-device".into(), device, "-object".into(), dump]);
    }
    args
}

/// The file of what went over an interface.
fn capture(dir: &Path, nic: usize) -> PathBuf {
    dir.join(format!("eth{nic}.pcap"))
}

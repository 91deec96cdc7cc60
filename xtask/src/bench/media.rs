//! Backends of volumes, and what they cost without a network: fio's io_uring engine on them.

#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ::tests::tool;
use anyhow::{Context, Result};
use io::cpu;

use super::VOLUME;
use super::contenders::Contender;
use super::figures::Figures;
use super::rows::Row;
use super::target;

/// What a volume is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Backend {
    /// A file in memory, through the page cache.
    File,
    /// The same with O_DIRECT.
    Direct,
    /// A loop device on such a file.
    Loop,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::File => "file",
            Self::Direct => "file direct",
            Self::Loop => "loop device",
        })
    }
}

/// A file in memory, and the loop device on it; both go when this is dropped.
pub(crate) struct Medium {
    backend: Backend,
    file: PathBuf,
    device: Option<PathBuf>,
}

impl Medium {
    /// `user` tells it from others of its kind.
    pub(super) fn new(backend: Backend, user: Contender) -> Result<Self> {
        let name = user.to_string().replace(' ', "-");
        let file = format!("/dev/shm/lunar-bench-{name}-{}", std::process::id());
        let mut medium = Self {
            backend,
            file: file.into(),
            device: None,
        };
        fs::File::create(&medium.file)?.set_len(VOLUME)?;
        if backend == Backend::Loop {
            let mut command = Command::new("losetup");
            command.args(["--find", "--show"]).arg(&medium.file);
            medium.device = Some(tool::must(&mut command)?.trim().into());
        }
        Ok(medium)
    }

    /// As a volume of `lunar serve`.
    pub(super) fn address(&self) -> String {
        let file = self.file.display();
        match (&self.device, self.backend) {
            (Some(device), _) => format!("block:{}", device.display()),
            (None, Backend::Direct) => format!("file:{file}?direct"),
            (None, _) => format!("file:{file}"),
        }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        // What is gone already needs no care.
        if let Some(device) = &self.device {
            let _ = tool::must(Command::new("losetup").arg("--detach").arg(device));
        }
        let _ = fs::remove_file(&self.file);
    }
}

/// Has fio carry out a load on a medium, pinned as targets are; its CPU time is that of the target.
pub(super) fn fio(row: &Row, address: &str, time: Duration) -> Result<Figures> {
    const WARM: Duration = Duration::from_millis(500);
    let (kind, place) = address.split_once(':').context("no medium")?;
    let place = place.trim_end_matches("?direct");
    let direct = u8::from(kind == "block" || address.ends_with("?direct"));
    let runtime_ms = (time + 2 * WARM).as_millis();
    let mut command = target::pinned();
    command.args(["fio", "--thread", "--name=bench", "--ioengine=io_uring"]);
    command.args(["--output-format=json", "--time_based", "--norandommap"]);
    command.args([
        format!("--filename={place}"),
        format!("--size={VOLUME}"),
        format!("--rw={}", row.rw()),
        format!("--bs={}", row.size),
        format!("--iodepth={}", row.depth),
        format!("--direct={direct}"),
        format!("--runtime={runtime_ms}ms"),
        // It takes more rights than we have in a namespace, and does nothing for memory.
        "--invalidate=0".to_owned(),
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start setpriv")?;
    thread::sleep(WARM);
    let before = cpu::time_of(child.id());
    thread::sleep(time);
    let after = cpu::time_of(child.id());
    let said = child.stdout.take().context("it has an output")?;
    let said: serde_json::Result<serde_json::Value> = serde_json::from_reader(said);
    child.wait()?;
    let load = after?.saturating_sub(before?).as_secs_f64() / time.as_secs_f64();
    figures(&said?, row.write, load).context("no IOPS")
}

/// What is of use in fio's JSON, with its CPU time as a share of a core.
fn figures(said: &serde_json::Value, write: bool, load: f64) -> Option<Figures> {
    let way = &said["jobs"][0][if write { "write" } else { "read" }];
    // There are no percentiles of the way that nothing went.
    let percentile_us = |percent| {
        let percentile = &way["clat_ns"]["percentile"][percent];
        percentile.as_f64().unwrap_or_default() / 1e3
    };
    let iops = way["iops"].as_f64()?;
    Some(Figures {
        iops,
        target_us: (iops > 0.0).then(|| load * 1e6 / iops),
        p50_us: percentile_us("50.000000"),
        p99_us: percentile_us("99.000000"),
        ..Figures::default()
    })
}

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
use anyhow::{Context, Result, bail};
use io::cpu;
use serde::Deserialize;

use super::VOLUME;
use super::load::Job;
use super::meter::Measured;
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
    pub(crate) fn new(backend: Backend) -> Result<Self> {
        let name = backend.to_string().replace(' ', "-");
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
    pub(crate) fn address(&self) -> String {
        let file = self.file.display();
        match (&self.device, self.backend) {
            (Some(device), _) => format!("block:{}", device.display()),
            (None, Backend::Direct) => format!("file:{file}?direct"),
            (None, _) => format!("file:{file}"),
        }
    }

    /// Has fio do a load, pinned as targets are; its CPU is that of the target.
    pub(crate) fn measure(&self, job: &Job, time: Duration) -> Result<Measured> {
        const WARM: Duration = Duration::from_millis(500);
        let mut child = self.fio(job, time + 2 * WARM)?.spawn().context("fio")?;
        thread::sleep(WARM);
        let before = cpu::time_of(child.id());
        thread::sleep(time);
        let after = cpu::time_of(child.id());
        let out = child.stdout.take().context("it has an output")?;
        let said: Said = serde_json::from_reader(out).context("what fio said")?;
        child.wait()?;
        let spent = after?.saturating_sub(before?);
        said.measured(job.write, spent.as_secs_f64() / time.as_secs_f64())
    }

    fn fio(&self, job: &Job, runtime: Duration) -> Result<Command> {
        let [program, pinned @ ..] = &target::pinned()[..] else {
            bail!("nothing to pin with")
        };
        let way = if job.write { "randwrite" } else { "randread" };
        let direct = u8::from(self.backend != Backend::File);
        let place = self.device.as_ref().unwrap_or(&self.file);
        let mut command = Command::new(program);
        command
            .args(pinned)
            .args(["fio", "--thread", "--name=bench", "--ioengine=io_uring"]);
        command
            .args(["--output-format=json", "--time_based", "--norandommap"])
            .args([
                format!("--filename={}", place.display()),
                format!("--size={VOLUME}"),
                format!("--rw={way}"),
                format!("--bs={}", job.size),
                format!("--iodepth={}", job.depth),
                format!("--direct={direct}"),
                format!("--runtime={}ms", runtime.as_millis()),
                // It takes more rights than we have in a namespace, and does nothing for memory.
                "--invalidate=0".to_owned(),
            ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(command)
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

/// What is of use in fio's JSON.
#[derive(Deserialize)]
struct Said {
    jobs: Vec<Ways>,
}

#[derive(Deserialize)]
struct Ways {
    read: Way,
    write: Way,
}

#[derive(Deserialize)]
struct Way {
    iops: f64,
    clat_ns: Times,
}

#[derive(Deserialize)]
struct Times {
    /// There is none for the way that nothing went.
    #[serde(default)]
    percentile: Percentiles,
}

#[derive(Default, Deserialize)]
struct Percentiles {
    #[serde(rename = "50.000000")]
    p50: f64,
    #[serde(rename = "99.000000")]
    p99: f64,
}

impl Said {
    fn measured(&self, write: bool, load: f64) -> Result<Measured> {
        let ways = self.jobs.first().context("fio had no job")?;
        let way = if write { &ways.write } else { &ways.read };
        Ok(Measured {
            iops: way.iops,
            target_load: Some(load),
            p50_us: way.clat_ns.percentile.p50 / 1e3,
            p99_us: way.clat_ns.percentile.p99 / 1e3,
            slowest_fastest: (1.0, 1.0),
            ..Measured::default()
        })
    }
}

//! The floor under all targets: bare TCP without iSCSI, as [`bench::floor`] has it.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use bench::Watch;
use bench::floor::{self, Listener, Lives, Local};
use bench::plan::Words;

use super::VOLUME;
use super::load::{Job, Measured};
use super::process::{GENERATOR_CPU, pin};
use super::target;

/// The other end: answers until its standard input ends.
pub(crate) fn serve() -> Result<()> {
    let listener = Listener::new(&[([127, 0, 0, 1], 0).into()], VOLUME)?;
    println!("{}", listener.address()?);
    Ok(listener.run(Lives::WithInput)?)
}

/// Runs a load for a while, after a short warm-up; the other end is pinned as targets are.
pub(crate) fn measure(job: &Job, time: Duration, spin: bool) -> Result<Measured> {
    let [program, pinned @ ..] = &target::pinned()[..] else {
        bail!("no taskset")
    };
    let mut command = Command::new(program);
    command
        .args(pinned)
        .arg(std::env::current_exe()?)
        .arg("floor");
    let local = Local::start(&mut command, spin)?;
    pin(GENERATOR_CPU)?;
    let words = Words {
        depth: job.depth as u32,
        ramp: time / 10,
        runtime: time,
        ..Words::preset(None, false)?
    };
    let rw = if job.write { "randwrite" } else { "randread" };
    let load = words.load(rw.parse().map_err(Error::msg)?, job.size);
    let (stop, live) = (AtomicBool::new(false), &mut |_| {});
    let watch = &mut Watch { stop: &stop, live };
    let measured = floor::measure(local.place(), &words, load, VOLUME, watch)?;
    if let Some(failure) = measured.failure {
        bail!(failure);
    }
    let row = measured.rows.first().context("nothing was measured")?;
    let share = |cpu_us: Option<u64>| cpu_us.unwrap_or(0) as f64 / row.runtime_us as f64;
    let latency = row.latency();
    let at = |percent| latency.percentile_ns(percent) as f64 / 1e3;
    Ok(Measured {
        iops: row.iops(),
        target_load: share(row.target_cpu_us),
        generator_load: share(row.cpu_us),
        p50_us: at(50.0),
        p99_us: at(99.0),
    })
}

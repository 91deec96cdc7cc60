//! What a backend costs without a network: fio's io_uring engine on it.

#[cfg(test)]
mod tests;

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use io::cpu;

use super::VOLUME;
use super::figures::Figures;
use super::rows::Row;
use super::target;

/// Has fio carry out a load on a medium, pinned as targets are; its CPU time is that of the target.
pub(super) fn run(row: &Row, address: &str, time: Duration) -> Result<Figures> {
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

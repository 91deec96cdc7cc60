//! `lunar metrics`: what a daemon tells Prometheus, and what Ganglia's gmetric takes.

#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use control::client::{ApiClient, ApiError, ApiRequest, Method};
use control::metrics::VolumeStats;

use super::{SocketArgs, failure, segment};
use crate::{VerbError, documents};

/// Print the metrics of a daemon, in the text format of Prometheus
///
/// The same text is at /metrics of its socket. With --gmetric, what volumes read and write in a
/// second, as commands that bring it to Ganglia.
#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// Print commands of gmetric in place of the text: four for each volume
    ///
    /// Counters are read twice, a second apart.
    #[arg(long)]
    gmetric: bool,

    /// Print those of one volume alone
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,

    /// Print more buckets of latency, and series that are told only where they are asked for
    #[arg(long, conflicts_with = "gmetric")]
    detail: bool,

    #[command(flatten)]
    socket: SocketArgs,
}

pub(crate) fn metrics(args: &MetricsArgs) -> Result<ExitCode, VerbError> {
    let client = args.socket.client("metrics");
    let text = if args.gmetric {
        rates(&client, args.volume.as_deref())
    } else {
        client.text(Method::GET, &ApiRequest::new(path(args)))
    };
    let text = text.map_err(|error| failure(&error))?;
    documents::print(text.as_bytes())
}

fn path(args: &MetricsArgs) -> String {
    let mut path = format!("/metrics?detail={}", u8::from(args.detail));
    if let Some(volume) = &args.volume {
        path += &format!("&volume={}", segment(volume));
    }
    path
}

/// What volumes do in a second, as commands.
fn rates(client: &ApiClient, only: Option<&str>) -> Result<String, ApiError> {
    if let Some(only) = only {
        client.text(
            Method::GET,
            &ApiRequest::new(format!("/v1/volumes/{}", segment(only))),
        )?;
    }
    let request = ApiRequest::new("/v1/stats");
    let look = || client.ask::<Vec<VolumeStats>>(Method::GET, &request);
    let before = look()?;
    let begun = Instant::now();
    thread::sleep(INTERVAL);
    let mut now = look()?;
    now.retain(|volume| only.is_none_or(|only| volume.volume == only));
    Ok(commands(&before, &now, begun.elapsed()))
}

/// Four commands for each volume.
fn commands(before: &[VolumeStats], now: &[VolumeStats], took: Duration) -> String {
    let mut commands = String::new();
    for volume in now {
        let known = before.iter().find(|one| one.volume == volume.volume);
        for GangliaMetric { name, unit, value } in &METRICS {
            // A volume that came meanwhile began at 0.
            let since = value(volume).saturating_sub(known.map_or(0, value));
            // A float is converted by saturating: Ganglia has 32 bits for it.
            let rate = (since as f64 / took.as_secs_f64()).round() as u32;
            // Names of volumes have no character that a shell would read in another way.
            commands += &format!(
                "gmetric -n {name}_{} -v {rate} -t uint32 -u \"{unit}\"\n",
                volume.volume
            );
        }
    }
    commands
}

/// A metric by the name and the unit that dashboards of Ganglia know from the kernel's counters.
struct GangliaMetric {
    name: &'static str,
    unit: &'static str,
    value: fn(&VolumeStats) -> u64,
}

const METRICS: [GangliaMetric; 4] = [
    GangliaMetric {
        name: "diskio_readbytes",
        unit: "Kbytes/s",
        value: |of| of.read_bytes / KBYTE,
    },
    GangliaMetric {
        name: "diskio_writebytes",
        unit: "Kbytes/s",
        value: |of| of.written_bytes / KBYTE,
    },
    GangliaMetric {
        name: "diskio_readblks",
        unit: "Blocks/s",
        value: |of| of.read_bytes / BLOCK,
    },
    GangliaMetric {
        name: "diskio_writeblks",
        unit: "Blocks/s",
        value: |of| of.written_bytes / BLOCK,
    },
];

/// As PCP counts `disk.dev.read_bytes`.
const KBYTE: u64 = 1024;

/// As PCP counts `disk.dev.blkread`, whatever the size of a volume's own blocks.
const BLOCK: u64 = 512;

const INTERVAL: Duration = Duration::from_secs(1);

//! What measurements yield, as plain data: the load generator fills it, tables, JSON and reports
//! are made of it.
//!
//! Only what was counted is kept. Rates, shares and percentiles are methods, so that no two places
//! can round them differently.

mod latency;
pub mod race;
pub mod spread;
pub mod table;
#[cfg(test)]
mod tests;

pub use latency::Latency;
pub use race::Race;

use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

/// What the address of a row begins with that tells what several volumes gave together.
pub(crate) const TOGETHER: &str = "all ";

/// What one run yields.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunResult {
    /// How it was asked for: the words of the command line, behind the name of the program.
    pub words: String,
    /// When it began, in seconds since 1970-01-01 UTC.
    pub begin_unix_s: u64,
    /// Where it ran.
    pub machine: HostFacts,
    /// What was measured, in the order of measuring.
    pub rows: Vec<ResultRow>,
    /// Bare TCP under the same loads, where it was measured: what no protocol above can exceed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floors: Vec<ResultRow>,
    /// The turns that rows were measured in, where several addresses took turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub races: Vec<Race>,
}

impl RunResult {
    /// The addresses that were measured, each once. Tables number them in this order, from 1 on.
    #[must_use]
    pub fn addresses(&self) -> Vec<&str> {
        let mut addresses = Vec::new();
        for ResultRow { address, .. } in &self.rows {
            if !address.starts_with(TOGETHER) && !addresses.contains(&address.as_str()) {
                addresses.push(address.as_str());
            }
        }
        addresses
    }

    /// The floor under the same load as this row's.
    #[must_use]
    pub fn floor_of(&self, row: &ResultRow) -> Option<&ResultRow> {
        self.floors.iter().find(|floor| floor.load == row.load)
    }

    /// The share of its floor's IOPS that a row reaches, where there is a floor: 1 is all of it.
    #[must_use]
    pub fn share_of_floor(&self, row: &ResultRow) -> Option<f64> {
        let floor = self.floor_of(row)?.iops();
        (floor > 0.0).then(|| row.iops() / floor)
    }
}

/// Which way data goes. Reads and writes are seen from the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataDirection {
    /// Reads only.
    Read,
    /// Writes only.
    Write,
    /// Both, in shares that the numbers of I/Os tell.
    Mixed,
}

/// How addresses follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessOrder {
    /// Each I/O begins where the last one ended.
    Sequential,
    /// Each I/O is anywhere.
    Random,
}

/// What was done to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Which way data goes.
    pub direction: DataDirection,
    /// How addresses follow one another.
    pub order: AccessOrder,
    /// The size of each I/O.
    pub block_bytes: u32,
    /// Queue depth: I/Os that each job keeps in flight.
    pub depth: u32,
    /// How many threads do this at a time.
    pub jobs: u32,
}

impl Load {
    /// fio's word for direction and order: `randread`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match (self.order, self.direction) {
            (AccessOrder::Sequential, DataDirection::Read) => "read",
            (AccessOrder::Sequential, DataDirection::Write) => "write",
            (AccessOrder::Sequential, DataDirection::Mixed) => "rw",
            (AccessOrder::Random, DataDirection::Read) => "randread",
            (AccessOrder::Random, DataDirection::Write) => "randwrite",
            (AccessOrder::Random, DataDirection::Mixed) => "randrw",
        }
    }
}

/// One measurement: a load on a volume for some time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultRow {
    /// The volume, without secrets.
    pub address: String,
    /// What was done to it.
    pub load: Load,
    /// How long, from the first submission to the last completion.
    pub runtime_us: u64,
    /// What was read.
    pub reads: OperationTotals,
    /// What was written.
    pub writes: OperationTotals,
    /// CPU time of this process.
    pub cpu_us: Option<u64>,
    /// CPU time of the target, where its process is known.
    pub target_cpu_us: Option<u64>,
    /// Throughput over time: intervals that follow one another from the start.
    pub series: Vec<RowInterval>,
}

impl ResultRow {
    /// I/Os that went well.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.reads.ios + self.writes.ios
    }

    /// Bytes of data moved by them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }

    /// I/Os that failed.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.reads.errors + self.writes.errors
    }

    /// I/Os a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.per_second(self.ios())
    }

    /// Millions of bytes a second.
    #[must_use]
    pub fn mb_per_s(&self) -> f64 {
        self.per_second(self.bytes()) / 1e6
    }

    /// Of reads and writes together.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let mut all = self.reads.latency.clone();
        all.add(&self.writes.latency);
        all
    }

    /// CPU time of this process an I/O, in us.
    #[must_use]
    pub fn cpu_us_per_io(&self) -> Option<f64> {
        self.per_io(self.cpu_us)
    }

    /// CPU time of the target an I/O, in us.
    #[must_use]
    pub fn target_cpu_us_per_io(&self) -> Option<f64> {
        self.per_io(self.target_cpu_us)
    }

    /// How much of one core this process used: 200 is two cores all the time.
    #[must_use]
    pub fn cpu_percent(&self) -> Option<f64> {
        let cpu_us = self.cpu_us?;
        (self.runtime_us > 0).then(|| cpu_us as f64 * 100.0 / self.runtime_us as f64)
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.runtime_us == 0 {
            return 0.0;
        }
        count as f64 * 1e6 / self.runtime_us as f64
    }

    fn per_io(&self, us: Option<u64>) -> Option<f64> {
        let us = us?;
        (self.ios() > 0).then(|| us as f64 / self.ios() as f64)
    }
}

/// The reads or the writes of a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OperationTotals {
    /// I/Os that went well.
    pub ios: u64,
    /// Bytes of data moved by them.
    pub bytes: u64,
    /// I/Os that failed, or gave other data than was written.
    pub errors: u64,
    /// What the first failure said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
    /// From submission to completion, of those that went well.
    pub latency: Latency,
}

impl OperationTotals {
    /// Counts an I/O that went well.
    pub fn record(&mut self, bytes: u64, latency_ns: u64) {
        self.ios += 1;
        self.bytes += bytes;
        self.latency.record(latency_ns);
    }

    /// Counts an I/O that failed.
    pub fn fail(&mut self, error: impl FnOnce() -> String) {
        self.errors += 1;
        self.first_error.get_or_insert_with(error);
    }

    /// Adds what another job counted.
    pub fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.errors += other.errors;
        if self.first_error.is_none() {
            self.first_error.clone_from(&other.first_error);
        }
        self.latency.add(&other.latency);
    }
}

/// What was done between the end of the interval before and the end of this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowInterval {
    /// Its end, counted from the start of the row.
    pub end_ms: u64,
    /// I/Os that went well.
    pub ios: u64,
    /// Bytes of data moved by them.
    pub bytes: u64,
}

/// Where a measurement ran. What cannot be found out is empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name.
    pub host: String,
    /// Model of its processor.
    pub processor: String,
    /// Threads of it that this process may use.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// The kernel, as `uname -sr` says it.
    pub kernel: String,
    /// Version of this program.
    pub version: String,
}

impl HostFacts {
    /// The one that this process runs on.
    #[must_use]
    pub fn here() -> Self {
        let uname = rustix::system::uname();
        let memory_kib = field("/proc/meminfo", "MemTotal");
        let memory_kib = memory_kib.split(' ').next().unwrap_or_default().parse();
        Self {
            host: uname.nodename().to_string_lossy().into_owned(),
            processor: field("/proc/cpuinfo", "model name"),
            cores: available_parallelism().map_or(0, usize::from),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// What stands behind `name` and a colon in a file of the kernel's.
fn field(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_default()
}

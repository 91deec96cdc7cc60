//! Metrics in the text format of Prometheus, and the same numbers for `lunar stats`.
//!
//! Cores count for themselves; who asks adds them up. Volumes that nobody has used yet have no
//! series but their capacity, so 10,000 silent LUNs cost little.

use std::fmt::Write;

use engine::server::UnitReport;
use serde::{Deserialize, Serialize};

use crate::plane::{Plane, Session};

/// What a volume is and has done since it is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeStats {
    /// The name of its row.
    pub volume: String,
    /// What holds its blocks cannot be used now.
    pub absent: bool,
    /// Capacity in bytes; 0 where it was never known.
    pub capacity_bytes: u64,
    /// What it uses of its storage, where that is counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Read commands that ended well.
    pub reads: u64,
    /// Write commands that ended well.
    pub writes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
}

impl From<UnitReport> for VolumeStats {
    fn from(unit: UnitReport) -> Self {
        let bytes = |blocks: u64| blocks * u64::from(unit.block_size);
        Self {
            absent: unit.is_absent,
            capacity_bytes: bytes(unit.blocks),
            used_bytes: unit.usage.map(|usage| bytes(usage.used)),
            reads: unit.totals.reads,
            writes: unit.totals.writes,
            read_bytes: bytes(unit.totals.blocks_read),
            written_bytes: bytes(unit.totals.blocks_written),
            volume: unit.name,
        }
    }
}

/// All metrics of a server, as text.
#[must_use]
pub fn metrics(plane: &Plane) -> String {
    let mut text = String::new();
    of_volumes(&plane.stats(), &mut text);
    of_sessions(&plane.sessions(), &mut text);
    let served = plane.served();
    let generation = "The generation of the configuration that is served.";
    head(&mut text, "lunar_config_generation", "gauge", generation);
    line(&mut text, "lunar_config_generation", &[], served.generation);
    let alarms = "What somebody should look at.";
    head(&mut text, "lunar_alarms", "gauge", alarms);
    line(&mut text, "lunar_alarms", &[], plane.alarms().len() as u64);
    text
}

/// A counter of each volume: its operation, and its value.
type Counter = (&'static str, fn(&VolumeStats) -> u64);

/// A number of each volume, where there is one: its name, what it is, and its value.
type Gauge = (&'static str, &'static str, fn(&VolumeStats) -> Option<u64>);

const OPERATIONS: [Counter; 2] = [("read", |of| of.reads), ("write", |of| of.writes)];
const BYTES: [Counter; 2] = [
    ("read", |of| of.read_bytes),
    ("write", |of| of.written_bytes),
];
const GAUGES: [Gauge; 3] = [
    ("lunar_volume_capacity_bytes", "Capacity.", |of| {
        Some(of.capacity_bytes)
    }),
    ("lunar_volume_used_bytes", "Storage in use.", |of| {
        of.used_bytes
    }),
    (
        "lunar_volume_absent",
        "1 where the volume cannot be used.",
        |of| Some(of.absent.into()),
    ),
];

fn of_volumes(volumes: &[VolumeStats], text: &mut String) {
    let name = "lunar_volume_operations_total";
    head(text, name, "counter", "Commands that ended well.");
    counters(volumes, name, OPERATIONS, text);
    let name = "lunar_volume_bytes_total";
    head(text, name, "counter", "Bytes that commands have moved.");
    counters(volumes, name, BYTES, text);
    for (name, help, value) in GAUGES {
        head(text, name, "gauge", help);
        for volume in volumes {
            if let Some(value) = value(volume) {
                line(text, name, &[("volume", &volume.volume)], value);
            }
        }
    }
}

/// Of those volumes that somebody has used.
fn counters(volumes: &[VolumeStats], name: &str, counters: [Counter; 2], text: &mut String) {
    for volume in volumes.iter().filter(|one| one.reads + one.writes > 0) {
        for (op, value) in counters {
            let labels = [("volume", &*volume.volume), ("op", op)];
            line(text, name, &labels, value(volume));
        }
    }
}

fn of_sessions(sessions: &[Session], text: &mut String) {
    let name = "lunar_session_info";
    head(text, name, "gauge", "1 for each session.");
    for session in sessions {
        let target = session.target.as_deref().unwrap_or_default();
        let labels = [
            ("target", target),
            ("initiator", &session.initiator),
            ("portal", &session.portal),
            ("id", &session.id.to_string()),
        ];
        line(text, name, &labels, 1);
    }
    head(text, "lunar_sessions", "gauge", "Sessions.");
    line(text, "lunar_sessions", &[], sessions.len() as u64);
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: u64) {
    text.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let before = if at == 0 { '{' } else { ',' };
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
    }
    if !labels.is_empty() {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

/// Names of initiators come from the network.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests;

//! What is at `/metrics`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use engine::survey::Survey;
use scsi::statistics::CoarseLatency;

pub use super::exposition::Format;
use super::exposition::{Exposition, Labels};
use super::series::{self, Family};
use super::volume::{OperationStats, VolumeStats};
use crate::alarm::Alarm;
use crate::plane::{Fabric, FabricPort, Plane, Session};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrapeRequest {
    /// How it is written.
    pub format: Format,
    /// 27 buckets of latencies of volumes in place of 12, those of commands that neither read nor
    /// write, and the part of them that commands were at their media; latencies of sessions.
    pub detail: bool,
    /// Only what is of this volume.
    pub volume: Option<String>,
}

impl ScrapeRequest {
    /// Reads the parameters of a query, and Accept.
    ///
    /// # Errors
    ///
    /// What is wrong with a parameter, and what would be right.
    pub fn new(query: &[(String, String)], accept: &str) -> Result<Self, String> {
        let mut request = Self::default();
        if accept.contains("application/openmetrics-text") {
            request.format = Format::OpenMetrics;
        }
        for (key, value) in query {
            match (&**key, &**value) {
                ("detail", "1") => request.detail = true,
                ("detail", "0") => request.detail = false,
                ("volume", name) => request.volume = Some(name.to_owned()),
                _ => {
                    return Err(format!(
                        "{key}={value} cannot be asked of metrics: give detail=1 or volume=NAME"
                    ));
                }
            }
        }
        Ok(request)
    }
}

/// All that is told, gathered.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) volumes: Vec<VolumeStats>,
    /// How long their commands were at their media, by class; of none where it is not asked for.
    pub(super) media: BTreeMap<String, [OperationStats; OPERATIONS.len()]>,
    pub(super) survey: Survey,
    pub(super) sessions: Vec<Session>,
    pub(super) fabrics: Vec<Fabric>,
    /// Bytes of memory, by what they are for.
    pub(super) memory: Vec<(&'static str, u64)>,
    pub(super) memory_limit: u64,
    pub(super) generation: u64,
    pub(super) alarms: Vec<Alarm>,
}

/// All metrics of a server, as text.
#[must_use]
pub fn metrics(plane: &Plane, request: &ScrapeRequest) -> String {
    let survey = plane.survey();
    let mut memory = vec![
        ("volumes", plane.memory().used()),
        ("buffers", survey.buffers),
    ];
    memory.extend(resident().map(|bytes| ("resident", bytes)));
    let numbers = Numbers {
        volumes: plane.stats(),
        media: if request.detail {
            plane.medium_stats()
        } else {
            BTreeMap::new()
        },
        sessions: plane.sessions_of(&survey).unwrap_or_default(),
        fabrics: plane.fabrics(),
        memory,
        memory_limit: plane.memory().limit(),
        generation: plane.served().generation,
        alarms: plane.alarms(),
        survey,
    };
    numbers.text(request)
}

impl Numbers {
    pub(super) fn text(&self, request: &ScrapeRequest) -> String {
        let mut out = Exposition::new(request.format);
        let wanted = |one: &&VolumeStats| {
            let only = request.volume.as_ref();
            only.is_none_or(|only| *only == one.volume)
        };
        let volumes: Vec<_> = self.volumes.iter().filter(wanted).collect();
        self.of_volumes(&volumes, request.detail, &mut out);
        if request.volume.is_none() {
            self.of_sessions(request.detail, &mut out);
            self.of_peers(&mut out);
            self.of_switches(&mut out);
            self.of_cores(&mut out);
            self.of_configuration(&mut out);
        }
        out.into_text()
    }

    fn of_volumes(&self, volumes: &[&VolumeStats], detail: bool, out: &mut Exposition) {
        counters(volumes, out);
        out.family(&series::LATENCY);
        for (volume, op, stats) in active(volumes) {
            if detail || op != "other" {
                let labels = [("volume", &*volume.volume), ("op", op)];
                histogram(&series::LATENCY, &labels, stats, detail, out);
            }
        }
        if detail {
            self.at_media(volumes, out);
        }
        gauges(volumes, &self.survey.queued, out);
    }

    fn at_media(&self, volumes: &[&VolumeStats], out: &mut Exposition) {
        out.family(&series::MEDIUM_LATENCY);
        let media = volumes.iter().filter_map(|volume| {
            let (name, classes) = self.media.get_key_value(&volume.volume)?;
            Some((&**name, classes))
        });
        for (volume, classes) in media {
            let classes = OPERATIONS.iter().zip(classes);
            for ((op, _), stats) in classes.filter(|(_, stats)| stats.operations > 0) {
                let labels = [("volume", volume), ("op", *op)];
                histogram(&series::MEDIUM_LATENCY, &labels, stats, true, out);
            }
        }
    }

    fn of_sessions(&self, detail: bool, out: &mut Exposition) {
        let mut counts: BTreeMap<[&str; 2], u64> = BTreeMap::new();
        for session in &self.sessions {
            let kind = [names(session)[0], &session.transport];
            *counts.entry(kind).or_default() += 1;
        }
        out.family(&series::SESSIONS);
        for ([target, transport], count) in counts {
            let labels = [("target", target), ("transport", transport)];
            out.number(&series::SESSIONS, &labels, count);
        }
        // Series that are missing are seen; zeros would be a lie.
        let is_counted = |one: &&Session| !self.survey.silent.contains(&one.core);
        let counted: Vec<_> = self.sessions.iter().filter(is_counted).collect();
        counts_of_sessions(&counted, out);
        if detail {
            latency_of_sessions(&counted, out);
        }
    }

    fn of_peers(&self, out: &mut Exposition) {
        out.family(&series::LOGINS);
        for ((portal, result), count) in &self.survey.logins {
            let labels = [("portal", &**portal), ("result", result.name())];
            out.number(&series::LOGINS, &labels, count);
        }
        out.family(&series::VIOLATIONS);
        let violations = &self.survey.violations;
        for (rule, count) in violations {
            out.number(&series::VIOLATIONS, &[("rule", rule)], count);
        }
        out.family(&series::DIGEST_ERRORS);
        let digests = violations.iter().filter(|(rule, _)| rule.contains(DIGEST));
        let errors: u64 = digests.map(|(_, count)| count).sum();
        out.number(&series::DIGEST_ERRORS, &[], errors);
        out.family(&series::FRAMES_LOST);
        for (port, places) in &self.survey.lost_frames {
            for place in places {
                let labels = [("port", &**port), ("where", place.place)];
                out.number(&series::FRAMES_LOST, &labels, place.frames);
            }
        }
    }

    fn of_switches(&self, out: &mut Exposition) {
        let fabrics = self.fabrics.iter();
        let ports = fabrics.flat_map(|fabric| fabric.ports.iter().map(move |port| (fabric, port)));
        let ports: Vec<_> = ports.collect();
        out.family(&series::SWITCH_LOGINS);
        for (fabric, port) in &ports {
            let logins = fabric.logins.iter().filter(|one| one.place == port.place);
            let labels = [("switch", &*fabric.switch), ("port", &*port.place)];
            out.number(&series::SWITCH_LOGINS, &labels, logins.count());
        }
        for (family, value) in SWITCH_COUNTERS {
            out.family(&family);
            for (fabric, port) in &ports {
                let labels = [("switch", &*fabric.switch), ("port", &*port.place)];
                out.number(&family, &labels, value(port));
            }
        }
        out.family(&series::SWITCH_DROPPED);
        for (fabric, port) in &ports {
            for (reason, frames) in &port.dropped {
                let switch = [("switch", &*fabric.switch), ("port", &*port.place)];
                let labels = [switch[0], switch[1], ("reason", &**reason)];
                out.number(&series::SWITCH_DROPPED, &labels, frames);
            }
        }
    }

    fn of_cores(&self, out: &mut Exposition) {
        let times = &self.survey.times;
        let busy = times.iter().map(|time| (time.core, time.busy));
        seconds(&series::CORE_BUSY, busy, out);
        let idle = times.iter().map(|time| (time.core, time.idle));
        seconds(&series::CORE_IDLE, idle, out);
        out.family(&series::UNCOPIED);
        out.number(&series::UNCOPIED, &[], self.survey.uncopied);
        out.family(&series::MEMORY);
        for (kind, bytes) in &self.memory {
            out.number(&series::MEMORY, &[("kind", kind)], bytes);
        }
        out.family(&series::MEMORY_LIMIT);
        out.number(&series::MEMORY_LIMIT, &[], self.memory_limit);
    }

    fn of_configuration(&self, out: &mut Exposition) {
        out.family(&series::GENERATION);
        out.number(&series::GENERATION, &[], self.generation);
        out.family(&series::ALARM);
        for alarm in &self.alarms {
            let at = alarm.at.as_deref().unwrap_or_default();
            let labels = [
                ("name", alarm.kind.name()),
                ("at", at),
                ("severity", "warning"),
            ];
            out.number(&series::ALARM, &labels, 1);
        }
    }
}

type SwitchCounter = (Family, fn(&FabricPort) -> u64);

const SWITCH_COUNTERS: [SwitchCounter; 2] = [
    (series::SWITCH_FRAMES, |port| port.frames),
    (series::SWITCH_BYTES, |port| port.bytes),
];

type Operation = (&'static str, fn(&VolumeStats) -> &OperationStats);

const OPERATIONS: [Operation; 3] = [
    ("read", |of| &of.read),
    ("write", |of| &of.write),
    ("other", |of| &of.other),
];

type Counter = (Family, fn(&OperationStats) -> u64);

const COUNTERS: [Counter; 2] = [
    (series::OPERATIONS, |of| of.operations),
    (series::ERRORS, |of| of.errors),
];

fn counters(volumes: &[&VolumeStats], out: &mut Exposition) {
    for (family, value) in COUNTERS {
        out.family(&family);
        for (volume, op, stats) in active(volumes) {
            let labels = [("volume", &*volume.volume), ("op", op)];
            out.number(&family, &labels, value(stats));
        }
    }
    out.family(&series::BYTES);
    for volume in volumes.iter().filter(|one| one.reads + one.writes > 0) {
        for (op, bytes) in [("read", volume.read_bytes), ("write", volume.written_bytes)] {
            let labels = [("volume", &*volume.volume), ("op", op)];
            out.number(&series::BYTES, &labels, bytes);
        }
    }
}

/// Classes of which a volume had any command.
fn active<'a>(
    volumes: &'a [&VolumeStats],
) -> impl Iterator<Item = (&'a VolumeStats, &'static str, &'a OperationStats)> {
    let each = |volume: &'a &VolumeStats| {
        let classes = OPERATIONS.into_iter();
        classes.map(move |(op, stats)| (&**volume, op, stats(volume)))
    };
    let all = volumes.iter().flat_map(each);
    all.filter(|(_, _, stats)| stats.operations > 0)
}

/// 12 buckets of 4^n us, or 27 of 2^n: both are exact sums of ours.
fn histogram(
    family: &Family,
    labels: Labels<'_>,
    stats: &OperationStats,
    detail: bool,
    out: &mut Exposition,
) {
    let (step, count) = if detail { (1, 27) } else { (2, 12) };
    let ends = (0..27).step_by(step).take(count);
    let ends = ends.map(|octave| Duration::from_micros(1 << octave));
    let within = ends.map(|end| (end, stats.within(end)));
    let total = (stats.operations, Duration::from_nanos(stats.sum_ns));
    out.histogram(family, labels, within, total);
}

fn gauges(volumes: &[&VolumeStats], queued: &BTreeMap<String, u64>, out: &mut Exposition) {
    let depth = |of: &VolumeStats| {
        let is_used = of.read.operations + of.write.operations + of.other.operations > 0;
        is_used.then(|| queued.get(&of.volume).copied().unwrap_or(0))
    };
    each(&series::QUEUE, volumes, depth, out);
    let capacity = |of: &VolumeStats| Some(of.capacity_bytes);
    each(&series::CAPACITY, volumes, capacity, out);
    each(&series::USED, volumes, |of| of.used_bytes, out);
    out.family(&series::STATE);
    for volume in volumes {
        let state = if volume.absent { "absent" } else { "online" };
        let labels = [("volume", &*volume.volume), ("state", state)];
        out.number(&series::STATE, &labels, 1);
    }
    each(&series::RETRIES, volumes, |of| of.retries, out);
}

/// A number of each volume that has it.
fn each(
    family: &Family,
    volumes: &[&VolumeStats],
    value: impl Fn(&VolumeStats) -> Option<u64>,
    out: &mut Exposition,
) {
    out.family(family);
    for volume in volumes {
        if let Some(value) = value(volume) {
            out.number(family, &[("volume", &volume.volume)], value);
        }
    }
}

/// Sessions of one initiator with one target by one portal are one series.
fn names(session: &Session) -> [&str; 3] {
    let target = session.target.as_deref().unwrap_or("discovery");
    [target, &session.initiator, &session.portal]
}

fn session_labels([target, initiator, portal]: [&str; 3]) -> [(&'static str, &str); 3] {
    [
        ("target", target),
        ("initiator", initiator),
        ("portal", portal),
    ]
}

fn counts_of_sessions(sessions: &[&Session], out: &mut Exposition) {
    let mut sums: BTreeMap<[&str; 3], [u64; 3]> = BTreeMap::new();
    for session in sessions {
        let sum = sums.entry(names(session)).or_default();
        let add = [session.commands, session.read_bytes, session.written_bytes];
        sum.iter_mut().zip(add).for_each(|(sum, more)| *sum += more);
    }
    out.family(&series::SESSION_COMMANDS);
    for (names, [commands, ..]) in &sums {
        out.number(&series::SESSION_COMMANDS, &session_labels(*names), commands);
    }
    out.family(&series::SESSION_BYTES);
    for (names, [_, read, written]) in &sums {
        let [target, initiator, portal] = session_labels(*names);
        for (op, bytes) in [("read", read), ("write", written)] {
            let labels = [target, initiator, portal, ("op", op)];
            out.number(&series::SESSION_BYTES, &labels, bytes);
        }
    }
}

fn latency_of_sessions(sessions: &[&Session], out: &mut Exposition) {
    let mut sums: BTreeMap<[&str; 3], CoarseLatency> = BTreeMap::new();
    for session in sessions.iter().filter(|session| session.commands > 0) {
        let sum = sums.entry(names(session));
        sum.or_default().add(&session.latency);
    }
    out.family(&series::SESSION_LATENCY);
    for (names, latency) in &sums {
        let mut within = 0;
        let buckets = latency.buckets().map(|(end, count)| {
            within += count;
            (end, within)
        });
        let labels = session_labels(*names);
        let total = (latency.operations(), latency.sum());
        out.histogram(&series::SESSION_LATENCY, &labels, buckets, total);
    }
}

fn seconds(family: &Family, times: impl Iterator<Item = (u16, Duration)>, out: &mut Exposition) {
    out.family(family);
    for (core, time) in times {
        let core = core.to_string();
        out.number(family, &[("core", &core)], time.as_secs_f64());
    }
}

/// Memory of the process that is in use, in bytes; `None` where the kernel does not tell.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// What the rules about digests have in common.
const DIGEST: &str = "digest error";

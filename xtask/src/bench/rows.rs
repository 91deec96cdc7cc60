//! What is measured, and what is required of it.

use std::time::Duration;

use serde::Serialize;

use super::VOLUME;
use super::contenders::{Contender, split};
use super::media::Backend;
use super::verdict::Want;

/// A load, its contenders, and what is required of the first of them.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Bytes of each I/O.
    pub(super) size: u32,
    pub(super) write: bool,
    /// Commands in flight, for each session.
    pub(super) depth: u32,
    pub(super) sessions: u32,
    #[serde(skip)]
    pub(super) by: Vec<Contender>,
    #[serde(skip)]
    pub(super) wants: Vec<Want>,
    /// Whether it is not a failure that it cannot be measured here.
    #[serde(skip)]
    pub(super) may_lack: bool,
    /// How many times the rounds of other rows it takes: what two of the same kind are told apart
    /// by is less than the noise of three rounds.
    #[serde(skip)]
    pub(super) patience: u32,
}

const READ: bool = false;
const WRITE: bool = true;

/// Size, way and depth, how many times less CPU time than tgtd is required, and at most how many
/// times that of the floor.
type PlainRow = (u32, bool, u32, Option<f64>, Option<f64>);

/// At depth 32 with small blocks the floor runs in lock-step, and is none.
const PLAIN: [PlainRow; 12] = [
    (512, READ, 32, Some(11.0), None),
    (512, WRITE, 32, None, None),
    (512, READ, 128, None, Some(1.4)),
    (512, WRITE, 128, None, Some(1.4)),
    (4096, READ, 32, Some(9.2), None),
    (4096, WRITE, 32, Some(8.0), None),
    (4096, READ, 128, None, Some(1.33)),
    (4096, WRITE, 128, None, Some(1.25)),
    (65_536, READ, 32, Some(2.2), Some(1.2)),
    (65_536, WRITE, 32, Some(2.4), Some(1.15)),
    (262_144, READ, 32, None, Some(1.2)),
    (262_144, WRITE, 32, None, Some(1.15)),
];

/// All rows, in the order of measuring.
pub(super) fn all() -> Vec<Row> {
    use Contender::{Floor, Tgtd};
    let plain = PLAIN.map(|(size, write, depth, less_than_tgtd, to_floor)| {
        let mut row = row(size, write, depth).beside(&[Tgtd]);
        row.by.extend(to_floor.map(|_| Floor));
        row.wants
            .extend(to_floor.map(|times| Want::Cpu(Floor, times)));
        let less = less_than_tgtd.map(|times| Want::TimesLess(Tgtd, times));
        row.wants.extend(less);
        row
    });
    let mut rows = plain.to_vec();
    rows.extend(sessions());
    rows.push(alone());
    rows.extend(digests());
    rows.extend(threads());
    rows.extend(backends());
    rows
}

/// More and more sessions on one LUN, each with as many commands in flight. The floor has a
/// connection and a thread for each.
fn sessions() -> impl Iterator<Item = Row> {
    let reads = [1, 2, 4, 8, 16, 32, 64].map(|count| (READ, count));
    let loads = reads.into_iter().chain([(WRITE, 4)]);
    loads.map(|(way, count)| {
        let mut row = row(4096, way, 32).beside(&[Contender::Floor]);
        row.sessions = count;
        row.patience = 2;
        row.want(Want::Cpu(Contender::Floor, 1.4))
            .want(Want::Fair(0.1))
            .named(&format!("sessions {count}"))
    })
}

/// One command at a time. The limits are what SPDK takes, which spins.
fn alone() -> Row {
    let row = row(4096, READ, 1).beside(&[Contender::Tgtd]);
    row.want(Want::P50(29.0)).want(Want::P99(57.0))
}

/// With header and data digests.
fn digests() -> impl Iterator<Item = Row> {
    let small = [512, 4096].map(|size| [32, 128].map(|depth| (size, depth, 1.25)));
    let loads = small.into_iter().flatten().chain([(65_536, 32, 1.4)]);
    let ways = |load| [READ, WRITE].map(|way| (way, load));
    loads.flat_map(ways).map(|(way, (size, depth, times))| {
        let mut row = row(size, way, depth);
        row.by = vec![Contender::Digests, Contender::Lunar];
        row.patience = 2;
        row.want(Want::Cpu(Contender::Lunar, times))
            .named("digests")
    })
}

/// Two threads for one LUN. Both are on the CPU that one has beside them: on another CPU one of
/// them would share it with the generator. So this shows what it costs that there are two (locks,
/// switches, smaller batches), and not what the way between cores costs. Neither spins: it would
/// take the CPU from the other.
fn threads() -> impl Iterator<Item = Row> {
    [READ, WRITE].into_iter().map(|way| {
        let mut row = row(4096, way, 32);
        row.by = vec![Contender::TwoThreads, Contender::Asleep];
        row.sessions = 8;
        row.patience = 5;
        row.want(Want::Cpu(Contender::Asleep, 1.05))
            .named("8 sessions, two threads")
    })
}

/// Other volumes than RAM. What a backend itself costs is what it costs fio, on the CPU of targets.
/// Loop devices need more rights than the rest.
fn backends() -> impl Iterator<Item = Row> {
    let backends = [Backend::File, Backend::Direct, Backend::Loop];
    let ways = |backend| [READ, WRITE].map(|way| (backend, way));
    backends.into_iter().flat_map(ways).map(|(backend, way)| {
        let mut row = row(4096, way, 128);
        row.by = vec![
            Contender::On(backend),
            Contender::Fio(backend),
            Contender::Floor,
        ];
        row.may_lack = backend == Backend::Loop;
        row.want(Want::Beyond(
            Contender::Fio(backend),
            Contender::Floor,
            1.25,
        ))
        .named(&backend.to_string())
    })
}

fn row(size: u32, write: bool, depth: u32) -> Row {
    let way = if write { "write" } else { "read" };
    let size_text = match size {
        512 => "512 B".to_owned(),
        _ => format!("{} KiB", size >> 10),
    };
    Row {
        name: format!("{size_text} {way}, depth {depth}"),
        size,
        write,
        depth,
        sessions: 1,
        by: vec![Contender::Lunar],
        wants: Vec::new(),
        may_lack: false,
        patience: 1,
    }
}

impl Row {
    /// The load in the words of `lunar bench`, `lunar race` and `lunar floor`.
    pub(super) fn words(&self, time: Duration) -> Vec<String> {
        let (rw, size, depth) = (self.rw(), self.size, self.depth);
        let (ms, ramp_ms) = (time.as_millis(), (time / 10).as_millis());
        let words = format!(
            "--rw {rw} --bs {size} --iodepth {depth} --size {VOLUME} --runtime {ms}ms \
             --ramp-time {ramp_ms}ms"
        );
        split(&words)
    }

    /// fio's word for it.
    pub(super) fn rw(&self) -> &'static str {
        if self.write { "randwrite" } else { "randread" }
    }

    /// As many threads as sessions.
    pub(super) fn jobs(&self) -> Vec<String> {
        split(&format!("--numjobs {}", self.sessions))
    }

    fn beside(mut self, others: &[Contender]) -> Self {
        self.by.extend(others);
        self
    }

    fn want(mut self, want: Want) -> Self {
        self.wants.push(want);
        self
    }

    fn named(mut self, more: &str) -> Self {
        self.name = format!("{}, {more}", self.name);
        self
    }
}

//! What is measured, and what is required of it.

use super::lineup::Who;
use super::load::Job;
use super::media::Backend;
use super::verdict::Want;

/// A load, its contenders, and what is required of the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) job: Job,
    pub(crate) by: Vec<Who>,
    pub(crate) wants: Vec<Want>,
    /// Whether it is not a failure that it cannot be measured here.
    pub(crate) may_lack: bool,
    /// How many times the rounds of other rows it takes: what two of the same kind are told apart
    /// by is less than the noise of three rounds.
    pub(crate) patience: usize,
}

const READ: bool = false;
const WRITE: bool = true;

/// All rows, in the order of measuring.
pub(crate) fn all() -> Vec<Row> {
    use Who::{Floor, Tgtd};
    let to_tgtd = |times| Want::TimesLess(Tgtd, times);
    let to_floor = |times| Want::Cpu(Floor, times);
    let mut rows = vec![
        row(512, READ, 32).beside(&[Tgtd]).want(to_tgtd(11.0)),
        row(512, WRITE, 32).beside(&[Tgtd]),
        row(512, READ, 128)
            .beside(&[Tgtd, Floor])
            .want(to_floor(1.4)),
        row(512, WRITE, 128)
            .beside(&[Tgtd, Floor])
            .want(to_floor(1.4)),
        row(4096, READ, 32).beside(&[Tgtd]).want(to_tgtd(9.2)),
        row(4096, WRITE, 32).beside(&[Tgtd]).want(to_tgtd(8.0)),
        row(4096, READ, 128)
            .beside(&[Tgtd, Floor])
            .want(to_floor(1.33)),
        row(4096, WRITE, 128)
            .beside(&[Tgtd, Floor])
            .want(to_floor(1.25)),
    ];
    for (size, less) in [(65_536, Some([2.2, 2.4])), (262_144, None)] {
        let row = |way, at: usize, times| {
            let row = row(size, way, 32)
                .beside(&[Tgtd, Floor])
                .want(to_floor(times));
            let less = less.map(|less: [f64; 2]| to_tgtd(less[at]));
            less.into_iter().fold(row, Row::want)
        };
        rows.extend([row(READ, 0, 1.2), row(WRITE, 1, 1.15)]);
    }
    rows.extend(sessions());
    rows.extend(sleeping());
    rows.extend(alone());
    rows.extend(digests());
    rows.extend(threads());
    rows.extend(backends());
    rows
}

/// More and more sessions on one LUN, each with as many commands in flight. The floor has one
/// thread for all connections, as a target on one core has, and is asked by one that spins, as the
/// generator does: a thread for each would mostly switch between them.
fn sessions() -> impl Iterator<Item = Row> {
    let reads = [1, 2, 4, 8, 16, 32, 64].map(|count| (READ, count));
    let loads = reads.into_iter().chain([(WRITE, 4)]);
    loads.map(|(way, count)| {
        let mut row = row(4096, way, 32).beside(&[Who::SharedFloor]);
        row.job.sessions = count;
        row.patience = 2;
        let row = row.want(Want::Cpu(Who::SharedFloor, 1.4));
        let row = if count > 1 {
            row.want(Want::Fair(0.1))
        } else {
            row
        };
        row.named(&format!("sessions {count}"))
    })
}

/// The client sleeps where it has nothing to do.
fn sleeping() -> impl Iterator<Item = Row> {
    [READ, WRITE].into_iter().map(|way| {
        let mut row = row(4096, way, 32).beside(&[Who::Tgtd]);
        row.job.sleeps = true;
        row.named("client sleeps")
    })
}

/// One command at a time. The limits of the first are what SPDK takes, which spins.
fn alone() -> [Row; 2] {
    let spinning = row(4096, READ, 1).beside(&[Who::Tgtd]);
    let mut asleep = row(4096, READ, 1);
    asleep.by = vec![Who::Asleep, Who::SleepingFloor];
    asleep.job.sleeps = true;
    [
        spinning.want(Want::P50(29.0)).want(Want::P99(57.0)),
        asleep
            .want(Want::Time(Who::SleepingFloor, 1.2))
            .named("both ends sleep"),
    ]
}

/// With header and data digests.
fn digests() -> impl Iterator<Item = Row> {
    let small = [512, 4096].map(|size| [32, 128].map(|depth| (size, depth, 1.25)));
    let loads = small.into_iter().flatten().chain([(65_536, 32, 1.4)]);
    let ways = |load| [READ, WRITE].map(|way| (way, load));
    loads.flat_map(ways).map(|(way, (size, depth, times))| {
        let mut row = row(size, way, depth);
        row.by = vec![Who::Digests, Who::Lunar];
        row.patience = 2;
        row.want(Want::Cpu(Who::Lunar, times)).named("digests")
    })
}

/// Two threads for one LUN. Both are on the CPU that one has beside them: on another CPU one of
/// them would share it with the generator. So this shows what it costs that there are two (locks,
/// switches, smaller batches), and not what the way between cores costs. Neither spins: it would
/// take the CPU from the other.
fn threads() -> impl Iterator<Item = Row> {
    [READ, WRITE].into_iter().map(|way| {
        let mut row = row(4096, way, 32);
        row.by = vec![Who::TwoThreads, Who::Asleep];
        row.job.sessions = 8;
        row.patience = 5;
        row.want(Want::Cpu(Who::Asleep, 1.05))
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
        row.by = vec![Who::On(backend), Who::Fio(backend), Who::Floor];
        row.may_lack = backend == Backend::Loop;
        row.want(Want::Beyond(Who::Fio(backend), Who::Floor, 1.25))
            .named(&backend.to_string())
    })
}

fn row(size: u32, write: bool, depth: usize) -> Row {
    let way = if write { "write" } else { "read" };
    let size_text = match size {
        512 => "512 B".to_owned(),
        _ => format!("{} KiB", size >> 10),
    };
    Row {
        name: format!("{size_text} {way}, depth {depth}"),
        job: Job::new(size, write, depth),
        by: vec![Who::Lunar],
        wants: Vec::new(),
        may_lack: false,
        patience: 1,
    }
}

impl Row {
    fn beside(mut self, others: &[Who]) -> Self {
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

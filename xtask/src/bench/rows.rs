//! What is measured, and what is required of it.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::VOLUME;
use super::contenders::Contender::{self, *};
use super::contenders::split;
use super::media::{Backend, FileSystem};
use super::verdict::Want;

/// A load, its contenders, and what is required of the first of them.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Bytes of each I/O.
    pub(super) size: u32,
    pub(super) write: bool,
    /// Commands in flight, for each session.
    pub(crate) depth: u32,
    pub(super) sessions: u32,
    pub(super) by: Vec<Contender>,
    pub(super) wants: Vec<Want>,
    /// Whether it is not a failure that it cannot be measured here.
    pub(super) may_lack: bool,
    /// How many times the rounds of other rows it takes: what two of the same kind are told apart
    /// by is less than the noise of three rounds.
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
    let mut rows = PLAIN.map(plain).to_vec();
    rows.extend(sessions());
    // One command at a time. The limits are what SPDK takes, which spins.
    let limits = vec![Want::P50(29.0), Want::P99(57.0)];
    rows.push(row(4096, READ, 1, "", &[Lunar, Tgtd], limits));
    for way in [READ, WRITE] {
        rows.extend(DIGESTS.map(|load| digests(way, load)));
    }
    rows.extend([READ, WRITE].map(threads));
    for backend in BACKENDS {
        rows.extend(MEDIA.map(|load| medium(load, backend)));
    }
    rows.extend([32, 128].map(cached));
    rows
}

fn plain((size, way, depth, less_than_tgtd, to_floor): PlainRow) -> Row {
    let mut by = vec![Lunar, Tgtd];
    by.extend(to_floor.map(|_| Floor));
    let to_floor = to_floor.map(|times| Want::Cpu(Floor, times));
    let to_tgtd = less_than_tgtd.map(|times| Want::TimesLess(Tgtd, times));
    let wants = to_floor.into_iter().chain(to_tgtd).collect();
    row(size, way, depth, "", &by, wants)
}

/// More and more sessions on one LUN, each with as many commands in flight. The floor has a
/// connection and a thread for each.
fn sessions() -> impl Iterator<Item = Row> {
    let reads = [1, 2, 4, 8, 16, 32, 64].map(|count| (READ, count));
    let loads = reads.into_iter().chain([(WRITE, 4)]);
    loads.map(|(way, sessions)| {
        let name = format!(", sessions {sessions}");
        let wants = vec![Want::Cpu(Floor, 1.4), Want::Fair(0.1)];
        Row {
            sessions,
            patience: 2,
            ..row(4096, way, 32, &name, &[Lunar, Floor], wants)
        }
    })
}

/// With header and data digests: size, depth, and times the CPU of the same without.
const DIGESTS: [(u32, u32, f64); 5] = [
    (512, 32, 1.25),
    (512, 128, 1.25),
    (4096, 32, 1.25),
    (4096, 128, 1.25),
    (65_536, 32, 1.4),
];

fn digests(way: bool, (size, depth, times): (u32, u32, f64)) -> Row {
    let wants = vec![Want::Cpu(Lunar, times)];
    Row {
        patience: 2,
        ..row(size, way, depth, ", digests", &[Digests, Lunar], wants)
    }
}

/// Two threads for one LUN. Both are on the CPU that one has beside them: on another CPU one of
/// them would share it with the generator. So this shows what it costs that there are two (locks,
/// switches, smaller batches), and not what the way between cores costs. Neither spins: it would
/// take the CPU from the other.
fn threads(way: bool) -> Row {
    let wants = vec![Want::Cpu(Asleep, 1.05)];
    let by = [TwoThreads, Asleep];
    Row {
        sessions: 8,
        patience: 5,
        ..row(4096, way, 32, ", 8 sessions, two threads", &by, wants)
    }
}

const BACKENDS: [Backend; 7] = [
    Backend::File,
    Backend::Direct,
    Backend::Loop,
    Backend::On(FileSystem::Ext4),
    Backend::DirectOn(FileSystem::Ext4),
    Backend::On(FileSystem::Xfs),
    Backend::DirectOn(FileSystem::Xfs),
];

/// Size, way and depth of what each backend is given.
const MEDIA: [(u32, bool, u32); 3] = [(4096, READ, 128), (4096, WRITE, 128), (65_536, READ, 32)];

/// Another volume than RAM. What a backend itself costs is what it costs fio, on the CPU of
/// targets. Loop devices need more rights than the rest.
fn medium((size, way, depth): (u32, bool, u32), backend: Backend) -> Row {
    let by = [On(backend), Fio(backend), Floor];
    let want = match (backend, size) {
        // The pages of the file are lent to the socket: the copy that fio makes is the one to it.
        (Backend::File, 65_536) => Want::Cpu(Fio(backend), 1.1),
        _ => Want::Beyond(Fio(backend), Floor, 1.25),
    };
    Row {
        may_lack: backend.needs_loop(),
        ..row(size, way, depth, &format!(", {backend}"), &by, vec![want])
    }
}

/// Reads of what is in the page cache cost no thread of the epoll ring.
fn cached(depth: u32) -> Row {
    const BACKEND: Backend = Backend::On(FileSystem::Ext4);
    let (by, wants) = ([Epoll(BACKEND), On(BACKEND)], Want::Cpu(On(BACKEND), 1.3));
    Row {
        may_lack: BACKEND.needs_loop(),
        ..row(4096, READ, depth, ", cached, epoll", &by, vec![wants])
    }
}

/// One session; what is special about it is at the end of its name.
pub(crate) fn row(
    size: u32,
    write: bool,
    depth: u32,
    name: &str,
    by: &[Contender],
    wants: Vec<Want>,
) -> Row {
    let way = if write { "write" } else { "read" };
    let size_text = match size {
        512 => "512 B".to_owned(),
        _ => format!("{} KiB", size >> 10),
    };
    Row {
        name: format!("{size_text} {way}, depth {depth}{name}"),
        size,
        write,
        depth,
        sessions: 1,
        by: by.to_vec(),
        wants,
        may_lack: false,
        patience: 1,
    }
}

impl Row {
    /// The load in the words of `lunar bench`, `lunar race` and `lunar floor`.
    pub(crate) fn words(&self, time: Duration) -> Vec<String> {
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
}

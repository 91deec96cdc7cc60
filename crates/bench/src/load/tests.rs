//! Loads on volumes of this process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ::io::memory::MemoryLimit;
use ::io::ring::RingKind;
use address::Address;
use client::open::{self, OpenOptions};

use super::{LoadResources, LoadVolume, LoadWaits, Measured, UnwrittenRange, fill, holes, measure};
use crate::load_threads::{LiveFigures, RunObserver};
use crate::outcome::ResultRow;
use crate::plan::{BlockSpan, FioOptions};

pub(crate) fn subject(address: &str, words: &FioOptions) -> LoadVolume {
    let initiator = "iqn.2026-11.org.lunar.test:bench".to_owned();
    let options = OpenOptions {
        memory: Arc::new(MemoryLimit::new(1 << 30)),
        ..OpenOptions::new(initiator).unwrap()
    };
    let parsed: Address = address.parse().unwrap();
    let volume = open::volume(&parsed, &options).unwrap();
    LoadVolume {
        address: address.to_owned(),
        span: words.fit(&volume.traits()).unwrap(),
        volume,
        sockets: BTreeSet::new(),
    }
}

pub(crate) fn words(rw: &str) -> FioOptions {
    FioOptions {
        rws: vec![rw.parse().unwrap()],
        depth: 8,
        runtime: Duration::from_millis(50),
        ramp: Duration::from_millis(5),
        ..FioOptions::preset(None, false).unwrap()
    }
}

/// Acts with an observer who looks at nothing, and stops it from the start or never.
pub(crate) fn observed<T>(stop: bool, act: impl FnOnce(&mut RunObserver<'_>) -> T) -> T {
    let (stop, live) = (&AtomicBool::new(stop), &mut |_| {});
    act(&mut RunObserver { stop, live })
}

fn run_until(subjects: &[LoadVolume], words: &FioOptions, stop: bool) -> Measured {
    let load = words.load(words.rws[0], words.block_sizes[0]);
    let machinery = LoadResources {
        waits: LoadWaits::default(),
        targets: Vec::new(),
    };
    observed(stop, |watch| {
        measure(subjects, words, load, &machinery, watch)
    })
    .unwrap()
}

fn run(address: &str, words: &FioOptions) -> (ResultRow, Option<String>) {
    let Measured { mut rows, failure } = run_all(|| vec![subject(address, words)], words);
    assert_eq!(rows.len(), 1);
    (rows.remove(0), failure)
}

/// For longer if need be: other work on the machine may leave nothing for us for a while.
fn run_all(open: impl Fn() -> Vec<LoadVolume>, words: &FioOptions) -> Measured {
    let mut words = words.clone();
    loop {
        let measured = run_until(&open(), &words, false);
        let few = if words.rate_iops.is_some() { 0 } else { 100 };
        let enough = measured.rows.iter().all(|row| row.ios() > few);
        if enough || measured.failure.is_some() {
            return measured;
        }
        words.runtime *= 4;
    }
}

#[test]
fn what_is_counted_fits_together() {
    let words = FioOptions {
        jobs: 2,
        ..words("randrw")
    };
    let (row, failure) = run("ram:1M", &words);
    assert_eq!(failure, None);
    assert!(row.reads.ios > 0 && row.writes.ios > 0);
    assert_eq!(row.bytes(), row.ios() * 4096);
    assert_eq!(row.latency().count(), row.ios());
    assert_eq!(row.errors(), 0);
    assert!(row.cpu_us.is_some());
    // None may be in it, if all were done behind the last look.
    let in_series: u64 = row.series.iter().map(|interval| interval.ios).sum();
    assert!(!row.series.is_empty() && in_series <= row.ios());
}

#[test]
fn each_direction_does_its_own() {
    let (reading, _) = run("ram:1M", &words("read"));
    assert!(reading.reads.ios > 0 && reading.writes.ios == 0);
    let (writing, _) = run("ram:1M", &words("randwrite"));
    assert!(writing.reads.ios == 0 && writing.writes.ios > 0);
}

#[test]
fn several_volumes_have_a_row_each_and_one_for_all() {
    let words = words("randread");
    let open = || {
        ["ram:1M", "null:2M"]
            .map(|address| subject(address, &words))
            .into()
    };
    let Measured { rows, failure } = run_all(open, &words);
    assert_eq!(failure, None);
    let [ram, null, all] = &rows[..] else {
        panic!("{} rows", rows.len());
    };
    assert_eq!(all.ios(), ram.ios() + null.ios());
    assert!(all.cpu_us.is_some() && ram.cpu_us.is_none());
}

#[test]
fn who_stops_it_gets_what_was_measured_so_far() {
    let words = words("randread");
    let subjects = [subject("ram:1M", &words)];
    let Measured { rows, failure } = run_until(&subjects, &words, true);
    assert_eq!((rows[0].ios(), failure), (0, None));
}

#[test]
fn a_rate_is_kept() {
    let words = FioOptions {
        rate_iops: Some(200),
        ..words("randread")
    };
    let (row, failure) = run("ram:1M", &words);
    assert_eq!(failure, None);
    // What was held up before may be made up for.
    let most = 200 * (row.runtime_us + 5_000_000) / 1_000_000;
    assert!(row.ios() <= most, "{}", row.ios());
}

#[test]
fn the_first_failure_ends_it_and_says_where() {
    let words = words("randread");
    let (row, failure) = run("fault:read=0.01(ram:1M)", &words);
    let failure = failure.unwrap();
    assert!(
        failure.contains("read of 4096 bytes at offset"),
        "{failure}"
    );
    assert!(failure.starts_with("fault:"), "{failure}");
    assert!(row.reads.errors > 0 && row.reads.first_error.is_some());
}

/// A remote unit without a session lets each wait for long before it fails.
#[test]
fn nothing_begins_after_the_first_failure() {
    let words = words("randread");
    let (row, _) = run("fault:read=1(ram:1M)", &words);
    let few = 1..=u64::from(words.depth);
    assert!(few.contains(&row.reads.errors), "{}", row.reads.errors);
}

#[test]
fn honest_volumes_pass_verification() {
    for rw in ["write", "randwrite", "randrw", "rw"] {
        let words = FioOptions {
            verify: true,
            jobs: 2,
            ..words(rw)
        };
        for address in ["ram:1M", "stripe:4k(ram:1M,ram:1M)"] {
            let (row, failure) = run(address, &words);
            assert_eq!(failure, None, "{rw} on {address}");
            assert!(row.writes.ios > 0);
        }
    }
}

#[test]
fn lost_writes_are_found() {
    for rw in ["randwrite", "randrw"] {
        let words = FioOptions {
            verify: true,
            ..words(rw)
        };
        let (_, failure) = run("null:1M", &words);
        let failure = failure.unwrap();
        assert!(failure.contains("wrong data at offset"), "{failure}");
        assert!(failure.contains("lost: it holds zeros"), "{failure}");
    }
}

#[test]
fn what_was_never_written_cannot_be_verified() {
    let words = FioOptions {
        verify: true,
        ..words("randread")
    };
    let (_, failure) = run("ram:1M", &words);
    assert!(failure.unwrap().contains("write it first"));
}

#[test]
fn a_filled_volume_can_be_verified_by_the_same_seed() {
    let mut words = FioOptions {
        verify: true,
        ..words("randread")
    };
    let subject = subject("ram:1000k", &words);
    let never_written = || holes(&subject, RingKind::Auto).unwrap();
    assert_eq!(never_written(), UnwrittenRange::All);
    let mut told = Vec::new();
    let (stop, live) = (AtomicBool::new(false), &mut |live| told.push(live));
    let watch = &mut RunObserver { stop: &stop, live };
    fill(&subject, words.seed, RingKind::Auto, watch).unwrap();
    let (done, total) = (1_024_000, 1_024_000);
    assert_eq!(told.last(), Some(&LiveFigures::Fill { done, total }));
    assert_eq!(never_written(), UnwrittenRange::None);

    let open = || vec![subject.clone()];
    assert_eq!(run_all(open, &words).failure, None);
    words.seed = 2;
    let failure = run_all(open, &words).failure.unwrap();
    assert!(failure.contains("--randseed 1"), "{failure}");
}

#[test]
fn rows_are_measured_in_every_order() {
    for rw in ["rw", "read", "randread"] {
        let words = FioOptions {
            block_sizes: vec![65_536],
            ..words(rw)
        };
        let (row, failure) = run("ram:1M", &words);
        assert_eq!(failure, None);
        assert_eq!(row.bytes(), row.ios() * 65_536);
    }
}

#[test]
fn what_is_written_in_part_has_some_holes() {
    let words = words("randread");
    let whole = subject("ram:8M", &words);
    for (first, blocks) in [(0, 2048), (8192, 2048)] {
        let span = BlockSpan {
            first,
            blocks,
            ..whole.span
        };
        let part = LoadVolume {
            span,
            ..whole.clone()
        };
        observed(false, |watch| fill(&part, 1, RingKind::Auto, watch)).unwrap();
        assert_eq!(holes(&whole, RingKind::Auto).unwrap(), UnwrittenRange::Some);
    }
}

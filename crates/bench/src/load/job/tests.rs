//! A job on the test's own thread.

use ::io::counting::{CountingAllocator, allocations};

use super::{JobSpec, LoadJob};
use crate::load::LoadWaits;
use crate::load::tests::{subject, words};
use crate::load_threads::LoadPhase;
use crate::load_threads::tests::{self as threads, TestLead};
use crate::plan::FioOptions;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// A job on a volume, and who leads it.
fn led<T>(
    address: &str,
    words: &FioOptions,
    act: impl FnOnce(LoadJob<'_>, &TestLead<'_>) -> T,
) -> T {
    let task = JobSpec {
        subject: &subject(address, words),
        words,
        load: words.load(words.rws[0], 4096),
        number: 0,
        run: 1,
    };
    threads::led(|post, lead| {
        act(
            LoadJob::new(&task, LoadWaits::default(), post).unwrap(),
            lead,
        )
    })
}

#[test]
fn what_is_in_flight_at_the_end_is_waited_for_and_counted() {
    let words = words("randread");
    led("delay:50ms(ram:1M)", &words, |mut job, lead| {
        assert_eq!(job.turn(), 0);
        lead.set(0, LoadPhase::Stop);
        job.drain().unwrap();
        let reads = job.leave().reads;
        assert_eq!((reads.ios, reads.latency.count()), (8, 8));
    });
}

#[test]
fn what_is_in_flight_is_given_up_where_somebody_wants_an_end() {
    let words = words("randread");
    led("delay:10m(ram:1M)", &words, |mut job, lead| {
        assert_eq!(job.turn(), 0);
        lead.set(0, LoadPhase::Cancel);
        job.drain().unwrap();
        let report = job.leave();
        assert_eq!((report.reads.ios, report.failure), (0, None));
    });
}

/// How often a warm job uses the heap while some thousands of I/Os come and go.
fn cost(rw: &str, verify: bool) -> (usize, u64) {
    let mut words = words(rw);
    words.verify = verify;
    led("ram:1M", &words, |mut job, _| {
        let mut turns = || (0..1000).map(|_| job.turn()).sum::<usize>();
        turns();
        let before = allocations();
        turns();
        let used = allocations() - before;
        let report = job.leave();
        assert_eq!(report.failure, None);
        (used, report.reads.ios + report.writes.ios)
    })
}

#[test]
fn ios_do_not_use_the_heap() {
    for rw in ["read", "randwrite", "randrw"] {
        for verify in [false, true] {
            if verify && rw == "read" {
                continue;
            }
            let (used, ios) = cost(rw, verify);
            assert!(ios > 10_000, "{rw}: {ios} I/Os");
            assert_eq!(used, 0, "{rw}, verify: {verify}");
        }
    }
}

/// Of eight I/Os that a volume in memory does at once, those are counted that began while it is
/// measured, as one that hangs ends behind it.
#[test]
fn a_turn_counts_what_it_began_and_nothing_else() {
    led("ram:1M", &words("randread"), |mut job, lead| {
        for (turn, looks, finished) in [(1, 1, 0), (2, 3, 16), (3, 2, 8)] {
            lead.set(turn, LoadPhase::Ramp);
            assert_eq!(job.turn(), 0, "nothing was left under way");
            assert_eq!(job.turn(), 8);
            lead.set(turn, LoadPhase::Rest);
            assert_eq!(job.turn(), 8);
            let ramp = lead.rested().unwrap();
            assert_eq!(ramp.reads.ios, 0, "only the ramp was there");

            lead.set(turn + 10, LoadPhase::Measure);
            let counts = (0..looks).map(|_| job.turn()).sum::<usize>();
            assert_eq!(counts, finished);
            assert!(lead.rested().is_none());
            lead.set(turn + 10, LoadPhase::Rest);
            assert_eq!(job.turn(), 8, "which are counted too");
            assert_eq!(lead.rested().unwrap().reads.ios, finished as u64 + 8);
            job.turn();
            assert!(lead.rested().is_none(), "once a turn");
        }
    });
}

//! A job on the test's own thread.

use ::io::counting::{Counting, allocations};
use ::io::ring::Kind;

use super::{Job, Task};
use crate::crew;
use crate::load::tests::{subject, words};

#[global_allocator]
static COUNTING: Counting = Counting;

/// How often a warm job uses the heap while some thousands of I/Os come and go.
fn cost(rw: &str, verify: bool) -> (usize, u64) {
    let mut words = words(rw);
    words.verify = verify;
    let task = Task {
        subject: &subject("ram:1M", &words),
        words: &words,
        load: words.load(words.rws[0], 4096),
        number: 0,
        run: 1,
    };
    crew::alone(|post| {
        let mut job = Job::new(&task, Kind::Auto, post).unwrap();
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

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(10);

fn call(act: impl FnOnce() + Send + 'static) -> Call {
    Box::new(move || {
        act();
        Ok(0)
    })
}

/// The numbers of the next jobs that are done.
fn done(pool: &Blocking, count: usize) -> Vec<usize> {
    let (mut done, deadline) = (Vec::new(), Instant::now() + LONG);
    while done.len() < count {
        assert!(Instant::now() < deadline, "{} of {count}", done.len());
        std::thread::sleep(Duration::from_millis(1));
        pool.done(&mut done);
    }
    done.into_iter().map(|(number, _)| number).collect()
}

/// By one thread, and the more important first.
#[test]
fn where_no_thread_can_be_started_everything_is_done_in_turn() {
    let mut pool = Blocking::with_threads(&Bell::new().unwrap(), 1).unwrap();
    let apart = |lane| BlockingJob::Apart(lane, call(|| {}));
    pool.start(&mut vec![
        (0, apart(BlockingLane::Connect)),
        (1, BlockingJob::Call(call(|| {}))),
        (2, apart(BlockingLane::Persist)),
        (3, BlockingJob::Call(call(|| {}))),
    ]);
    assert_eq!(done(&pool, 4), [2, 1, 3, 0]);
}

#[test]
fn what_is_to_be_persisted_is_so_one_after_the_other() {
    let mut pool = Blocking::new(&Bell::new().unwrap()).unwrap();
    let (mark, marks) = channel();
    let mut jobs: Vec<_> = (0..20)
        .map(|number| {
            let mark = mark.clone();
            let act = move || mark.send(number).unwrap();
            (number, BlockingJob::Apart(BlockingLane::Persist, call(act)))
        })
        .collect();
    pool.start(&mut jobs);
    assert_eq!(done(&pool, 20), (0..20).collect::<Vec<_>>());
    drop(mark);
    drop(pool);
    assert_eq!(
        marks.iter().collect::<Vec<_>>(),
        (0..20).collect::<Vec<_>>()
    );
}

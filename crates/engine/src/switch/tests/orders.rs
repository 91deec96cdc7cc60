//! Orders to a switch that runs: nothing that reads a file holds up those that come after it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::super::orders::{read_aside, read_zones};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_file_that_hangs_is_waited_for_by_one_thread() {
    let is_reading = Arc::new(AtomicBool::new(false));
    let (answer, hung) = channel::<u32>();
    let (tell, told) = channel();
    let first = tell.clone();
    let take = move |it| first.send(it).unwrap();
    let started = read_aside(&is_reading, PATIENCE, move || hung.recv().unwrap(), take);
    assert!(started.unwrap(), "and it has returned");
    let second = read_aside(&is_reading, PATIENCE, || 2, |_| panic!("a second thread"));
    assert!(!second.unwrap());
    answer.send(1).unwrap();
    assert_eq!(told.recv_timeout(PATIENCE), Ok(1));
    while is_reading.load(Relaxed) {
        thread::yield_now();
    }
    let third = read_aside(
        &is_reading,
        PATIENCE,
        || 3,
        move |it| tell.send(it).unwrap(),
    );
    assert!(third.unwrap());
    assert_eq!(told.recv_timeout(PATIENCE), Ok(3));
}

/// It is almost surely half written, and would cut all pairs.
#[test]
fn a_zone_file_without_a_statement_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zones");
    for text in ["", "\n \n", "# the zones of the lab\n\n  # to be written\n"] {
        fs::write(&path, text).unwrap();
        let refused = read_zones(&path).unwrap_err().to_string();
        assert!(refused.contains("default deny"), "{text:?}: {refused}");
    }
    fs::write(&path, "# none\ndefault deny\n").unwrap();
    assert!(!read_zones(&path).unwrap().permits());
}

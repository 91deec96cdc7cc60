//! Interfaces whose PFC is turned on or off while a switch runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::super::pfc_watch::PfcWatch;

#[test]
fn each_change_is_told_once_with_the_port() {
    let is_on = Arc::new(AtomicBool::new(false));
    let read = Arc::clone(&is_on);
    let has_pfc = move |name: &str| name == "eth2" && read.load(SeqCst);
    let (told, heard) = channel();
    let interfaces = vec![(1, "eth1".to_owned()), (4, "eth2".to_owned())];
    let period = Duration::from_millis(1);
    let watch = PfcWatch::start(interfaces, period, has_pfc, move |at| {
        let _ = told.send(at);
    });
    let quiet = || heard.recv_timeout(Duration::from_millis(100)).is_err();
    assert!(quiet(), "nothing has changed");
    for state in [true, false] {
        is_on.store(state, SeqCst);
        assert_eq!(heard.recv(), Ok(4));
        assert!(quiet(), "it was told");
    }
    drop(watch);
    assert!(heard.recv().is_err(), "the thread has ended");
}
